//! The commands, a file for each: `Arguments` with its flags, and what it does.

mod create;
mod credentials;
mod expand;
mod expose;
mod objectgraph;
mod start;
mod template;

use std::process::ExitCode;

use anyhow::Result;

use crate::connect::Connect;

/// The enum of all commands, and how each is run. A line here and a `mod` above are all that a command needs.
macro_rules! commands {
    ($($(#[$meta:meta])* $variant:ident => $module:ident,)*) => {
        /// What to do.
        #[derive(Debug, clap::Subcommand)]
        #[expect(missing_docs, reason = "help shows what the arguments say of themselves")]
        #[allow(clippy::large_enum_variant, reason = "there is one value in the life of a process")]
        pub enum Command {
            $($(#[$meta])* $variant($module::Arguments),)*
        }

        impl Command {
            /// Does it.
            pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
                match self {
                    $(Self::$variant(arguments) => Box::pin(arguments.run(connect)).await,)*
                }
            }
        }
    };
}

commands! {
    Create => create,
    Credentials => credentials,
    Expand => expand,
    Expose => expose,
    Objectgraph => objectgraph,
    Start => start,
    Template => template,
}

/// What a request says of a dry run.
pub(crate) fn dry_run(on: bool) -> Option<[&'static str; 1]> {
    on.then(|| {
        println!("Dry Run execution");
        ["All"]
    })
}
