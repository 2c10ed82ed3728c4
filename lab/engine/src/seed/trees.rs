//! The trees of a document: given, or made once and kept, and cut down where minutes have to do.

use std::path::{Path, PathBuf};

use packfs::{Error, Result};

use super::{Document, DocumentRequest, Roles};
use crate::scratch::Scratch;
use crate::trees::{PlannedTree, TreeKind, make_large, make_part, make_tar, planned};

/// Large files of sessions of minutes are this much of the full ones.
const LARGE_QUICK: u64 = 40 << 20;

/// Trees that the user names: `DIR` for every one of the document, or `debian=DIR` for one of them.
#[derive(Clone, Debug, Default)]
pub struct SeedTrees {
    every: Option<PathBuf>,
    named: Vec<(TreeKind, PathBuf)>,
}

impl SeedTrees {
    /// Reads what the user typed.
    ///
    /// Errors: `Usage` if a tree is named that the document does not have, or twice, or two stand
    /// for every one.
    pub fn parse(document: &Document, typed: &[String]) -> Result<Self> {
        let mut trees = Self::default();
        for text in typed {
            let kind = text.split_once('=').and_then(|(name, dir)| Some((TreeKind::named(name).ok()?, dir)));
            match kind {
                Some((kind, _)) if trees.named.iter().any(|(named, _)| *named == kind) => {
                    let error = format!("the tree {} is given twice", kind.row().name);
                    return Err(Error::usage(error).hint("each name takes one DIR"));
                }
                Some((kind, dir)) if document.trees.contains(&kind) => trees.named.push((kind, dir.into())),
                Some((kind, _)) => {
                    let own: Vec<_> = document.trees.iter().map(|kind| &*kind.row().name).collect();
                    let error = format!("{} does not measure on {}", document.name, kind.row().name);
                    return Err(Error::usage(error).hint(format!("its trees are {}", own.join(", "))));
                }
                None if trees.every.is_some() => {
                    return Err(Error::usage("two trees stand for every one of the document")
                        .hint("write NAME=DIR, such as debian=DIR"));
                }
                None => trees.every = Some(text.into()),
            }
        }
        Ok(trees)
    }

    fn given(&self, kind: TreeKind) -> Option<&Path> {
        let named = self.named.iter().find(|(named, _)| *named == kind).map(|(_, dir)| dir.as_path());
        // One large file is made of the tree that is given, as any tree will do for that.
        named.or(self.every.as_deref().filter(|_| kind != TreeKind::Large))
    }
}

/// Finds the trees of a document; those that are not given are made in `kept`, once. Smaller ones
/// are made in the scratch.
///
/// Errors: `Usage` if two different trees would go by one name; a tree cannot be made, as this is
/// not root or a program is not here.
pub fn prepare(
    document: &Document,
    given: &SeedTrees,
    asked: &DocumentRequest,
    kept: &Path,
    scratch: &Scratch,
    note: &dyn Fn(&str),
) -> Result<Roles> {
    let (mut roles, mut names) = (Roles::default(), Names::default());
    for &kind in &document.trees {
        let main = roles.0.first().map(|tree| tree.path.clone());
        let tree = match given.given(kind) {
            // The same folder may stand for several: then it is one tree.
            Some(dir) => {
                let is_own = given.named.iter().any(|(named, _)| *named == kind);
                planned(dir, is_own.then_some(&*kind.row().name), None)?
            }
            None if kind == TreeKind::Large => {
                let dir = scratch.path("large");
                names.check(&kind.row().name, &dir)?;
                note("making one large file");
                let len = asked.settings.quick.then_some(LARGE_QUICK);
                let from = main.ok_or_else(|| Error::usage("one large file is made of a tree"))?;
                make_large(&from, &dir, len)?;
                planned(&dir, Some("large"), Some(&kind.row().made_by))?
            }
            None => {
                names.check(&kind.row().name, &kept.join(&kind.row().name))?;
                kept_tree(kind, kept, note)?
            }
        };
        names.take(&tree)?;
        let bytes = asked.tree_bytes(document);
        let tree = match bytes.filter(|_| kind != TreeKind::Large) {
            Some(bytes) => smaller(
                tree,
                &Cut { bytes, wanted: &document.wanted, seed: asked.settings.seed },
                scratch,
                note,
            )?,
            None => tree,
        };
        roles.0.push(if document.as_tar { as_tar(tree, scratch, note)? } else { tree });
    }
    Ok(roles)
}

/// By which names trees go, and where these lie before anything is made of them.
#[derive(Debug, Default)]
struct Names(Vec<(String, PathBuf)>);

impl Names {
    /// That no other tree than the one at `path`, which may have to be made yet, goes by a name:
    /// figures of two would stand in one row.
    fn check(&self, name: &str, path: &Path) -> Result<()> {
        let path = whole(path);
        let Some((_, other)) = self.0.iter().find(|(taken, other)| taken == name && *other != path) else {
            return Ok(());
        };
        let error = format!("two trees would go by the name {name:?}: {other:?} and {path:?}");
        Err(Error::usage(error)
            .hint("NAME=DIR has a tree go by its name in the document, such as debian=DIR"))
    }

    fn take(&mut self, tree: &PlannedTree) -> Result<()> {
        self.check(&tree.facts.id, &tree.path)?;
        self.0.push((tree.facts.id.clone(), whole(&tree.path)));
        Ok(())
    }
}

/// The same for all spellings of one path, if something is there.
fn whole(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// A tree of the folder where they are kept, made if it is not there.
fn kept_tree(kind: TreeKind, kept: &Path, note: &dyn Fn(&str)) -> Result<PlannedTree> {
    let row = kind.row();
    let dir = kept.join(&row.name);
    if !dir.is_dir() {
        note(&format!("making the tree {} in {dir:?}, once: {}", row.name, row.about));
        let hint = format!("--tree {}=DIR names one that is there", row.name);
        kind.make(&dir, None).map_err(|error| error.hint(hint))?;
    }
    planned(&dir, Some(&row.name), Some(&row.made_by))
}

fn as_tar(tree: PlannedTree, scratch: &Scratch, note: &dyn Fn(&str)) -> Result<PlannedTree> {
    if tree.path.is_file() {
        return Ok(tree);
    }
    note(&format!("making a tar of {}", tree.facts.id));
    let id = format!("{}.tar", tree.facts.id);
    let path = scratch.path(&id);
    make_tar(&tree.path, &path)?;
    let made_by = format!("tar --create --format=posix --sort=name --xattrs of {}", tree.facts.made_by);
    planned(&path, Some(&id), Some(&made_by))
}

struct Cut<'a> {
    bytes: u64,
    wanted: &'a [String],
    seed: u64,
}

fn smaller(tree: PlannedTree, cut: &Cut<'_>, scratch: &Scratch, note: &dyn Fn(&str)) -> Result<PlannedTree> {
    // What is hardly larger is taken whole.
    if tree.path.is_file() || tree.facts.bytes <= cut.bytes / 2 * 3 {
        return Ok(tree);
    }
    let dir = scratch.path(&format!("part-of-{}", tree.facts.id.replace('/', "-")));
    if !dir.exists() {
        note(&format!("copying a part of {}", tree.facts.id));
        make_part(&tree.path, cut.bytes, cut.wanted, cut.seed, &dir)?;
    }
    let made_by = format!(
        "whole folders of {}, drawn by lot, about {} MiB ({})",
        tree.facts.id,
        cut.bytes >> 20,
        tree.facts.made_by
    );
    planned(&dir, Some(&tree.facts.id), Some(&made_by))
}
