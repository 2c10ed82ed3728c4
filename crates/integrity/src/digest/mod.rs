//! The digest of a tree: equal for a directory, a tar archive and an image of any format with the
//! same contents. docs/formats/digest.md specifies the hashed bytes. A directory has the same
//! digest as a separate tree with its contents, so two trees can be compared remotely, directory by
//! directory.

mod content;
mod facts;
mod hashing;
mod links;
mod record;

use content::Hash;
pub use facts::DigestFacts;
use links::LinkedNames;
use packfs_core::{Contents, Error, ImagePath, NodeId, Progress, Result, Stage, Tree, from_hex, to_hex};
use record::Record;
use std::fmt;
use std::str::FromStr;

/// Prefix of every digest: the version of the rules.
const VERSION: &str = "packfs-tree-1";

/// The digest of a tree, with the attributes that it covers.
///
/// Printed as `packfs-tree-1:sha256:` and 64 hexadecimal digits; a selection other than the default
/// follows the version, as in `packfs-tree-1/mode+links:sha256:...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TreeDigest {
    /// Attributes covered.
    pub facts: DigestFacts,
    /// SHA-256.
    pub hash: [u8; 32],
}

/// A string, as printed.
#[cfg(feature = "serde")]
impl serde::Serialize for TreeDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
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

    /// Errors: `Usage` for an invalid digest; `Unsupported` for one of another version.
    fn from_str(text: &str) -> Result<Self> {
        let refuse = || {
            let error = Error::usage(format!("{text:?} is not the digest of a tree"));
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
    hashes: Vec<Hash>,
    linked: LinkedNames,
}

/// Reads and hashes all contents with `jobs` threads; 0 means one per CPU.
///
/// Errors: the first read error in the order of nodes; `Cancelled`.
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
    // Directories precede their entries.
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
    /// Returns the digest of the whole tree.
    pub fn root(&self) -> TreeDigest {
        self.directory(&ImagePath::root(), NodeId::ROOT)
    }

    /// Calls `each` with the directories down to `depth` names below the root, in path order, and
    /// the digest of each as a separate tree.
    ///
    /// Errors: those of `each`.
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
