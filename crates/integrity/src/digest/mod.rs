//! The digest of a tree: the same for a directory, a tar and an image of any format that hold the
//! same.
//!
//! docs/formats/digest.md says what is hashed, byte for byte. A directory within a tree has the
//! digest that it would have as a tree of its own, so that two trees can be compared from afar,
//! directory by directory.

mod content;
mod facts;
mod hashing;
mod links;
mod record;

use crate::hex::{from_hex, to_hex};
use content::Hash;
pub use facts::DigestFacts;
use links::LinkedNames;
use packfs_core::{Contents, Error, ImagePath, NodeId, Progress, Result, Stage, Tree};
use record::Record;
use std::fmt;
use std::str::FromStr;

/// What every digest begins with: the version of the rules.
const VERSION: &str = "packfs-tree-1";

/// The digest of a tree, with the facts that it is about.
///
/// Printed as `packfs-tree-1:sha256:` and 64 hexadecimal digits; other facts than the default stand
/// behind the version, as in `packfs-tree-1/mode+links:sha256:...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TreeDigest {
    /// Which facts it is about.
    pub facts: DigestFacts,
    /// SHA-256.
    pub hash: [u8; 32],
}

impl fmt::Display for TreeDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(VERSION)?;
        if self.facts != DigestFacts::default() {
            write!(f, "/{}", self.facts.spelled())?;
        }
        write!(f, ":sha256:{}", to_hex(&self.hash))
    }
}

impl FromStr for TreeDigest {
    type Err = Error;

    /// Errors: `Usage` for what is no digest of a tree; `Unsupported` for one of another version.
    fn from_str(text: &str) -> Result<Self> {
        let refuse = || {
            let error = Error::usage(format!("{text:?} is no digest of a tree"));
            error.hint(format!("it has the form {VERSION}:sha256: and 64 hexadecimal digits"))
        };
        let mut fields = text.split(':');
        let (Some(rules), Some("sha256"), Some(digits), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err(refuse());
        };
        let (version, facts) = match rules.split_once('/') {
            Some((version, facts)) => (version, DigestFacts::from_spelled(facts).ok_or_else(refuse)?),
            None => (rules, DigestFacts::default()),
        };
        if version != VERSION && version.starts_with("packfs-tree-") {
            return Err(Error::unsupported("digest", format!("{version:?}, known is {VERSION:?}")));
        }
        let hash = from_hex(digits).and_then(|bytes| bytes.try_into().ok());
        match hash {
            Some(hash) if version == VERSION => Ok(TreeDigest { facts, hash }),
            _ => Err(refuse()),
        }
    }
}

/// The digests of a tree and of every directory in it.
pub struct TreeDigests<'a> {
    tree: &'a Tree,
    facts: DigestFacts,
    /// Of each node, by number.
    hashes: Vec<Hash>,
    linked: LinkedNames,
}

/// Reads all contents and hashes everything; `jobs` threads, 0: one for each processor.
///
/// Errors: from reading contents, the first in the order of nodes; `Cancelled`.
pub fn digest_tree<'a>(
    tree: &'a Tree,
    contents: &dyn Contents,
    facts: DigestFacts,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<TreeDigests<'a>> {
    progress.begin(Stage::Hash, tree.file_count(), tree.bytes_total());
    let of_contents = hashing::contents(tree, contents, jobs, progress)?;
    let mut hashes = of_contents.clone();
    for (id, _) in tree.nodes().filter(|(_, node)| !node.is_dir()) {
        hashes[id.index()] = record::hash(tree, id, &of_contents, facts, false);
    }
    // Directories stand before those in them.
    for index in (0..tree.node_count()).rev() {
        let id = NodeId(index);
        if tree.node(id).is_dir() {
            hashes[id.index()] = record::hash(tree, id, &hashes, facts, false);
        }
    }
    let linked = LinkedNames::of(tree);
    Ok(TreeDigests { tree, facts, hashes, linked })
}

impl TreeDigests<'_> {
    /// The digest of the whole tree.
    pub fn root(&self) -> TreeDigest {
        self.directory(&ImagePath::root(), NodeId::ROOT)
    }

    /// Calls `each` with the directories down to so many names below the root, in the order of
    /// paths, and the digest that each has as a tree of its own.
    ///
    /// Errors: of `each`.
    pub fn directories(
        &self,
        depth_max: u32,
        each: &mut dyn FnMut(&ImagePath, TreeDigest) -> Result<()>,
    ) -> Result<()> {
        let mut walk = self.tree.walk();
        while let Some((path, id)) = walk.next() {
            if self.tree.node(id).is_dir() && path.names().count() as u64 <= u64::from(depth_max) {
                each(path, self.directory(path, id))?;
            }
        }
        Ok(())
    }

    fn directory(&self, path: &ImagePath, id: NodeId) -> TreeDigest {
        let mut record = Record::default();
        record.plain(format!("{VERSION}\n{}\n", self.facts.spelled()).as_bytes());
        record.plain(&record::hash(self.tree, id, &self.hashes, self.facts, true));
        if self.facts.links {
            self.linked.write(path, &mut record);
        }
        TreeDigest { facts: self.facts, hash: record.hash() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_as_they_are_printed() {
        let hash = [0xab; 32];
        for facts in [DigestFacts::default(), DigestFacts::NONE, DigestFacts::ALL] {
            let digest = TreeDigest { facts, hash };
            assert_eq!(digest.to_string().parse::<TreeDigest>().unwrap(), digest);
        }
        let default = TreeDigest { facts: DigestFacts::default(), hash }.to_string();
        assert!(default.starts_with("packfs-tree-1:sha256:abab"), "{default}");
        let digits = "ab".repeat(32);
        for (bad, kind) in [
            (format!("packfs-tree-2:sha256:{digits}"), packfs_core::ErrorKind::Unsupported),
            (format!("packfs-tree-1:sha512:{digits}"), packfs_core::ErrorKind::Usage),
            (format!("packfs-tree-1:sha256:{digits}00"), packfs_core::ErrorKind::Usage),
            (format!("packfs-tree-1/links+mode:sha256:{digits}"), packfs_core::ErrorKind::Usage),
            (format!("sha256:{digits}"), packfs_core::ErrorKind::Usage),
        ] {
            assert_eq!(bad.parse::<TreeDigest>().unwrap_err().kind(), kind, "{bad}");
        }
    }
}
