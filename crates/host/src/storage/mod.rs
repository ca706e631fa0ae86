//! What disks and file systems can do.

mod block;
mod direct_io;
mod space;

pub use block::{BlockDevice, BlockSizes, block_device, file_block_sizes, is_block_device};
pub use direct_io::{DirectIo, direct_io};
pub use space::{Space, space};
