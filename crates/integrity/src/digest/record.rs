//! The bytes that represent a node in a digest, as specified in docs/formats/digest.md: no
//! alignment, no separators, all numbers 64 bits little-endian, each string preceded by its length.

use super::content::{Hash, sha256};
use super::facts::DigestFacts;
use packfs_core::{NodeId, NodeKind, Tree};

/// Permissions that Linux shows for symbolic links.
const SYMLINK_MODE: u16 = 0o777;

#[derive(Default)]
pub(super) struct Record(Vec<u8>);

impl Record {
    pub(super) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn text(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn plain(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn hash(&self) -> Hash {
        sha256(&self.0)
    }
}

/// `hashes` contains those of files' contents, or of the directory's entries. If `nameless` (the
/// root of the digest), attributes count only if [`DigestFacts::root`] is set.
pub(super) fn hash(tree: &Tree, id: NodeId, hashes: &[Hash], facts: DigestFacts, nameless: bool) -> Hash {
    let node = tree.node(id);
    let mut record = Record::default();
    record.plain(&[node.kind.file_type().letter() as u8]);
    if facts.root || !nameless {
        own_facts(&mut record, tree, id, facts);
    }
    match &node.kind {
        NodeKind::Directory => {
            let entries = tree.entries(id);
            record.number(entries.len() as u64);
            for entry in entries {
                record.text(entry.name);
                record.plain(&hashes[entry.node.index()]);
            }
        }
        NodeKind::File { len, .. } => {
            record.number(*len);
            record.plain(&hashes[id.index()]);
        }
        NodeKind::Symlink(target) => record.text(target),
        NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => {
            record.number(number.major.into());
            record.number(number.minor.into());
        }
        NodeKind::Fifo | NodeKind::Socket => {}
    }
    record.hash()
}

fn own_facts(record: &mut Record, tree: &Tree, id: NodeId, facts: DigestFacts) {
    let node = tree.node(id);
    if facts.mode {
        let is_symlink = matches!(node.kind, NodeKind::Symlink(_));
        record.number(if is_symlink { SYMLINK_MODE } else { node.meta.mode }.into());
    }
    if facts.owner {
        record.number(node.meta.owner.uid.into());
        record.number(node.meta.owner.gid.into());
    }
    if facts.mtime {
        record.number(node.meta.mtime.seconds.cast_unsigned());
    }
    if facts.nanos {
        record.number(node.meta.mtime.nanos.into());
    }
    if facts.xattrs {
        let xattrs = tree.xattrs(node.xattrs);
        record.number(xattrs.len() as u64);
        for (name, value) in xattrs {
            record.text(name);
            record.text(value);
        }
    }
}
