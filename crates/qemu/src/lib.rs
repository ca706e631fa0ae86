//! One QEMU process: start it, speak with its monitor and its guest's agent, move it elsewhere.
//!
//! [`Process`] starts QEMU and notices its end. [`Machine`] is what one does to a running QEMU, over [`qmp`].
//! [`migration`] moves it to another QEMU. [`agent`] speaks with the guest itself.
//!
//! Nothing here polls while nothing happens, and every request has a deadline.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use kubevirt_qemu::process::Launch;
//! use kubevirt_qemu::qmp::Event;
//!
//! let arguments = ["-machine", "q35", "-m", "256"].map(Into::into).to_vec();
//! let launch = Launch { program: "qemu-system-x86_64".into(), arguments, ..Launch::default() };
//! let (process, machine) = launch.start().await?;
//! let mut events = machine.events();
//! machine.resume().await?;
//! while let Some(happened) = events.next().await {
//!     if let Event::Shutdown { guest, .. } = happened.event {
//!         println!("shut down by {}", if guest { "the guest" } else { "the host" });
//!     }
//! }
//! println!("QEMU ended: {}", process.exited().await);
//! # Ok(())
//! # }
//! ```

pub mod agent;
mod lines;
pub mod machine;
pub mod migration;
pub mod process;
pub mod qmp;
mod race;

pub use agent::Agent;
pub use machine::Machine;
pub use process::Process;
pub use qmp::Qmp;
