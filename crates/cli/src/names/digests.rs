//! Digests of files as extended attributes, by which Linux 7.0 shares the pages of equal files.

use super::trees;
use packfs::source::Loaded;
use packfs::{ContentId, Contents, Error, NodeKind, Progress, Result};
use sha2::{Digest, Sha256};

/// Name of the attribute, unless another one is given: Linux does not list it.
const NAME: &str = "erofs.fingerprint.v1";

/// Beginning of each value, which a SHA-256 follows as 32 bytes.
const ALGORITHM: &[u8] = b"sha256:";

/// Bytes read at a time.
const PART_LEN: u64 = 1 << 20;

/// Returns the name of the attribute for the value of `--xattr-inode-digest`.
pub fn name_of(value: &str) -> &str {
    if value.is_empty() { NAME } else { value }
}

/// Reads all files, and gives each that is not empty the attribute.
///
/// Errors: those of the source; `Cancelled`.
pub fn added(loaded: Loaded, name: &str, progress: &dyn Progress) -> Result<Loaded> {
    let contents = loaded.contents.clone();
    trees::edited(loaded, true, |path, node, edit| {
        if let NodeKind::File { len: len @ 1.., content } = node.kind {
            let digest = digest(&*contents, content, len, progress);
            let digest = digest.map_err(|error| match contents.names_files() {
                true => error,
                false => error.at(format!("{path:?}")),
            })?;
            edit.xattrs.insert(name.into(), [ALGORITHM, &digest].concat());
        }
        Ok(true)
    })
}

fn digest(
    contents: &dyn Contents,
    content: ContentId,
    len: u64,
    progress: &dyn Progress,
) -> Result<[u8; 32]> {
    let mut reader = contents.open(content)?;
    let (mut hash, mut buffer, mut at) = (Sha256::new(), Vec::new(), 0);
    while at < len {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        let part = PART_LEN.min(len - at);
        buffer.resize(usize::try_from(part).unwrap_or_default(), 0);
        reader.read_exact_at(at, &mut buffer)?;
        hash.update(&buffer);
        at += part;
    }
    Ok(hash.finalize().into())
}
