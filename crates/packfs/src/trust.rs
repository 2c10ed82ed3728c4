//! Images that are read only as far as they belong to a root hash.

use packfs_core::{Error, Image, MemoryImage, Place, Result, ResultExt, Silent, from_hex, shown_place};
use packfs_integrity::{VerifiedImage, VerifyingKey, root_hash_path, signature_path};
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

/// Opens bytes at a place, whatever they are.
pub(crate) type OpenBytes<'a> = &'a dyn Fn(&Path) -> Result<Arc<dyn Image>>;

impl Trust {
    /// Returns the root hash of the image at `place`, if it is to be looked up there.
    pub(crate) fn signed_hash(&self, place: &Path, open: OpenBytes<'_>) -> Result<Option<Vec<u8>>> {
        let Trust::Key(key) = self else { return Ok(None) };
        signed_root_hash(key, place, open).map(Some)
    }

    /// The image, of which only bytes that belong to the root hash can be read.
    pub(crate) fn of(&self, image: Arc<dyn Image>) -> Result<Arc<dyn Image>> {
        match self {
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
fn signed_root_hash(key: &Path, place: &Path, open: OpenBytes<'_>) -> Result<Vec<u8>> {
    let key_text = std::fs::read_to_string(key).or_io(|| format!("cannot read the public key {key:?}"))?;
    let key = VerifyingKey::read(&key_text)?;
    if Place::of(place).is_oci() {
        let message = format!("cannot check {}: an OCI image has no file beside it", shown_place(place));
        return Err(Error::usage(message).hint("its layers are checked by their digests"));
    }
    let hash_place = beside(place, root_hash_path);
    let hash_text = text_at(open, &hash_place)?;
    let signature = text_at(open, &beside(&hash_place, signature_path))?;
    let signed = MemoryImage::new(shown_place(&hash_place), hash_text.clone().into_bytes());
    key.verify(&signed, &signature, None, &Silent)?;
    from_hex(hash_text.trim()).ok_or_else(|| {
        Error::corrupt(shown_place(&hash_place), "no root hash: an even number of hexadecimal digits needed")
    })
}

/// Returns the place of a file beside that of an image; the query of a URL stays at its end.
fn beside(place: &Path, named: fn(&Path) -> PathBuf) -> PathBuf {
    let Some(text) = place.to_str().filter(|_| Place::of(place).has_query()) else { return named(place) };
    let (path, query) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
    let mut place = named(Path::new(path)).into_os_string();
    place.push(query);
    place.into()
}

fn text_at(open: OpenBytes<'_>, place: &Path) -> Result<String> {
    let file = open(place)?;
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
