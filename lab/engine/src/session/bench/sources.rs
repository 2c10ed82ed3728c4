//! The trees that images are made of, in the forms that makers take, and their lists of files.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use packfs::{Error, Result, ResultExt};

use crate::scratch::Scratch;
use crate::subject::Input;
use crate::trees::{PlannedTree, make_tar};
use crate::workload::{Listed, Lists, Workload};

/// Block of most filesystems, in bytes.
const BLOCK: u64 = 4096;
/// Bytes that a tar has beside a file's own, at most as a rule: its header, a further one of pax
/// with its data, and what is rounded up.
const TAR_ENTRY: u64 = 2048;

pub(super) struct Sources {
    trees: HashMap<String, Source>,
    /// Trees that are in memory, as far as the kernel keeps them.
    warm: HashSet<String>,
}

struct Source {
    path: PathBuf,
    bytes: u64,
    entries: u64,
    number: usize,
    is_tar: bool,
    lists: Lists,
    tar: Option<PathBuf>,
}

impl Sources {
    pub(super) fn new(trees: &[PlannedTree], seed: u64) -> Self {
        let source = |(number, tree): (usize, &PlannedTree)| Source {
            number,
            path: tree.path.clone(),
            bytes: tree.facts.bytes,
            entries: tree.facts.files + tree.facts.dirs + tree.facts.others,
            is_tar: tree.path.is_file(),
            lists: Lists::new(tree.path.clone(), seed),
            tar: None,
        };
        let trees = trees.iter().enumerate();
        let trees = trees.map(|tree| (tree.1.facts.id.clone(), source(tree))).collect();
        Self { trees, warm: HashSet::new() }
    }

    fn get(&self, id: &str) -> Result<&Source> {
        self.trees.get(id).ok_or_else(|| Error::usage(format!("the plan has no tree {id:?}")))
    }

    /// Bytes in files of a tree.
    pub(super) fn bytes(&self, id: &str) -> u64 {
        self.trees.get(id).map_or(0, |source| source.bytes)
    }

    /// Bytes that a copy of a tree takes at most, where files take whole blocks.
    pub(super) fn copied_len(&self, id: &str) -> u64 {
        self.trees.get(id).map_or(0, |source| source.bytes + source.entries * BLOCK)
    }

    /// Bytes of the tar that has yet to be made for those who take nothing else; 0 if there is one.
    pub(super) fn tar_len(&self, id: &str) -> u64 {
        let source = self.trees.get(id).filter(|source| !source.is_tar && source.tar.is_none());
        source.map_or(0, |source| source.bytes + source.entries * TAR_ENTRY)
    }

    /// True if a tree is given as a tar.
    pub(super) fn is_tar(&self, id: &str) -> bool {
        self.trees.get(id).is_some_and(|source| source.is_tar)
    }

    pub(super) fn path(&self, id: &str) -> Result<&Path> {
        self.get(id).map(|source| source.path.as_path())
    }

    /// A tree as a maker takes it: as it is, or, if only a tar will do, as a tar that is made in
    /// the scratch once.
    pub(super) fn input(&mut self, id: &str, as_tar: bool, scratch: &Scratch) -> Result<Input> {
        let source = self.get(id)?;
        if source.is_tar {
            return Ok(Input::Tar(source.path.clone()));
        }
        if !as_tar {
            return Ok(Input::Dir(source.path.clone()));
        }
        if let Some(tar) = &source.tar {
            return Ok(Input::Tar(tar.clone()));
        }
        // One that an earlier attempt left unfinished is written over.
        let path = scratch.path(&format!("tree-{}.tar", source.number));
        make_tar(&source.path, &path)?;
        if let Some(source) = self.trees.get_mut(id) {
            source.tar = Some(path.clone());
        }
        Ok(Input::Tar(path))
    }

    /// The files that a workload reads; none if it takes no list.
    pub(super) fn listed(&self, id: &str, workload: Workload) -> Result<Option<Vec<Listed>>> {
        self.get(id)?.lists.of(workload)
    }

    pub(super) fn largest(&self, id: &str) -> Result<Option<Listed>> {
        Ok(self.get(id)?.lists.largest()?.cloned())
    }

    /// Bytes of the files below a folder of a tree.
    pub(super) fn bytes_below(&self, id: &str, folder: &str) -> Result<u64> {
        let files = self.get(id)?.lists.files()?;
        Ok(files.iter().filter(|file| file.path.starts_with(folder)).map(|file| file.len).sum())
    }

    /// Reads all of a tree, so that it is in memory as far as that reaches.
    pub(super) fn warm(&mut self, id: &str, anew: bool) -> Result<()> {
        if !anew && self.warm.contains(id) {
            return Ok(());
        }
        let source = self.get(id)?;
        if source.is_tar {
            read_all(&source.path)?;
        } else {
            for file in source.lists.files()? {
                read_all(&source.path.join(&file.path))?;
            }
        }
        self.warm.insert(id.to_owned());
        Ok(())
    }

    pub(super) fn cool(&mut self) {
        self.warm.clear();
    }

    /// A text with paths of trees as `TREE`.
    pub(super) fn tidy(&self, text: &str) -> String {
        self.trees.values().fold(text.to_owned(), |text, source| {
            let text = match &source.tar {
                Some(tar) => text.replace(&*tar.to_string_lossy(), "TREE.tar"),
                None => text,
            };
            text.replace(&*source.path.to_string_lossy(), "TREE")
        })
    }
}

fn read_all(path: &Path) -> Result<()> {
    let mut file = File::open(path).or_io(|| format!("cannot open {path:?}"))?;
    io::copy(&mut file, &mut io::sink()).map(drop).or_io(|| format!("cannot read {path:?}"))
}
