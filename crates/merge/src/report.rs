/// Results of merging.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MergeReport {
    /// Name of the image's format.
    pub format: &'static str,
    /// Compression, in the syntax of the options.
    pub codec: String,
    /// Images that were merged.
    pub images: u64,
    /// Nodes of every type.
    pub nodes: u64,
    /// Regular files; hard links count once.
    pub files: u64,
    /// Total length of the files, in bytes.
    pub file_bytes: u64,
    /// Names of earlier images that a later one replaced or hid; a directory counts once.
    pub replaced: u64,
    /// Stored bytes that were moved, without being decoded.
    pub moved_bytes: u64,
    /// Those of them that the system copied, or shared, between files by itself.
    pub moved_by_system_bytes: u64,
    /// Bytes of metadata written.
    pub metadata_bytes: u64,
    /// Length of the image, padding included, in bytes.
    pub image_size: u64,
}
