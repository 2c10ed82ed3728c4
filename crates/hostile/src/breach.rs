//! A promise that was not kept.

use std::fmt;

/// A promise of packfs that an input broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breach {
    /// Checking called the image clean, and reading it failed all the same.
    CheckMissed(String),
    /// A name that a directory lists is not found when it is looked up, or another inode is.
    LookupDisagrees(String),
    /// A file beside the extraction's target was changed.
    Outside(String),
    /// The fault of an input in memory was told as one of input or output.
    NotTheInput(String),
    /// An image that was packed again holds another tree.
    RepackDiffers(String),
    /// Packing what had been read without an error failed.
    RepackFailed(String),
    /// An image that was merged holds another tree.
    MergeDiffers(String),
    /// A merged image cannot be read.
    MergeFailed(String),
    /// Data reported whole or genuine is not, or integrity data refers to bytes that do not exist.
    Integrity(String),
    /// More was written than there was room for, or other bytes on the way to a prefix.
    Decoder(String),
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Breach::CheckMissed(what) => write!(f, "checked clean, but cannot be read: {what}"),
            Breach::LookupDisagrees(what) => write!(f, "listed, but not found: {what}"),
            Breach::Outside(what) => write!(f, "written outside of the target: {what}"),
            Breach::NotTheInput(what) => write!(f, "told as a fault of the machine: {what}"),
            Breach::RepackDiffers(what) => write!(f, "packed again, it is another tree: {what}"),
            Breach::RepackFailed(what) => write!(f, "read, but cannot be packed again: {what}"),
            Breach::MergeDiffers(what) => write!(f, "merged, it is another tree: {what}"),
            Breach::MergeFailed(what) => write!(f, "merged, but cannot be read: {what}"),
            Breach::Integrity(what) => write!(f, "integrity: {what}"),
            Breach::Decoder(what) => write!(f, "decoder: {what}"),
        }
    }
}
