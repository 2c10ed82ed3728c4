//! Directories of objects: files named by the digest of their contents, as `ab/cdef...`.

use packfs_core::{Error, FileImage, Image, Result, Silent, escaped, to_hex};
use packfs_format::{Object, Objects};
use packfs_integrity::{FsVerityOptions, HashAlgorithm, fs_verity_digest};
use std::ffi::OsStr;
use std::io::ErrorKind as IoErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Digits behind the slash of an object's path: those of digests from MD5 to SHA-512.
const DIGITS: std::ops::RangeInclusive<usize> = 30..=126;
/// Ending of objects in a repository of OSTree.
const OSTREE_ENDING: &[u8] = b".file";

/// See the module.
pub(crate) struct ObjectDirs(Vec<PathBuf>);

impl ObjectDirs {
    /// Takes directories, to be searched in this order.
    ///
    /// Errors: `Io`, `Usage` for what is no directory.
    pub(crate) fn open(dirs: &[PathBuf]) -> Result<Self> {
        for dir in dirs {
            let found = std::fs::metadata(dir);
            let found = found.map_err(|error| Error::io(format!("cannot open objects in {dir:?}"), error))?;
            if !found.is_dir() {
                return Err(Error::usage(format!("cannot open objects in {dir:?}: not a directory")));
            }
        }
        // A mount leaves its working directory.
        let absolute = |dir: &PathBuf| std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
        Ok(ObjectDirs(dirs.iter().map(absolute).collect()))
    }

    /// Returns the path of an object and its length; `None` if no directory has it.
    ///
    /// Errors: `Unsupported` for a path that no object has, `Io`.
    pub(crate) fn find(&self, object: &Object) -> Result<Option<(PathBuf, u64)>> {
        let relative = object_path(&object.path).ok_or_else(|| {
            let fault = format!(
                "path \"{}\": it must be two digits, a slash, and 30 to 126 digits",
                escaped(&object.path)
            );
            Error::unsupported("object", fault)
        })?;
        for dir in &self.0 {
            let path = dir.join(relative);
            match std::fs::metadata(&path) {
                Ok(found) if found.is_file() => return Ok(Some((path, found.len()))),
                Ok(_) => return Err(Error::failed(format!("cannot read {path:?}: not a regular file"))),
                Err(error) if matches!(error.kind(), IoErrorKind::NotFound | IoErrorKind::NotADirectory) => {}
                Err(error) => return Err(Error::io(format!("cannot read {path:?}"), error)),
            }
        }
        Ok(None)
    }

    fn found(&self, object: &Object) -> Result<(PathBuf, u64)> {
        self.find(object)?.ok_or_else(|| {
            let dirs: Vec<String> = self.0.iter().map(|dir| format!("{dir:?}")).collect();
            let digest = match &object.digest {
                Some(digest) => format!(" (fs-verity digest {})", to_hex(digest)),
                None => String::new(),
            };
            let fault = format!("missing in {}{digest}", dirs.join(", "));
            Error::corrupt(format!("object {}", escaped(&object.path)), fault)
        })
    }
}

/// Returns the path if it has the form of an object's: lower-case digits alone cannot lead out of a
/// directory.
pub(crate) fn object_path(path: &[u8]) -> Option<&Path> {
    let is_digits = |text: &[u8]| text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let digits = path.strip_suffix(OSTREE_ENDING).unwrap_or(path);
    let (folder, rest) = digits.split_at_checked(2)?;
    let rest = rest.strip_prefix(b"/")?;
    let is_object = is_digits(folder) && is_digits(rest) && DIGITS.contains(&rest.len());
    is_object.then(|| Path::new(OsStr::from_bytes(path)))
}

/// Returns the path of the object with a digest.
#[cfg(feature = "composefs")]
pub(crate) fn path_of(digest: &[u8]) -> String {
    let mut path = to_hex(digest);
    path.insert(2, '/');
    path
}

impl Objects for ObjectDirs {
    fn len(&self, object: &Object) -> Result<u64> {
        self.found(object).map(|found| found.1)
    }

    fn open(&self, object: &Object) -> Result<Arc<dyn Image>> {
        let (path, _) = self.found(object)?;
        let image = FileImage::open(&path)?;
        let Some(digest) = &object.digest else { return Ok(Arc::new(image)) };
        let algorithm = match digest.len() {
            64 => HashAlgorithm::Sha512,
            _ => HashAlgorithm::Sha256,
        };
        let options = FsVerityOptions { algorithm, ..FsVerityOptions::default() };
        let found = fs_verity_digest(&image, &options, 1, &Silent)?;
        if found != *digest {
            let fault =
                format!("its fs-verity digest is {}, the image says {}", to_hex(&found), to_hex(digest));
            return Err(Error::corrupt(format!("object {path:?}"), fault));
        }
        Ok(Arc::new(image))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_are_paths_of_objects() {
        let rest = "c".repeat(62);
        for good in [format!("ab/{rest}"), format!("00/{rest}.file"), format!("ff/{}", "1".repeat(126))] {
            assert!(object_path(good.as_bytes()).is_some(), "{good}");
        }
        for bad in [
            String::new(),
            "ab".into(),
            format!("/ab/{rest}"),
            format!("../{rest}"),
            format!("ab/../{rest}"),
            format!("AB/{rest}"),
            format!("ab/{rest}/"),
            format!("ab/{rest}.other"),
            format!("a/b{rest}"),
            "ab/cdef".into(),
            format!("ab/{}", "1".repeat(127)),
        ] {
            assert!(object_path(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
