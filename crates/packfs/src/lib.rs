//! Compressed read-only filesystem images; grows with the crates below it.
#![forbid(unsafe_code)]

mod opened;
mod resolve;

pub use opened::{OpenOptions, Opened, open};
pub use packfs_core::{
    BlockRef, ContentId, ContentReader, Contents, DeviceNumber, DirCursor, DirEntry, Entry, Error, ErrorKind, Extent,
    ExtentFrom, Fact, FactValue, Facts, FileType, Finding, Format, Image, ImagePath, Inode, InodeId, InodeKind, Loss,
    Meta, Name, Node, NodeId, NodeKind, OptionRow, Owner, PackSettings, Progress, Result, ResultExt, Severity, Silent,
    SpaceOwner, Stage, Timestamp, Tree, TreeBuilder, Volume, Xattrs, escaped,
};
pub use packfs_pack::PackReport;

/// Codecs: their names, levels and options.
pub mod codec {
    pub use packfs_codec::{Algorithm, CODECS, CodecRow, CodecSpec};
}

pub use packfs_formats as formats;
pub use packfs_image as image;
pub use packfs_read as read;
pub use packfs_sink as sink;
