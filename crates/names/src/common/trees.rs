//! Joined trees of several sources, and changes of every node.

use packfs::source::{JoinedContents, Loaded, Notes, Shape};
use packfs::{
    ContentId, Edited, ImagePath, Meta, Node, NodeId, NodeKind, Progress, Result, Source, TreeBuilder,
    TreeEdit,
};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Drops names, with everything below, for which `change` returns false. Without `links`, each name
/// becomes a separate file.
pub fn edited(
    loaded: Loaded,
    links: bool,
    mut change: impl FnMut(&ImagePath, &Node, &mut Edited) -> Result<bool>,
) -> Result<Loaded> {
    let tree = &loaded.tree;
    let edit = TreeEdit::new(tree, tree.node(NodeId::ROOT).meta);
    let edit = if links { edit } else { edit.unlinked() };
    let tree = edit.change(|path, id, edited| change(path, tree.node(id), edited))?.finish()?;
    Ok(Loaded { tree, ..loaded })
}

pub fn empty(root: Meta) -> Result<Loaded> {
    let tree = TreeBuilder::new(root).finish()?;
    Ok(Loaded { tree, contents: Arc::new(JoinedContents::default()), notes: Notes::default() })
}

pub struct Part {
    /// Includes the directories above `place`.
    pub loaded: Loaded,
    /// Path in the whole tree.
    pub place: ImagePath,
    /// Path of this machine.
    pub host: PathBuf,
}

/// Merges directories, and names of one file. The parts of directories above come first.
pub fn joined(root: Meta, parts: Vec<Part>) -> Result<Loaded> {
    let mut builder = TreeBuilder::new(root);
    let mut contents = JoinedContents::default();
    let mut notes = Notes::default();
    let mut first_id = 0;
    let mut firsts = HashMap::new();
    for part in parts {
        let behind = graft(&mut builder, &part, first_id, &mut firsts)?;
        contents.push(first_id, part.loaded.contents);
        first_id = behind;
        notes.left_out += part.loaded.notes.left_out;
        notes.unreadable.extend(part.loaded.notes.unreadable);
    }
    Ok(Loaded { tree: builder.finish()?, contents: Arc::new(contents), notes })
}

/// `firsts` are the first names of files with several. Returns the next free content id.
fn graft(
    builder: &mut TreeBuilder,
    part: &Part,
    first_id: u64,
    firsts: &mut HashMap<(u64, u64), ImagePath>,
) -> Result<u64> {
    let (mut behind, tree) = (first_id, &part.loaded.tree);
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        let node = tree.node(id);
        if !path.starts_with(&part.place) {
            continue;
        }
        if !node.is_dir()
            && let Some(identity) = part.identity(path)
        {
            match firsts.get(&identity) {
                Some(first) if first == path => continue,
                Some(first) => {
                    builder.link(path, first.clone())?;
                    continue;
                }
                None => firsts.insert(identity, path.clone()),
            };
        }
        let kind = match node.kind {
            NodeKind::File { len, content } => {
                let id = first_id.saturating_add(content.0);
                behind = behind.max(id.saturating_add(1));
                NodeKind::File { len, content: ContentId(id) }
            }
            ref kind => kind.clone(),
        };
        builder.add(path, kind, node.meta, tree.xattrs(node.xattrs).clone())?;
    }
    Ok(behind)
}

impl Part {
    /// `None` for a file with one name.
    fn identity(&self, path: &ImagePath) -> Option<(u64, u64)> {
        let mut host = self.host.clone();
        let below = path.names().skip(self.place.names().count());
        below.for_each(|name| host.push(OsStr::from_bytes(name.as_bytes())));
        let found = host.symlink_metadata().ok().filter(|found| found.nlink() > 1)?;
        Some((found.dev(), found.ino()))
    }
}

/// The file becomes the only entry of the root. A symbolic link is one, too, unless links are
/// followed.
pub fn load_one(path: &Path, shape: &Shape, progress: &dyn Progress) -> Result<Loaded> {
    let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let Some(name) = path.file_name().filter(|_| is_link && !shape.follow_symlinks) else {
        return Source::Entries(vec![path.into()]).load(shape, progress);
    };
    // Links are followed if they are the only source.
    let other = if name == "null" { "/dev/zero" } else { "/dev/null" };
    let loaded = Source::Entries(vec![path.into(), other.into()]).load(shape, progress)?;
    edited(loaded, true, |_, node, _| Ok(!matches!(node.kind, NodeKind::CharDevice(_))))
}
