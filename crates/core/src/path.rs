//! Names and paths inside an image: bytes, never `OsStr`, checked once.

use crate::{Error, Result, escaped};
use std::borrow::{Borrow, Cow};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Name of one directory entry: 1 to 255 bytes, no `/`, no NUL, neither `.` nor `..`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name<'a>(&'a [u8]);

impl<'a> Name<'a> {
    /// Length limit of Linux, in bytes.
    pub const LEN_MAX: usize = 255;

    /// Checks `bytes`; the error names the fault, but not the location.
    pub fn new(bytes: &'a [u8]) -> Result<Self, &'static str> {
        match bytes {
            [] => Err("empty name"),
            b"." => Err("name \".\""),
            b".." => Err("name \"..\""),
            _ if bytes.len() > Self::LEN_MAX => Err("name longer than 255 bytes"),
            _ if bytes.contains(&b'/') => Err("name with a slash"),
            _ if bytes.contains(&0) => Err("name with a NUL byte"),
            _ => Ok(Name(bytes)),
        }
    }

    /// Returns the bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", escaped(self.0))
    }
}

/// Path from the root of an image: checked [`Name`]s joined by `/`, no leading or trailing slash;
/// empty is the root.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImagePath(Vec<u8>);

impl ImagePath {
    /// Returns the root directory.
    pub fn root() -> Self {
        ImagePath(Vec::new())
    }

    /// Normalizes a path of a user or an archive: leading `/` and `./`, doubled and trailing
    /// slashes and `.` components are dropped.
    ///
    /// Errors: `Usage` for `..`, a NUL byte or a component over 255 bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut path = ImagePath(Vec::with_capacity(bytes.len()));
        for component in bytes.split(|&b| b == b'/') {
            if component.is_empty() || component == b"." {
                continue;
            }
            let name = Name::new(component)
                .map_err(|fault| Error::usage(format!("path \"{}\": {fault}", escaped(bytes))))?;
            path.push(name);
        }
        Ok(path)
    }

    /// Appends one component.
    pub fn push(&mut self, name: Name<'_>) {
        if !self.0.is_empty() {
            self.0.push(b'/');
        }
        self.0.extend_from_slice(name.as_bytes());
    }

    /// Removes the last component; returns false for the root.
    pub fn pop(&mut self) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let end = self.0.iter().rposition(|&b| b == b'/').unwrap_or(0);
        self.0.truncate(end);
        true
    }

    /// Returns this path with one more component.
    #[must_use]
    pub fn join(&self, name: Name<'_>) -> Self {
        let mut joined = self.clone();
        joined.push(name);
        joined
    }

    /// Returns the components from the root downwards.
    pub fn names(&self) -> impl Iterator<Item = Name<'_>> {
        self.0.split(|&b| b == b'/').filter(|c| !c.is_empty()).map(Name)
    }

    /// Returns the last component; `None` for the root.
    pub fn file_name(&self) -> Option<Name<'_>> {
        self.names().last()
    }

    /// Returns true for the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the path is `ancestor` or below it.
    pub fn starts_with(&self, ancestor: &ImagePath) -> bool {
        ancestor.is_root()
            || self.0 == ancestor.0
            || (self.0.starts_with(&ancestor.0) && self.0.get(ancestor.0.len()) == Some(&b'/'))
    }

    /// Returns the bytes, without a leading slash.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for ImagePath {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

/// Conversion to a path within an image: from an [`ImagePath`], or from text, bytes and paths of
/// this machine that [`ImagePath::parse`] accepts.
pub trait IntoImagePath: sealed::Sealed {
    /// Converts to a path.
    ///
    /// Errors: as [`ImagePath::parse`].
    fn into_image_path(self) -> Result<ImagePath>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::ImagePath {}
    impl Sealed for &super::ImagePath {}
}

impl IntoImagePath for ImagePath {
    fn into_image_path(self) -> Result<ImagePath> {
        Ok(self)
    }
}

impl IntoImagePath for &ImagePath {
    fn into_image_path(self) -> Result<ImagePath> {
        Ok(self.clone())
    }
}

macro_rules! from_bytes {
    ($(($($generics:tt)*) $type:ty: |$path:ident| $bytes:expr;)*) => {$(
        impl<$($generics)*> TryFrom<$type> for ImagePath {
            type Error = Error;

            fn try_from($path: $type) -> Result<Self> {
                ImagePath::parse($bytes)
            }
        }

        impl<$($generics)*> sealed::Sealed for $type {}

        impl<$($generics)*> IntoImagePath for $type {
            fn into_image_path(self) -> Result<ImagePath> {
                ImagePath::try_from(self)
            }
        }
    )*};
}

from_bytes! {
    () &str: |path| path.as_bytes();
    () &&str: |path| path.as_bytes();
    () String: |path| path.as_bytes();
    () &String: |path| path.as_bytes();
    () Cow<'_, str>: |path| path.as_bytes();
    () &[u8]: |path| path;
    () Vec<u8>: |path| &path;
    () &Vec<u8>: |path| path;
    (const N: usize) [u8; N]: |path| &path;
    (const N: usize) &[u8; N]: |path| path;
    () &OsStr: |path| path.as_bytes();
    () OsString: |path| path.as_bytes();
    () &OsString: |path| path.as_bytes();
    () &Path: |path| path.as_os_str().as_bytes();
    () PathBuf: |path| path.as_os_str().as_bytes();
    () &PathBuf: |path| path.as_os_str().as_bytes();
}

impl FromStr for ImagePath {
    type Err = Error;

    fn from_str(path: &str) -> Result<Self> {
        ImagePath::parse(path.as_bytes())
    }
}

/// Formats for messages: `/` for the root, unprintable bytes escaped.
impl fmt::Display for ImagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() { f.write_str("/") } else { write!(f, "{}", escaped(&self.0)) }
    }
}

impl fmt::Debug for ImagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_converted_from_every_path_type() {
        fn made(path: impl IntoImagePath) -> Result<ImagePath> {
            path.into_image_path()
        }
        let path = ImagePath::parse(b"a/b").unwrap();
        let all = [
            made("/a/b"),
            made(String::from("a/b/")),
            made(&b"./a//b"[..]),
            made(b"a/b"),
            made(b"a/b".to_vec()),
            made(Path::new("/a/b")),
            made(PathBuf::from("a/b")),
            made(OsStr::new("a/b")),
            made(&path),
            made(path.clone()),
            "a/b".parse(),
        ];
        for made in all {
            assert_eq!(made.unwrap(), path);
        }
        assert_eq!(made("a/../b").unwrap_err().kind(), crate::ErrorKind::Usage);
        assert_eq!(made(OsStr::from_bytes(b"\xff")).unwrap().as_bytes(), b"\xff");
    }

    #[test]
    fn normalises_what_users_and_archives_write() {
        for (written, meant) in
            [("/", ""), ("", ""), ("./a//b/.", "a/b"), ("/usr/bin/", "usr/bin"), ("a/./b", "a/b")]
        {
            assert_eq!(
                ImagePath::parse(written.as_bytes()).unwrap().as_bytes(),
                meant.as_bytes(),
                "{written}"
            );
        }
    }

    #[test]
    fn refuses_components_that_could_leave_the_root_or_confuse_a_reader() {
        for bad in [&b".."[..], b"a/../b", b"a\0b", &[b'x'; 256]] {
            assert!(ImagePath::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Name::new(b"a/b").is_err());
    }

    #[test]
    fn pops_back_to_the_root() {
        let mut path = ImagePath::parse(b"a/b").unwrap();
        assert!(path.pop());
        assert_eq!(path.as_bytes(), b"a");
        assert!(path.pop());
        assert!(path.is_root());
        assert!(!path.pop());
    }

    #[test]
    fn starts_with_compares_whole_components() {
        let path = ImagePath::parse(b"usr/bin/env").unwrap();
        assert!(path.starts_with(&ImagePath::parse(b"usr/bin").unwrap()));
        assert!(path.starts_with(&ImagePath::root()));
        assert!(!path.starts_with(&ImagePath::parse(b"usr/b").unwrap()));
    }
}
