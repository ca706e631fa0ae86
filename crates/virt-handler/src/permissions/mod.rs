//! What a launcher without privileges may do: use devices, lock memory, open labelled files.

mod devices;
mod locking;
mod selinux;
mod user;

pub(crate) use devices::{allow_device, deny_device, give_devices};
pub(crate) use locking::allow_locking;
pub(crate) use selinux::Label;
pub(crate) use user::user;
