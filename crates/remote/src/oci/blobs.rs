//! Files with blobs: those of a folder, or of an archive.

use packfs_core::{
    ContentId, Contents, Error, FileImage, Image, ImagePath, NodeKind, Result, ResultExt, Tree, usize_of,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of an image layout or archive, by relative paths.
pub trait BlobFiles: Send + Sync {
    /// Opens a file; `None` if there is none.
    ///
    /// Errors: `Io`.
    fn open(&self, path: &str) -> Result<Option<Arc<dyn Image>>>;

    /// Returns the name of the folder or archive in messages.
    fn name(&self) -> String;
}

/// Reads a small file; `None` if there is none.
///
/// Errors: `Io`; `Limit` if it is longer than `len_max`.
pub(crate) fn read_small(files: &dyn BlobFiles, path: &str, len_max: u64) -> Result<Option<Vec<u8>>> {
    let Some(image) = files.open(path)? else { return Ok(None) };
    let len = image.len();
    if len > len_max {
        let fault = format!("{len} bytes, {len_max} are allowed");
        return Err(Error::limit(format!("{path} of {}", files.name()), fault));
    }
    let mut bytes = vec![0; usize_of(len)];
    image.read_exact_at(0, &mut bytes)?;
    Ok(Some(bytes))
}

/// Returns the files of a folder.
///
/// Errors: `Io` if it cannot be read.
pub fn folder_files(dir: &Path) -> Result<Arc<dyn BlobFiles>> {
    std::fs::read_dir(dir).or_io(|| format!("cannot open {dir:?}"))?;
    Ok(Arc::new(Folder(dir.into())))
}

/// Returns the files of an archive that was looked through.
pub fn archive_files(path: &Path, tree: Tree, contents: Arc<dyn Contents>) -> Arc<dyn BlobFiles> {
    Arc::new(Archive { path: path.into(), tree, contents })
}

/// A folder of this machine.
pub(crate) struct Folder(pub(crate) PathBuf);

impl BlobFiles for Folder {
    fn open(&self, path: &str) -> Result<Option<Arc<dyn Image>>> {
        let path = self.0.join(path);
        match std::fs::metadata(&path) {
            Ok(found) if found.is_file() => Ok(Some(Arc::new(FileImage::open(&path)?))),
            Ok(_) => Err(Error::failed(format!("cannot read {path:?}: it is no file"))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(format!("cannot read {path:?}"), error)),
        }
    }

    fn name(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// An archive that was looked through.
pub(crate) struct Archive {
    pub(crate) path: PathBuf,
    pub(crate) tree: Tree,
    pub(crate) contents: Arc<dyn Contents>,
}

impl Archive {
    /// Finds a file; a symbolic link is followed once, as old archives link equal layers.
    fn find(&self, path: &str) -> Option<(u64, ContentId)> {
        let parsed = ImagePath::parse(path.as_bytes()).ok()?;
        match &self.tree.node(self.tree.find(&parsed)?).kind {
            NodeKind::File { len, content } => Some((*len, *content)),
            NodeKind::Symlink(target) => {
                let target = std::str::from_utf8(target).ok()?;
                let parent = Path::new(path).parent()?.to_str()?;
                let target = match target.strip_prefix("../") {
                    Some(rest) => rest.to_owned(),
                    None => format!("{parent}/{target}"),
                };
                match self.tree.node(self.tree.find(&ImagePath::parse(target.as_bytes()).ok()?)?).kind {
                    NodeKind::File { len, content } => Some((len, content)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

impl BlobFiles for Archive {
    fn open(&self, path: &str) -> Result<Option<Arc<dyn Image>>> {
        Ok(self.find(path).map(|(len, content)| {
            let name = format!("{path} of {:?}", self.path);
            Arc::new(Member { contents: Arc::clone(&self.contents), content, len, name }) as Arc<dyn Image>
        }))
    }

    fn name(&self) -> String {
        format!("{:?}", self.path)
    }
}

/// File in an archive.
struct Member {
    contents: Arc<dyn Contents>,
    content: ContentId,
    len: u64,
    name: String,
}

impl Image for Member {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let len = usize_of(self.len.saturating_sub(offset)).min(buf.len());
        let part = buf.get_mut(..len).unwrap_or_default();
        self.contents.open(self.content)?.read_exact_at(offset, part)?;
        Ok(len)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
