//! A small Linux guest for tests: built once from Debian packages, and spoken to over its serial console.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! let guest = test_guest::artifacts(test_guest::Flavour::Cloud)?;
//! // … start QEMU with guest.disk, or guest.kernel and guest.initrd, and a serial port at `socket`.
//! # let socket = std::path::Path::new("");
//! let mut console = test_guest::Console::connect(socket).await?;
//! console.login("root", "root").await?;
//! assert_eq!(console.run("hostname").await?, "guest");
//! # Ok(())
//! # }
//! ```
//!
//! What runs in the guest is in `root/`: `init` is the first process.

mod build;
mod cache;
mod console;
mod fat;
mod tiny;

pub use build::{COMMAND_LINE, Flavour};
pub use cache::{Artifacts, artifacts};
pub use console::{Console, ConsoleError};
pub use fat::seed;
pub use tiny::tiny;
