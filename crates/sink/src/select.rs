//! Which paths of an image are meant: exact paths (with all below them) and globs.
//!
//! A pattern is followed name by name from the root down, so it works on a whole [`Tree`] and on a
//! volume that is read directory by directory alike, and subtrees that cannot match are never
//! entered. Paths are bytes; names need not be UTF-8. A pattern that matches nothing is an error
//! that names it.

use crate::glob::Glob;
use packfs_core::{Error, ImagePath, MostSimilar, Name, NodeId, Result, Tree, escaped};
use std::cell::{Cell, RefCell};

/// A path or glob as the user typed it.
///
/// `*`, `?` and `[...]` stay within one name; `**` as a whole component stands for any number of
/// names, none included. What matches brings everything below it along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: Vec<u8>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Exactly this name.
    Exact(Vec<u8>),
    /// A name like this.
    Like(Glob),
    /// Any number of names.
    AnyDepth,
}

impl Pattern {
    /// Reads a pattern; leading, doubled and trailing slashes and `.` components do not matter.
    ///
    /// Errors: `Usage` for what no path in an image can be: `..`, a NUL byte, a plain component
    /// over 255 bytes.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let mut steps = Vec::new();
        for component in text.split(|&b| b == b'/').filter(|c| !c.is_empty() && *c != b".") {
            steps.push(match component {
                b"**" => Step::AnyDepth,
                glob if Glob::is_pattern(glob) && !glob.contains(&0) => Step::Like(Glob::parse(glob)),
                plain => {
                    let name = Name::new(plain)
                        .map_err(|fault| Error::usage(format!("path \"{}\": {fault}", escaped(text))))?;
                    Step::Exact(name.as_bytes().to_vec())
                }
            });
        }
        Ok(Pattern { text: text.to_vec(), steps })
    }

    /// The pattern for one path and all below it, whatever characters its names hold.
    pub fn exact(path: &ImagePath) -> Self {
        let steps = path.names().map(|name| Step::Exact(name.as_bytes().to_vec())).collect();
        Pattern { text: path.as_bytes().to_vec(), steps }
    }

    /// As the user typed it.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    fn is_plain(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::Exact(_)))
    }
}

/// How far each pattern has got on the way to some directory: pattern and step, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reached(Vec<(u32, u32)>);

impl Reached {
    /// Whether nothing at this place or below can match any more.
    pub(crate) fn is_dead(&self) -> bool {
        self.0.is_empty()
    }
}

/// Several patterns followed together; without any, everything is meant.
#[derive(Debug)]
pub(crate) struct Selection {
    patterns: Vec<Pattern>,
    matched: Vec<Cell<bool>>,
    /// For each pattern that is a path: how many of its names were found, and the one most like the
    /// next.
    missed: RefCell<Vec<(u32, MostSimilar)>>,
}

impl Selection {
    /// Takes the patterns; one that `exists` as a path is that path, whatever glob characters its
    /// names hold.
    pub(crate) fn new(
        patterns: &[Pattern],
        mut exists: impl FnMut(&ImagePath) -> Result<bool>,
    ) -> Result<Self> {
        let mut own = patterns.to_vec();
        for pattern in own.iter_mut().filter(|pattern| !pattern.is_plain()) {
            if let Ok(path) = ImagePath::parse(&pattern.text)
                && exists(&path)?
            {
                *pattern = Pattern { text: pattern.text.clone(), ..Pattern::exact(&path) };
            }
        }
        let matched = vec![Cell::new(false); own.len()];
        let missed = RefCell::new(vec![(0, MostSimilar::default()); own.len()]);
        Ok(Selection { patterns: own, matched, missed })
    }

    /// The state at the root.
    pub(crate) fn start(&self) -> Reached {
        let mut reached = Reached::default();
        for pattern in 0..self.patterns.len() {
            self.put(&mut reached, pattern as u32, 0);
        }
        reached
    }

    /// The state one name further down.
    pub(crate) fn step(&self, at: &Reached, name: &[u8]) -> Reached {
        let mut reached = Reached::default();
        for &(pattern, step) in &at.0 {
            match self.patterns[pattern as usize].steps.get(step as usize) {
                Some(Step::Exact(own)) if own == name => {
                    self.deepen(pattern, step + 1);
                    self.put(&mut reached, pattern, step + 1);
                }
                Some(Step::Like(glob)) if glob.matches(name) => self.put(&mut reached, pattern, step + 1),
                Some(Step::Exact(own)) => self.look(pattern, step, own, name),
                Some(Step::AnyDepth) => self.put(&mut reached, pattern, step),
                _ => {}
            }
        }
        reached
    }

    /// Remembers a name that a path may have meant.
    fn look(&self, pattern: u32, step: u32, wanted: &[u8], name: &[u8]) {
        let index = pattern as usize;
        if self.matched[index].get() || !self.patterns[index].is_plain() {
            return;
        }
        let (deepest, similar) = &mut self.missed.borrow_mut()[index];
        if step == *deepest {
            similar.look(wanted, name);
        }
    }

    /// Remembers that so many names of a path were found.
    fn deepen(&self, pattern: u32, step: u32) {
        let missed = &mut self.missed.borrow_mut()[pattern as usize];
        if step > missed.0 {
            *missed = (step, MostSimilar::default());
        }
    }

    /// The path that may have been meant by one that is not there.
    fn meant(&self, pattern: usize) -> Option<Vec<u8>> {
        let missed = self.missed.borrow();
        let (deepest, similar) = &missed[pattern];
        let found = self.patterns[pattern].steps.iter().take(*deepest as usize);
        let mut path: Vec<u8> = Vec::new();
        for step in found {
            if let Step::Exact(name) = step {
                path.extend_from_slice(name);
                path.push(b'/');
            }
        }
        path.extend_from_slice(similar.name()?);
        Some(path)
    }

    /// Adds a position, and those that follow from it because `**` may stand for nothing.
    fn put(&self, reached: &mut Reached, pattern: u32, mut step: u32) {
        loop {
            let position = (pattern, step);
            if let Err(place) = reached.0.binary_search(&position) {
                reached.0.insert(place, position);
            }
            if !matches!(self.patterns[pattern as usize].steps.get(step as usize), Some(Step::AnyDepth)) {
                return;
            }
            step += 1;
        }
    }

    /// Whether this place is meant itself; remembers the patterns that say so.
    pub(crate) fn accepts(&self, at: &Reached) -> bool {
        let mut accepted = self.patterns.is_empty();
        for &(pattern, step) in &at.0 {
            if step as usize == self.patterns[pattern as usize].steps.len() {
                self.matched[pattern as usize].set(true);
                accepted = true;
            }
        }
        accepted
    }

    /// Fails, naming it, if some pattern has matched nothing.
    pub(crate) fn finish(&self) -> Result<()> {
        let Some(missed) = self.matched.iter().position(|matched| !matched.get()) else { return Ok(()) };
        let pattern = &self.patterns[missed];
        let text = escaped(&pattern.text);
        Err(if pattern.is_plain() {
            let error = Error::failed(format!("\"{text}\": no such path in the image"));
            match self.meant(missed) {
                Some(path) => error.hint(format!("did you mean \"{}\"?", escaped(&path))),
                None => error,
            }
        } else {
            Error::failed(format!("\"{text}\": nothing in the image matches"))
                .hint("* and ? stop at a slash; ** stands for any number of directories")
        })
    }
}

/// The entries of a tree that are meant, by their position in [`Tree::walk`] (the root is 0).
pub(crate) enum Chosen {
    /// Every one.
    All,
    /// Those that are `true`: what matched, all below it, and the directories on the way to it.
    Some(Vec<bool>),
}

impl Chosen {
    /// Finds what `patterns` mean in `tree`; none mean everything.
    ///
    /// Errors: `Failed` for a pattern that matches nothing.
    pub(crate) fn new(tree: &Tree, patterns: &[Pattern]) -> Result<Self> {
        if patterns.is_empty() {
            return Ok(Chosen::All);
        }
        let selection = Selection::new(patterns, |path| Ok(tree.find(path).is_some()))?;
        let mut chosen = vec![false; tree.entry_count() + 1];
        // Of each directory from the root down: its position, its state, whether it lies in
        // something that matched.
        let mut open: Vec<(usize, Reached, bool)> = Vec::new();
        let start = selection.start();
        let root_in = selection.accepts(&start);
        let mut position = 0;
        chosen[0] = root_in;
        walk(tree, |depth, entry| {
            position += 1;
            if depth == 1 && open.is_empty() {
                open.push((0, start.clone(), root_in));
            }
            open.truncate(depth);
            let (_, reached, inside) = &open[depth - 1];
            let reached =
                if reached.is_dead() { Reached::default() } else { selection.step(reached, entry.name) };
            let taken = selection.accepts(&reached) || *inside;
            if taken {
                chosen[position] = true;
                for &(parent, ..) in open.iter().rev() {
                    if std::mem::replace(&mut chosen[parent], true) {
                        break;
                    }
                }
            }
            if tree.node(entry.node).is_dir() {
                open.push((position, reached, taken));
            }
        });
        selection.finish()?;
        Ok(Chosen::Some(chosen))
    }

    /// Whether the entry at this position of the walk is meant.
    pub(crate) fn has(&self, position: usize) -> bool {
        match self {
            Chosen::All => true,
            Chosen::Some(chosen) => chosen.get(position).copied().unwrap_or(false),
        }
    }
}

/// An entry met by [`walk`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met<'t> {
    /// The directory it is in.
    pub dir: NodeId,
    /// Its name.
    pub name: &'t [u8],
    /// What it names.
    pub node: NodeId,
}

/// Calls `visit` for each entry in the order of [`Tree::walk`], the root left out, with the depth
/// (1 below the root), and without building paths.
pub(crate) fn walk<'t>(tree: &'t Tree, mut visit: impl FnMut(usize, Met<'t>)) {
    let mut open = vec![(NodeId::ROOT, tree.entries(NodeId::ROOT))];
    loop {
        let depth = open.len();
        let Some((dir, entries)) = open.last_mut() else { return };
        let dir = *dir;
        let Some(entry) = entries.next() else {
            open.pop();
            continue;
        };
        visit(depth, Met { dir, name: entry.name, node: entry.node });
        if tree.node(entry.node).is_dir() {
            open.push((entry.node, tree.entries(entry.node)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{ContentId, Meta, NodeKind, TreeBuilder, Xattrs};

    fn tree() -> Tree {
        let mut builder = TreeBuilder::new(Meta::default());
        for path in [
            &b"bin/sh"[..],
            b"bin/[",
            b"etc/fstab",
            b"etc/ssh/config",
            b"usr/lib/a.so",
            b"usr/lib/x/b.so",
            b"usr/\xff\xfe",
        ] {
            let path = ImagePath::parse(path).unwrap();
            let kind = NodeKind::File { len: 0, content: ContentId(0) };
            builder.add(&path, kind, Meta::default(), Xattrs::new()).unwrap();
        }
        builder.finish().unwrap()
    }

    fn chosen(patterns: &[&[u8]]) -> Result<Vec<String>> {
        let tree = tree();
        let patterns: Vec<_> = patterns.iter().map(|text| Pattern::parse(text).unwrap()).collect();
        let chosen = Chosen::new(&tree, &patterns)?;
        let mut walk = tree.walk();
        let mut position = 0;
        let mut paths = Vec::new();
        while let Some((path, _)) = walk.next() {
            if chosen.has(position) {
                paths.push(path.to_string());
            }
            position += 1;
        }
        Ok(paths)
    }

    #[test]
    fn no_pattern_means_everything() {
        assert_eq!(chosen(&[]).unwrap().len(), 14);
        assert_eq!(chosen(&[b"/"]).unwrap().len(), 14);
    }

    #[test]
    fn an_exact_path_brings_its_subtree_and_the_directories_above() {
        assert_eq!(chosen(&[b"/etc/ssh/"]).unwrap(), ["/", "etc", "etc/ssh", "etc/ssh/config"]);
    }

    #[test]
    fn globs_stay_within_one_name_and_double_stars_do_not() {
        assert_eq!(chosen(&[b"usr/lib/*.so"]).unwrap(), ["/", "usr", "usr/lib", "usr/lib/a.so"]);
        let all = ["/", "usr", "usr/lib", "usr/lib/a.so", "usr/lib/x", "usr/lib/x/b.so"];
        assert_eq!(chosen(&[b"**/*.so"]).unwrap(), all);
        assert_eq!(chosen(&[b"usr/**/*.so"]).unwrap(), all);
    }

    #[test]
    fn a_path_that_exists_is_taken_literally_even_if_it_looks_like_a_glob() {
        assert_eq!(chosen(&[b"bin/["]).unwrap(), ["/", "bin", "bin/["]);
    }

    #[test]
    fn names_that_are_no_utf8_can_be_chosen() {
        assert_eq!(chosen(&[b"usr/\xff\xfe"]).unwrap(), ["/", "usr", "usr/\\xff\\xfe"]);
        assert_eq!(chosen(&[b"usr/\xff*"]).unwrap(), ["/", "usr", "usr/\\xff\\xfe"]);
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_an_error_that_names_it() {
        let error = chosen(&[b"bin", b"etc/*.conf"]).unwrap_err().to_string();
        assert!(error.contains("etc/*.conf"), "{error}");
        let error = chosen(&[b"bin/bash"]).unwrap_err().to_string();
        assert!(error.contains("bin/bash") && error.contains("no such path"), "{error}");
    }

    #[test]
    fn a_pattern_inside_what_another_brings_along_counts_as_matched() {
        assert_eq!(chosen(&[b"etc", b"etc/fstab"]).unwrap().len(), 5);
    }

    #[test]
    fn refuses_patterns_that_no_path_can_match() {
        assert!(Pattern::parse(b"../etc").is_err());
        assert!(Pattern::parse(b"a\0b").is_err());
    }
}
