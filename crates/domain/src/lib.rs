//! From a VMI and facts about the host to a domain, and from that to QEMU arguments.
//!
//! Nothing here reads a file or runs a program: what must be known of the host comes in as [`HostFacts`] and
//! [`QemuFacts`], and where files lie as [`Layout`]. A [`Domain`] says everything about one virtual machine, so
//! the same domain always gives the same arguments.
//!
//! ```
//! use kubevirt_api::vmi::VirtualMachineInstance;
//! use kubevirt_domain::{HostFacts, Layout, QemuFacts, convert, qemu};
//!
//! let mut vmi = VirtualMachineInstance::new("web", Default::default());
//! vmi.spec.domain = serde_json::from_str(r#"{"memory":{"guest":"1Gi"},"devices":{}}"#)?;
//! let domain = convert(&vmi, &HostFacts::default(), &QemuFacts::default(), &Layout::default())?;
//! assert_eq!(qemu::arguments(&domain)[0], "-name");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod change;
pub mod convert;
pub mod domain;
pub mod error;
pub mod facts;
pub mod host_model;
pub mod layout;
pub mod migration;
pub mod needs;
pub mod passt;
pub mod pci;
pub mod pinning;
pub mod qemu;
pub mod sizes;
pub mod swtpm;

pub use change::changes;
pub use convert::convert;
pub use domain::Domain;
pub use error::{ConvertError, Unsupported};
pub use facts::{HostFacts, QemuFacts};
pub use layout::Layout;
pub use migration::for_migration_target;
