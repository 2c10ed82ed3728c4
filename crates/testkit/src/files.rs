//! Trees of a few files.

use packfs_core::{Held, ImagePath, Meta, NodeKind, Tree, TreeBuilder, Xattrs};
use std::sync::Arc;

/// Returns the path that `text` spells.
pub fn path(text: impl AsRef<[u8]>) -> ImagePath {
    ImagePath::parse(text.as_ref()).unwrap()
}

/// Returns a tree of files, by path and contents, which anyone may read.
pub fn tree_of<P: AsRef<[u8]>, B: Into<Arc<[u8]>>>(files: impl IntoIterator<Item = (P, B)>) -> (Tree, Held) {
    let (mut tree, mut held) = (TreeBuilder::new(Meta { mode: 0o755, ..Meta::default() }), Held::default());
    for (name, bytes) in files {
        let bytes = bytes.into();
        let kind = NodeKind::File { len: bytes.len() as u64, content: held.push(bytes) };
        tree.add(&path(name), kind, Meta { mode: 0o644, ..Meta::default() }, Xattrs::new()).unwrap();
    }
    (tree.finish().unwrap(), held)
}
