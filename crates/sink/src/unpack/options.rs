//! What an extraction is asked to do.

use crate::select::Pattern;

/// What to do with what is in the target already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// The target must not exist yet, or be an empty directory.
    #[default]
    Refuse,
    /// Directories are filled; anything else in the way is an error, found before anything is
    /// written.
    Merge,
    /// Directories are filled; anything else in the way is removed.
    Replace,
    /// Directories are filled but not changed themselves; anything else in the way is kept.
    Skip,
    /// Directories are filled; anything else in the way is kept if it is at least as new, else
    /// removed.
    KeepNewer,
}

/// Who is to own what is unpacked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnerPolicy {
    /// As in the image if this process is root; else whoever unpacks, and every difference is
    /// counted.
    #[default]
    Auto,
    /// As in the image; what is refused is counted.
    Image,
    /// Whoever unpacks.
    Current,
}

/// See each field.
#[derive(Clone, Debug)]
pub struct UnpackOptions {
    /// Which paths to unpack; none mean everything. Directories on the way to them come along.
    pub paths: Vec<Pattern>,
    /// What to do with what is there already.
    pub existing: Existing,
    /// Who is to own what is unpacked. Set-id bits of files are only restored where owners are, and
    /// with the owner they are meant for: never for somebody without privileges who did not ask for
    /// [`OwnerPolicy::Image`].
    pub owner: OwnerPolicy,
    /// Whether to restore extended attributes.
    pub xattrs: bool,
    /// Whether to restore times of last modification.
    pub times: bool,
    /// Whether to make device nodes.
    pub devices: bool,
    /// Whether something that cannot be restored is an error (at the end, when all else is done).
    pub strict: bool,
    /// Whether to stop at the first file whose contents cannot be read instead of leaving it out.
    pub fail_fast: bool,
    /// Whether to wait until everything is on the disk.
    pub sync: bool,
}

impl Default for UnpackOptions {
    fn default() -> Self {
        UnpackOptions {
            paths: Vec::new(),
            existing: Existing::Refuse,
            owner: OwnerPolicy::Auto,
            xattrs: true,
            times: true,
            devices: true,
            strict: false,
            fail_fast: false,
            sync: false,
        }
    }
}
