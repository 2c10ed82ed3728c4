//! Stacked layers: marks that hide entries of lower layers, and the entries that remain visible.
//! Every reader and writer of layers uses these definitions.
//!
//! Overlayfs uses character devices 0:0, and attributes of files and directories. AUFS, and so
//! every OCI layer that is an archive, uses regular files: `.wh.NAME` hides NAME, `.wh..wh..opq`
//! hides all entries of lower layers in its directory. Sources: the kernel's
//! Documentation/filesystems/overlayfs.rst; the OCI image specification, "layer.md".

use crate::{DeviceNumber, Name, NodeKind, Xattrs};

/// Prefix of marks of AUFS.
const AUFS_PREFIX: &[u8] = b".wh.";
/// Prefix of names reserved by AUFS, including [`AUFS_OPAQUE`].
pub const AUFS_RESERVED: &[u8] = b".wh..wh.";
/// Name of the file that makes its directory opaque in AUFS.
pub const AUFS_OPAQUE: &[u8] = b".wh..wh..opq";

/// Prefix of attributes that overlayfs interprets.
pub const TRUSTED: &[u8] = b"trusted.overlay.";
/// Prefix by which overlayfs passes such an attribute through to the file, without interpreting it.
pub const ESCAPED: &[u8] = b"trusted.overlay.overlay.";
/// [`WHITEOUT`], escaped.
pub const ESCAPED_WHITEOUT: &[u8] = b"trusted.overlay.overlay.whiteout";
/// [`OPAQUE`], escaped.
pub const ESCAPED_OPAQUE: &[u8] = b"trusted.overlay.overlay.opaque";
/// Attributes with which composefs marks directories that have whiteouts.
pub const WHITEOUTS: [&[u8]; 2] = [b"trusted.overlay.overlay.whiteouts", b"user.overlay.whiteouts"];

/// Device number of a whiteout.
pub const WHITEOUT_DEVICE: DeviceNumber = DeviceNumber { major: 0, minor: 0 };
/// Attributes that make an empty file a whiteout.
pub const WHITEOUT: [&[u8]; 2] = [b"trusted.overlay.whiteout", b"user.overlay.whiteout"];
/// Attributes, with the value `y`, of a directory that hides its entries in lower layers.
pub const OPAQUE: [&[u8]; 2] = [b"trusted.overlay.opaque", b"user.overlay.opaque"];
/// Attributes of a directory that Linux searches for whiteouts even if no lower layer has it.
pub const ORIGIN: [&[u8]; 2] = [b"trusted.overlay.origin", b"user.overlay.origin"];

/// Kind of an entry, by which it may be a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// Directory, opaque if it has an attribute of [`OPAQUE`].
    Directory,
    /// Character device 0:0, always a whiteout.
    Device,
    /// Empty file, a whiteout if it has an attribute of [`WHITEOUT`].
    EmptyFile,
    /// Any other entry, never a mark.
    Other,
}

impl Candidate {
    /// Classifies a character device.
    pub fn of_device(number: DeviceNumber) -> Self {
        if number == WHITEOUT_DEVICE { Candidate::Device } else { Candidate::Other }
    }

    /// Classifies a file of `len` bytes.
    pub fn of_file(len: u64) -> Self {
        if len == 0 { Candidate::EmptyFile } else { Candidate::Other }
    }

    /// Returns true if attributes decide.
    pub fn needs_xattrs(self) -> bool {
        matches!(self, Candidate::Directory | Candidate::EmptyFile)
    }
}

impl From<&NodeKind> for Candidate {
    fn from(kind: &NodeKind) -> Self {
        match *kind {
            NodeKind::Directory => Candidate::Directory,
            NodeKind::CharDevice(number) => Candidate::of_device(number),
            NodeKind::File { len, .. } => Candidate::of_file(len),
            _ => Candidate::Other,
        }
    }
}

/// Effect of an entry of a layer on lower entries with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Directory that is merged with lower directories.
    Joins,
    /// Opaque directory that hides lower entries.
    Replaces,
    /// Entry of another type that hides lower entries.
    Covers,
    /// Whiteout that hides lower entries and is itself invisible.
    Hides,
}

impl Effect {
    /// Returns the effect of an entry.
    pub fn of(candidate: impl Into<Candidate>, xattrs: &Xattrs) -> Self {
        match candidate.into() {
            Candidate::Directory if is_opaque(xattrs) => Effect::Replaces,
            Candidate::Directory => Effect::Joins,
            Candidate::Device => Effect::Hides,
            Candidate::EmptyFile if has_any(xattrs, WHITEOUT) => Effect::Hides,
            Candidate::EmptyFile | Candidate::Other => Effect::Covers,
        }
    }
}

/// Returns the number of visible entries of one name; effects are in order from the highest layer.
/// It counts merged directories, one entry of another type, or none. Stops at the first effect that
/// decides.
///
/// Errors: those of the effects.
pub fn seen<E>(effects: impl IntoIterator<Item = Result<Effect, E>>) -> Result<usize, E> {
    let mut count = 0;
    for effect in effects {
        match effect? {
            Effect::Joins => count += 1,
            Effect::Replaces => return Ok(count + 1),
            Effect::Covers => return Ok(count.max(1)),
            Effect::Hides => return Ok(count),
        }
    }
    Ok(count)
}

/// Returns true for the name of a mark of AUFS.
pub fn is_aufs_mark(name: &[u8]) -> bool {
    name.starts_with(AUFS_PREFIX)
}

/// Returns the name that an AUFS whiteout of this name hides, if it is one.
pub fn hidden_by_aufs(name: &[u8]) -> Option<&[u8]> {
    name.strip_prefix(AUFS_PREFIX).filter(|hidden| Name::new(hidden).is_ok())
}

/// Returns the name of the file that hides `name` in AUFS.
pub fn aufs_mark_of(name: &[u8]) -> Vec<u8> {
    [AUFS_PREFIX, name].concat()
}

/// Returns true for the attributes of an opaque directory. Other values than `y` mark directories
/// with whiteouts of other kinds.
pub fn is_opaque(xattrs: &Xattrs) -> bool {
    OPAQUE.iter().any(|&name| xattrs.get(name).is_some_and(|value| value == b"y"))
}

/// Returns true if an attribute has one of the names.
pub fn has_any(xattrs: &Xattrs, names: [&[u8]; 2]) -> bool {
    !xattrs.is_empty() && names.iter().any(|&name| xattrs.contains_key(name))
}

/// Marks a directory with whiteouts as one that Linux has to search for them. Without the mark, its
/// whiteouts appear as unreadable entries if no lower layer has the directory. Returns true if it
/// was not marked before.
pub fn mark_origin(xattrs: &mut Xattrs) -> bool {
    let is_marked = has_any(xattrs, ORIGIN);
    if !is_marked {
        let [trusted, user] = ORIGIN;
        let is_user = xattrs.contains_key(OPAQUE[1]) && !xattrs.contains_key(OPAQUE[0]);
        xattrs.insert(if is_user { user } else { trusted }.to_vec(), Vec::new());
    }
    !is_marked
}

/// Removes marks that were applied.
pub fn without_marks(mut xattrs: Xattrs) -> Xattrs {
    for name in [WHITEOUT, OPAQUE, ORIGIN].iter().flatten() {
        xattrs.remove(*name);
    }
    xattrs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is seen of entries, a letter each: `d` a directory, `o` an opaque one, `f` a
    /// file, `w` a whiteout. Nothing may look at a `!`.
    fn seen_of(found: &str) -> String {
        let effect = |entry| match entry {
            'd' => Ok(Effect::Joins),
            'o' => Ok(Effect::Replaces),
            'f' => Ok(Effect::Covers),
            'w' => Ok(Effect::Hides),
            _ => Err("looked at"),
        };
        let count = seen(found.chars().rev().map(effect)).unwrap();
        found[found.len() - count..].to_owned()
    }

    #[test]
    fn the_highest_entries_hide_what_they_say() {
        for (found, expected) in [
            ("", ""),
            ("d", "d"),
            ("f", "f"),
            ("w", ""),
            ("ddd", "ddd"),
            ("!of", "f"),
            ("!odd", "odd"),
            ("!fdd", "dd"),
            ("!wdd", "dd"),
            ("!w", ""),
            ("dw", ""),
            ("!ff", "f"),
        ] {
            assert_eq!(seen_of(found), expected, "{found}");
        }
    }

    #[test]
    fn marks_of_aufs_hide_names_that_are_some() {
        assert_eq!(hidden_by_aufs(&aufs_mark_of(b"a")), Some(&b"a"[..]));
        for name in [&b".wh."[..], b".wh...", b".wh..", b"a", b"wh.a"] {
            assert_eq!(hidden_by_aufs(name), None);
        }
        assert!(is_aufs_mark(AUFS_OPAQUE) && AUFS_OPAQUE.starts_with(AUFS_RESERVED));
    }
}
