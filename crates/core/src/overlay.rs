//! Marks of overlayfs: entries and attributes of a layer that hide what lower layers have.
//!
//! Source: the kernel's Documentation/filesystems/overlayfs.rst.

use crate::{DeviceNumber, NodeKind, Xattrs};

/// Device number of a whiteout.
pub const WHITEOUT_DEVICE: DeviceNumber = DeviceNumber { major: 0, minor: 0 };
/// Attributes that make an empty file a whiteout.
pub const WHITEOUT: [&[u8]; 2] = [b"trusted.overlay.whiteout", b"user.overlay.whiteout"];
/// Attributes of a directory that hides what lower layers have in it, with the value `y`.
pub const OPAQUE: [&[u8]; 2] = [b"trusted.overlay.opaque", b"user.overlay.opaque"];
/// Attributes of a directory that Linux looks through for whiteouts even if no lower layer has it.
pub const ORIGIN: [&[u8]; 2] = [b"trusted.overlay.origin", b"user.overlay.origin"];

/// Part of an entry's type that says whether it may be a whiteout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// A character device 0:0, which always is one.
    Device,
    /// An empty file, which is one with an attribute of [`WHITEOUT`].
    EmptyFile,
    /// Anything else, which never is one.
    Other,
}

impl Candidate {
    /// Looks at a character device.
    pub fn of_device(number: DeviceNumber) -> Self {
        if number == WHITEOUT_DEVICE { Candidate::Device } else { Candidate::Other }
    }

    /// Looks at a file.
    pub fn of_file(len: u64) -> Self {
        if len == 0 { Candidate::EmptyFile } else { Candidate::Other }
    }
}

impl From<&NodeKind> for Candidate {
    fn from(kind: &NodeKind) -> Self {
        match *kind {
            NodeKind::CharDevice(number) => Candidate::of_device(number),
            NodeKind::File { len, .. } => Candidate::of_file(len),
            _ => Candidate::Other,
        }
    }
}

/// Returns true for an entry that hides what lower layers have under its name.
pub fn is_whiteout(candidate: impl Into<Candidate>, xattrs: &Xattrs) -> bool {
    match candidate.into() {
        Candidate::Device => true,
        Candidate::EmptyFile => has_any(xattrs, WHITEOUT),
        Candidate::Other => false,
    }
}

/// Returns true for the attributes of a directory that hides what lower layers have in it. Other
/// values than `y` mark directories that contain other kinds of whiteouts.
pub fn is_opaque(xattrs: &Xattrs) -> bool {
    OPAQUE.iter().any(|&name| xattrs.get(name).is_some_and(|value| value == b"y"))
}

/// Returns true if there is an attribute of this name, in either namespace.
pub fn has_any(xattrs: &Xattrs, names: [&[u8]; 2]) -> bool {
    !xattrs.is_empty() && names.iter().any(|&name| xattrs.contains_key(name))
}

/// Marks a directory that has whiteouts as one that Linux has to look through for them. Without it,
/// those of a directory that no lower layer has are shown as entries that cannot be read. Returns
/// true if it was not marked before.
pub fn mark_origin(xattrs: &mut Xattrs) -> bool {
    let is_marked = has_any(xattrs, ORIGIN);
    if !is_marked {
        let [trusted, user] = ORIGIN;
        let is_user = xattrs.contains_key(OPAQUE[1]) && !xattrs.contains_key(OPAQUE[0]);
        xattrs.insert(if is_user { user } else { trusted }.to_vec(), Vec::new());
    }
    !is_marked
}

/// Removes the marks, which mean nothing once they are applied.
pub fn without_marks(mut xattrs: Xattrs) -> Xattrs {
    for name in [WHITEOUT, OPAQUE, ORIGIN].iter().flatten() {
        xattrs.remove(*name);
    }
    xattrs
}
