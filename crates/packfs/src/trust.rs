//! Images that are read only as far as they belong to a root hash.

use crate::OpenOptions;
use packfs_core::{
    Error, Image, MemoryImage, Result, ResultExt, Silent, is_reference, shown_place, url_scheme,
};
use packfs_integrity::{VerifiedImage, VerifyingKey, from_hex, root_hash_path, signature_path};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest file of a root hash, signature, or public key in bytes.
const FILE_LEN_MAX: u64 = 4096;

/// Source of the root hash that an image must have.
#[derive(Clone, Debug, Default)]
pub(crate) enum Trust {
    /// The image is read as it is.
    #[default]
    All,
    RootHash(Vec<u8>),
    /// The root hash is in a file beside the image, signed with the key in this file.
    Key(PathBuf),
}

impl Trust {
    /// True if the image is checked while it is read.
    #[cfg(feature = "pack")]
    pub(crate) fn is_given(&self) -> bool {
        !matches!(self, Trust::All)
    }
}

impl OpenOptions {
    /// Compares every block of the image with the dm-verity hash tree at its end before any of its
    /// bytes is used; the tree must have this root hash. Only the data that the tree covers can be
    /// read. Files that hold further data of the image ([`OpenOptions::device`]) are not covered.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("a.sqfs");
    /// # packfs::pack_files([("a", "1")], &path)?.run()?;
    /// let unknown_hash = [0; 32];
    /// let error = packfs::OpenOptions::new().root_hash(unknown_hash).open(&path).err().unwrap();
    /// assert!(error.to_string().contains("no hash tree"));
    /// # Ok::<(), packfs::Error>(())
    /// ```
    #[must_use]
    pub fn root_hash(mut self, hash: impl Into<Vec<u8>>) -> Self {
        self.trust = Trust::RootHash(hash.into());
        self
    }

    /// Compares every block as [`OpenOptions::root_hash`] does. The root hash is in the file
    /// `IMAGE.roothash`, whose minisign signature in `IMAGE.roothash.minisig` must be of the public
    /// key in the file `key`. Both are read from the place of the image, which may be a URL.
    #[must_use]
    pub fn trust(mut self, key: impl AsRef<Path>) -> Self {
        self.trust = Trust::Key(key.as_ref().into());
        self
    }

    /// Returns the same with the root hash of the image at `place`, if it is to be looked up.
    pub(crate) fn with_root_hash_of(&self, place: &Path) -> Result<OpenOptions> {
        match &self.trust {
            Trust::Key(key) => {
                let hash = signed_root_hash(self, key, place)?;
                Ok(self.clone().root_hash(hash))
            }
            Trust::All | Trust::RootHash(_) => Ok(self.clone()),
        }
    }

    /// The image, of which only bytes that belong to the root hash can be read.
    pub(crate) fn trusted(&self, image: Arc<dyn Image>) -> Result<Arc<dyn Image>> {
        match &self.trust {
            Trust::All => Ok(image),
            Trust::RootHash(hash) => Ok(Arc::new(VerifiedImage::new(image, hash)?)),
            Trust::Key(_) => {
                let message = format!("cannot check {}: no file beside it holds its root hash", image.name());
                Err(Error::usage(message).hint("give the root hash itself"))
            }
        }
    }
}

/// Returns the root hash of the image at `place` after a check of its signature.
fn signed_root_hash(options: &OpenOptions, key: &Path, place: &Path) -> Result<Vec<u8>> {
    let key_text = std::fs::read_to_string(key).or_io(|| format!("cannot read the public key {key:?}"))?;
    let key = VerifyingKey::read(&key_text)?;
    if is_reference(place) && url_scheme(place).is_none_or(|scheme| scheme == "oci") {
        let message = format!("cannot check {}: an OCI image has no file beside it", shown_place(place));
        return Err(Error::usage(message).hint("its layers are checked by their digests"));
    }
    // What is at the place of the image is not trusted.
    let mut plain = options.clone();
    plain.trust = Trust::All;
    let hash_place = beside(place, root_hash_path);
    let hash_text = text_at(&plain, &hash_place)?;
    let signature = text_at(&plain, &beside(&hash_place, signature_path))?;
    let signed = MemoryImage::new(shown_place(&hash_place), hash_text.clone().into_bytes());
    key.verify(&signed, &signature, None, &Silent)?;
    from_hex(hash_text.trim()).ok_or_else(|| {
        Error::corrupt(shown_place(&hash_place), "no root hash: an even number of hexadecimal digits needed")
    })
}

/// Returns the place of a file beside that of an image; the query of a URL stays at its end. Keys
/// of object stores may contain its letters.
fn beside(place: &Path, named: fn(&Path) -> PathBuf) -> PathBuf {
    let has_query = url_scheme(place).is_some_and(|scheme| !scheme.eq_ignore_ascii_case("s3"));
    let Some(text) = place.to_str().filter(|_| has_query) else { return named(place) };
    let (path, query) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
    let mut place = named(Path::new(path)).into_os_string();
    place.push(query);
    place.into()
}

fn text_at(options: &OpenOptions, place: &Path) -> Result<String> {
    let file = options.bytes_at(place)?;
    if file.len() > FILE_LEN_MAX {
        let fault = format!("{} bytes, at most {FILE_LEN_MAX} allowed", file.len());
        return Err(Error::corrupt(file.name(), fault).hint("a root hash and a signature are short texts"));
    }
    let mut bytes = vec![0; file.len() as usize];
    file.read_exact_at(0, &mut bytes)?;
    String::from_utf8(bytes).map_err(|_| Error::corrupt(file.name(), "not a text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beside_an_image_have_its_name() {
        for (place, expected) in [
            ("a/b.erofs", "a/b.erofs.roothash"),
            ("a?b", "a?b.roothash"),
            ("https://host/a.erofs", "https://host/a.erofs.roothash"),
            ("https://host/a.erofs?key=1#x", "https://host/a.erofs.roothash?key=1#x"),
            ("s3://bucket/a?b", "s3://bucket/a?b.roothash"),
        ] {
            assert_eq!(beside(Path::new(place), root_hash_path), Path::new(expected));
        }
    }
}
