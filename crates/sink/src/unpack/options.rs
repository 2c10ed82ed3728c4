use crate::select::Pattern;

/// Treatment of existing files in the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Existing {
    /// Refuse a target that exists, unless it is an empty directory.
    #[default]
    Refuse,
    /// Merge directories; refuse any other conflict before anything is written.
    Merge,
    /// Merge directories; replace other existing files.
    Replace,
    /// Merge directories without changing them; keep other existing files.
    Skip,
    /// Merge directories; keep other existing files that are at least as new, and replace older
    /// ones.
    KeepNewer,
}

/// Owner of unpacked files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnerPolicy {
    /// The owner in the image if this process is root, otherwise the current user; differences are
    /// counted.
    #[default]
    Auto,
    /// The owner in the image; refusals are counted.
    Image,
    /// The current user.
    Current,
}

/// Options of unpacking.
#[derive(Clone, Debug)]
pub struct UnpackOptions {
    /// Paths to unpack, with the directories above them; none means everything.
    pub paths: Vec<Pattern>,
    /// Treatment of existing files.
    pub existing: Existing,
    /// Owner of unpacked files. Set-id bits are restored only along with their owner, so never for
    /// an unprivileged user without [`OwnerPolicy::Image`].
    pub owner: OwnerPolicy,
    /// Set to restore extended attributes.
    pub xattrs: bool,
    /// Set to restore modification times.
    pub times: bool,
    /// Set to create device nodes.
    pub devices: bool,
    /// Set to return an error at the end if anything could not be restored.
    pub strict: bool,
    /// Set to stop at the first file with unreadable contents instead of skipping it.
    pub fail_fast: bool,
    /// Set to sync everything to disk.
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
