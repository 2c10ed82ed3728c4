//! Digests of files as extended attributes, by which Linux 7.0 shares the pages of equal files.

use crate::common::trees;
use packfs::read::{LoadedVolume, Piece, Wanted};
use packfs::source::Loaded;
use packfs::{
    ContentId, Contents, Error, ErrorKind, Finding, ImagePath, NodeKind, Opened, Progress, Result, Severity,
};
use packfs_terminal::report;
use sha2::{Digest, Sha256};

/// Default name of the attribute, which Linux does not list.
const NAME: &str = "erofs.fingerprint.v1";

/// Prefix of each value; 32 bytes of a SHA-256 follow.
const ALGORITHM: &[u8] = b"sha256:";

const PART_LEN: u64 = 1 << 20;

const ZEROS_LEN: usize = 64 << 10;

/// Limit of a file's holes, which take no space in an image, but time to hash.
const HOLES_LEN_MAX: u64 = 1 << 40;

/// `value` is that of `--xattr-inode-digest`.
pub fn name_of(value: &str) -> &str {
    if value.is_empty() { NAME } else { value }
}

/// Empty files get no attribute.
pub fn added(loaded: Loaded, name: &str, progress: &dyn Progress) -> Result<Loaded> {
    let contents = loaded.contents.clone();
    trees::edited(loaded, true, |path, node, edit| {
        if let (&NodeKind::File { len: len @ 1.., content }, false) = (&node.kind, edit.is_link) {
            let digest = digest(&*contents, content, len, progress);
            let digest =
                digest.map_err(
                    |error| if contents.names_files() { error } else { error.at(format!("{path:?}")) },
                )?;
            edit.xattrs.insert(name.into(), [ALGORITHM, &digest].concat());
        }
        Ok(true)
    })
}

/// Reports files whose digest differs or that cannot be read. Files without a digest are reported
/// on standard error; empty files are skipped.
///
/// Errors: `Failed` if the image has no digests.
pub fn compared(
    opened: &Opened,
    loaded: &LoadedVolume,
    progress: &dyn Progress,
    found: &mut dyn FnMut(Finding),
) -> Result<()> {
    if opened.volume().digests().is_none() {
        let hint = "mkfs.erofs --xattr-inode-digest records them";
        return Err(Error::failed("image has no inode digest xattrs").hint(hint));
    }
    for (node, &id) in loaded.tree.nodes().zip(&loaded.inodes) {
        let (node_id, NodeKind::File { len: len @ 1.., .. }) = (node.0, &node.1.kind) else { continue };
        let path = loaded.tree.path(node_id);
        match verdict(opened, Wanted { id, len: *len }, &path, progress) {
            Ok(None) => {}
            Ok(Some(fault)) => found(finding(&path, fault.to_owned())),
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Cancelled) => return Err(error),
            Err(error) => found(finding(&path, error.to_string())),
        }
    }
    Ok(())
}

fn finding(path: &ImagePath, fault: String) -> Finding {
    Finding::new(Severity::Error, format!("{path:?}"), fault)
}

fn verdict(
    opened: &Opened,
    file: Wanted,
    path: &ImagePath,
    progress: &dyn Progress,
) -> Result<Option<&'static str>> {
    let digests = opened.volume().digests();
    let Some(value) = digests.map_or(Ok(None), |digests| digests.recorded_digest(file.id))? else {
        report::note(format_args!("<W> erofs: {path:?}: no digest xattr, skipped"));
        return Ok(None);
    };
    let Some(recorded) = value.strip_prefix(ALGORITHM).filter(|digest| digest.len() == 32) else {
        return Ok(Some("unidentified digest xattr"));
    };
    let (mut hash, mut holes) = (Sha256::new(), 0_u64);
    let zeros = [0; ZEROS_LEN];
    opened.engine().in_file_order(&[file], progress, &mut |_, piece| {
        match piece {
            Piece::Data { bytes, .. } => hash.update(&**bytes),
            Piece::Hole { mut len, .. } => {
                holes = holes.saturating_add(len);
                if holes > HOLES_LEN_MAX {
                    return Err(Error::limit(
                        "erofs image",
                        "holes of over 1 TiB in a file, which were not hashed",
                    ));
                }
                while len > 0 && !progress.cancelled() {
                    let part = len.min(ZEROS_LEN as u64);
                    hash.update(zeros.get(..usize::try_from(part).unwrap_or_default()).unwrap_or_default());
                    len -= part;
                }
            }
            Piece::End => {}
        }
        Ok(())
    })?;
    Ok((*hash.finalize() != *recorded).then_some("digest MISMATCH"))
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
