//! The commands, a file for each: `Arguments` with its flags, and what it does.

mod addvolume;
mod adm;
mod agent;
mod completion;
mod console;
mod create;
mod credentials;
mod evacuate_cancel;
mod expand;
mod expose;
mod fslist;
mod guestfs;
mod guestosinfo;
mod image_upload;
mod memory_dump;
mod migrate;
mod migrate_cancel;
mod objectgraph;
mod options;
mod pause;
mod permitted_devices;
mod port_forward;
mod removevolume;
mod reset;
mod restart;
mod scp;
mod soft_reboot;
mod ssh;
mod start;
mod stop;
mod template;
mod top;
mod unpause;
mod usbredir;
mod userlist;
pub(crate) mod version;
mod vmexport;
mod vnc;
mod why;

use std::borrow::Borrow;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

use crate::connect::Connect;
use crate::output::{note, say};

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
    #[command(hide = true)]
    Addvolume => addvolume,
    Adm => adm,
    Completion => completion,
    Console => console,
    Create => create,
    Credentials => credentials,
    EvacuateCancel => evacuate_cancel,
    Expand => expand,
    Expose => expose,
    Fslist => fslist,
    Guestfs => guestfs,
    Guestosinfo => guestosinfo,
    ImageUpload => image_upload,
    MemoryDump => memory_dump,
    Migrate => migrate,
    MigrateCancel => migrate_cancel,
    Objectgraph => objectgraph,
    Options => options,
    Pause => pause,
    PermittedDevices => permitted_devices,
    PortForward => port_forward,
    Removevolume => removevolume,
    Reset => reset,
    Restart => restart,
    Scp => scp,
    SoftReboot => soft_reboot,
    Ssh => ssh,
    Start => start,
    Stop => stop,
    Template => template,
    Top => top,
    Unpause => unpause,
    Usbredir => usbredir,
    Userlist => userlist,
    Version => version,
    Vmexport => vmexport,
    Vnc => vnc,
    Why => why,
}

/// The body of a request that may be a dry run, which is said on standard output.
pub(crate) fn dry_run_body(on: bool) -> Value {
    if on {
        say!("Dry Run execution");
        json!({ "dryRun": ["All"] })
    } else {
        json!({})
    }
}

/// What is said of flags that change nothing, if any. KubeVirt's virtctl passes over them without a word, so scripts
/// have them.
pub(crate) fn idle(flags: &[impl Borrow<str>], why: &str) -> Option<String> {
    (!flags.is_empty()).then(|| format!("Warning: without effect {why}: {}", flags.join(", ")))
}

/// Says it.
pub(crate) fn tell_idle(flags: &[impl Borrow<str>], why: &str) {
    if let Some(warning) = idle(flags, why) {
        note!("{warning}");
    }
}
