//! Folders with the OCI image layout: reading, and adding images.

use super::blobs::{BlobFiles, read_small};
use super::manifest::{Descriptor, Document, IMAGE_NAME, Index, JSON_LEN_MAX, REF_NAME, to_json};
use super::place::{LAYOUT_FILE, Pin, is_named};
use packfs_core::new_file::NewFile;
use packfs_core::{Error, Result, ResultExt, printable};
use std::io::Write;
use std::path::{Path, PathBuf};

const INDEX_FILE: &str = "index.json";
/// Contents of the file that marks a layout.
const MARK: &str = "{\"imageLayoutVersion\":\"1.0.0\"}";
/// Most names listed in a message.
const LISTED_MAX: usize = 10;

/// Reads the index of a layout; `None` if there is none.
///
/// Errors: `Corrupt`, `Io`, `Limit`.
pub(crate) fn index(files: &dyn BlobFiles) -> Result<Option<Vec<Descriptor>>> {
    let Some(bytes) = read_small(files, INDEX_FILE, JSON_LEN_MAX)? else { return Ok(None) };
    let name = format!("{INDEX_FILE} of {}", files.name());
    match Document::parse(&bytes, &name)? {
        Document::Index(index) => Ok(Some(index.manifests)),
        Document::Manifest(_) => Err(Error::corrupt(name, "it is a manifest, an index is expected")),
    }
}

/// Leaves the entries that a tag or digest names, or all.
///
/// Errors: `Failed` if there is none, with the names that exist.
pub(crate) fn select(all: Vec<Descriptor>, pin: Option<&Pin>, place: &str) -> Result<Vec<Descriptor>> {
    let tag = |descriptor: &Descriptor| descriptor.annotations.get(REF_NAME).cloned();
    let is_named = |descriptor: &Descriptor| match pin {
        None => true,
        Some(Pin::Digest(digest)) => descriptor.digest == *digest,
        Some(Pin::Tag(wanted)) => [REF_NAME, IMAGE_NAME]
            .iter()
            .any(|key| descriptor.annotations.get(*key).is_some_and(|name| is_named(name, wanted))),
    };
    let found: Vec<Descriptor> = all.iter().filter(|descriptor| is_named(descriptor)).cloned().collect();
    let first = found.first().and_then(tag);
    let is_one_image = found.len() < 2 || found.iter().all(|it| it.platform.is_some() && tag(it) == first);
    if !found.is_empty() && is_one_image {
        return Ok(found);
    }
    let names = all.iter().map(|it| tag(it).unwrap_or_else(|| format!("@{}", it.digest)));
    let names: Vec<String> = names.take(LISTED_MAX).map(|name| printable(&name).into_owned()).collect();
    let error = match pin {
        Some(pin) if found.is_empty() => {
            Error::failed(format!("cannot open {place}: it has no image {:?}", pin.to_string()))
        }
        _ if all.is_empty() => Error::failed(format!("cannot open {place}: it holds no image")),
        _ => Error::failed(format!("cannot open {place}: it holds {} images", found.len()))
            .hint("add :TAG or @DIGEST to the name"),
    };
    Err(if names.is_empty() { error } else { error.hint(format!("images: {}", names.join(", "))) })
}

/// Folder that images are added to.
pub(crate) struct Writer {
    dir: PathBuf,
}

impl Writer {
    /// Opens or creates a layout.
    ///
    /// Errors: `Io`; `Failed` for a folder with other files.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        let cannot = || format!("cannot create {dir:?}");
        std::fs::create_dir_all(dir).or_io(cannot)?;
        let mark = dir.join(LAYOUT_FILE);
        if !mark.exists() {
            if std::fs::read_dir(dir).or_io(cannot)?.next().is_some() {
                let error =
                    Error::failed(format!("cannot write to {dir:?}: it holds files, but no image layout"));
                return Err(error.hint("name a new or empty folder"));
            }
            std::fs::write(&mark, MARK).or_io(cannot)?;
        }
        Ok(Writer { dir: dir.into() })
    }

    /// Returns the path of a file.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes a file, which has its name when it is complete.
    ///
    /// Errors: those of `write`, `Io`.
    pub(crate) fn put(&self, name: &str, write: impl FnOnce(&std::fs::File) -> Result<()>) -> Result<()> {
        let path = self.path(name);
        let cannot = || format!("cannot write {path:?}");
        let folder = path.parent().unwrap_or(&self.dir);
        std::fs::create_dir_all(folder).or_io(cannot)?;
        let file = NewFile::create(&path, 0o666)?;
        write(file.file())?;
        file.finish(true)
    }

    /// Adds a manifest or index to the index, in the place of one with the same tag.
    ///
    /// Errors: `Io`, `Corrupt` for an index that cannot be read.
    pub(crate) fn name(&self, mut manifest: Descriptor, tag: Option<&str>) -> Result<()> {
        let mut all = index(&super::blobs::Folder(self.dir.clone()))?.unwrap_or_default();
        if let Some(tag) = tag {
            manifest.annotations.insert(REF_NAME.into(), tag.into());
        }
        all.retain(|it| match tag {
            Some(tag) => it.annotations.get(REF_NAME).is_none_or(|found| found != tag),
            None => it.digest != manifest.digest || it.annotations.contains_key(REF_NAME),
        });
        all.push(manifest);
        let index = to_json(&Index::new(all, Default::default()))?;
        self.put(INDEX_FILE, |mut file| {
            file.write_all(&index).or_io(|| "cannot write the index of the layout")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::blobs::Folder;
    use super::*;
    use crate::oci::Digest;

    fn descriptor(text: &str, tag: Option<&str>) -> Descriptor {
        let mut it = Descriptor::of("x", text.as_bytes());
        it.annotations.extend(tag.map(|tag| (REF_NAME.to_owned(), tag.to_owned())));
        it
    }

    #[test]
    fn an_image_is_selected_by_tag_digest_or_as_the_only_one() {
        let all =
            vec![descriptor("a", Some("v1")), descriptor("b", Some("host/x:v2")), descriptor("c", None)];
        let one =
            |pin: Option<Pin>| select(all.clone(), pin.as_ref(), "x").map(|found| found[0].digest.clone());
        assert_eq!(one(Some(Pin::Tag("v1".into()))).unwrap(), Digest::of(b"a"));
        assert_eq!(one(Some(Pin::Tag("v2".into()))).unwrap(), Digest::of(b"b"));
        assert_eq!(one(Some(Pin::Digest(Digest::of(b"c")))).unwrap(), Digest::of(b"c"));
        assert!(one(None).unwrap_err().to_string().contains("3 images"));
        let missing = one(Some(Pin::Tag("v3".into()))).unwrap_err();
        assert!(missing.hints()[0].contains("v1, host/x:v2, @sha256:"), "{:?}", missing.hints());
        assert!(select(vec![], None, "x").is_err());
        assert_eq!(select(all[..1].to_vec(), None, "x").unwrap().len(), 1);
    }

    #[test]
    fn a_tag_is_moved_and_strange_folders_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let layout = dir.path().join("layout");
        let writer = Writer::open(&layout).unwrap();
        for (text, tag) in [("a", Some("v1")), ("b", Some("v1")), ("c", None), ("c", None)] {
            writer.name(Descriptor::of("x", text.as_bytes()), tag).unwrap();
        }
        let found = index(&Folder(layout)).unwrap().unwrap();
        assert_eq!(
            found.iter().map(|it| it.digest.clone()).collect::<Vec<_>>(),
            [Digest::of(b"b"), Digest::of(b"c")]
        );
        assert!(Writer::open(dir.path()).is_err());
    }
}
