/// Kind of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArchiveKind {
    /// Any dialect of tar.
    Tar,
    /// Any dialect of cpio.
    Cpio,
    /// Zip, with a directory at its end.
    Zip,
}

impl ArchiveKind {
    /// Returns the name with an article.
    pub fn words(self) -> &'static str {
        match self {
            ArchiveKind::Tar => "a tar archive",
            ArchiveKind::Cpio => "a cpio archive",
            ArchiveKind::Zip => "a zip archive",
        }
    }
}
