//! Ways to get the bytes of an image at an offset: from a file or block device, from memory, from any reader, from a slice of another image.
//!
//! Every way answers from any thread at once and keeps no position. None caches: the kernel caches files, the read engine
//! caches decoded blocks.
#![forbid(unsafe_code)]

mod beginning;
mod file;
mod memory;
mod reader;
mod slice;

pub use beginning::BeginningImage;
pub use file::FileImage;
pub use memory::MemoryImage;
pub use reader::ReaderImage;
pub use slice::SliceImage;
