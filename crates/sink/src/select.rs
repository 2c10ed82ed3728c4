//! Selection of paths of an image: exact paths (with everything below them) and globs.
//!
//! A pattern is matched name by name from the root down, so it works on a whole [`Tree`] and on a
//! volume read directory by directory, and subtrees that cannot match are never entered. Paths are
//! bytes; names need not be UTF-8. A pattern without a match is an error that names it.

use packfs_core::{Dialect, Error, Glob, ImagePath, MostSimilar, Name, NodeId, Result, Tree, escaped};
use std::cell::{Cell, RefCell};

/// Excludes groups, whose special characters names may contain.
const DIALECT: Dialect = Dialect { characters: true, ..Dialect::PLAIN };

/// A path or glob as the user typed it.
///
/// `*`, `?` and `[...]` match within one name; `**` as a whole component matches any number of
/// names, including none. Everything below a match is included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: Vec<u8>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Exact(Vec<u8>),
    Like(Glob),
    AnyDepth,
}

impl Pattern {
    /// Parses a pattern; leading, doubled and trailing slashes and `.` components are ignored.
    ///
    /// Errors: `Usage` for `..`, a NUL byte, or a plain component over 255 bytes, which no path in
    /// an image contains.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let mut steps = Vec::new();
        for component in text.split(|&b| b == b'/').filter(|c| !c.is_empty() && *c != b".") {
            steps.push(match component {
                b"**" => Step::AnyDepth,
                glob if Glob::is_pattern(glob) && !glob.contains(&0) => Step::Like(Glob::new(glob, DIALECT)),
                plain => {
                    let name = Name::new(plain)
                        .map_err(|fault| Error::usage(format!("path \"{}\": {fault}", escaped(text))))?;
                    Step::Exact(name.as_bytes().to_vec())
                }
            });
        }
        Ok(Pattern { text: text.to_vec(), steps })
    }

    /// Returns the pattern for one path and everything below it; special characters are literal.
    pub fn exact(path: &ImagePath) -> Self {
        let steps = path.names().map(|name| Step::Exact(name.as_bytes().to_vec())).collect();
        Pattern { text: path.as_bytes().to_vec(), steps }
    }

    /// Returns the pattern as the user typed it.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    fn is_plain(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::Exact(_)))
    }
}

/// Pattern and step of each pattern at a directory, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MatchState(Vec<(u32, u32)>);

impl MatchState {
    pub(crate) fn is_dead(&self) -> bool {
        self.0.is_empty()
    }
}

/// Everything matches if there are no patterns.
#[derive(Debug)]
pub(crate) struct Selection {
    patterns: Vec<Pattern>,
    matched: Vec<Cell<bool>>,
    /// Row for each pattern that is a path: the number of its names found, and the name most
    /// similar to the next one.
    missed: RefCell<Vec<(u32, MostSimilar)>>,
}

impl Selection {
    /// A pattern that `exists` as a path is taken literally.
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

    pub(crate) fn start(&self) -> MatchState {
        let mut reached = MatchState::default();
        for pattern in 0..self.patterns.len() {
            self.put(&mut reached, pattern as u32, 0);
        }
        reached
    }

    pub(crate) fn step(&self, at: &MatchState, name: &[u8]) -> MatchState {
        let mut reached = MatchState::default();
        for &(pattern, step) in &at.0 {
            match self.patterns[pattern as usize].steps.get(step as usize) {
                Some(Step::Exact(own)) if own == name => {
                    self.deepen(pattern, step + 1);
                    self.put(&mut reached, pattern, step + 1);
                }
                Some(Step::Like(glob)) if glob.is_match(name) => self.put(&mut reached, pattern, step + 1),
                Some(Step::Exact(own)) => self.look(pattern, step, own, name),
                Some(Step::AnyDepth) => self.put(&mut reached, pattern, step),
                _ => {}
            }
        }
        reached
    }

    /// Records a name of which a path may be a misspelling.
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

    fn deepen(&self, pattern: u32, step: u32) {
        let missed = &mut self.missed.borrow_mut()[pattern as usize];
        if step > missed.0 {
            *missed = (step, MostSimilar::default());
        }
    }

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

    /// Also adds positions reachable because `**` may match nothing.
    fn put(&self, reached: &mut MatchState, pattern: u32, mut step: u32) {
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

    /// Records the patterns that match.
    pub(crate) fn accepts(&self, at: &MatchState) -> bool {
        let mut accepted = self.patterns.is_empty();
        for &(pattern, step) in &at.0 {
            if step as usize == self.patterns[pattern as usize].steps.len() {
                self.matched[pattern as usize].set(true);
                accepted = true;
            }
        }
        accepted
    }

    /// Errors: `Failed` for a pattern that matched nothing.
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
                .hint("* and ? stop at a slash; ** matches any number of directories")
        })
    }
}

pub(crate) enum SelectedEntries {
    All,
    /// `true` for matches, everything below them, and the directories above them.
    Some(Vec<bool>),
}

impl SelectedEntries {
    /// Everything is selected if there are no patterns.
    ///
    /// Errors: `Failed` for a pattern that matches nothing.
    pub(crate) fn new(tree: &Tree, patterns: &[Pattern]) -> Result<Self> {
        if patterns.is_empty() {
            return Ok(SelectedEntries::All);
        }
        let selection = Selection::new(patterns, |path| Ok(tree.find(path).is_some()))?;
        let mut chosen = vec![false; tree.entry_count() + 1];
        // For each directory from the root down: position, state, and true if it is inside a match.
        let mut open: Vec<(usize, MatchState, bool)> = Vec::new();
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
                if reached.is_dead() { MatchState::default() } else { selection.step(reached, entry.name) };
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
        Ok(SelectedEntries::Some(chosen))
    }

    pub(crate) fn has(&self, position: usize) -> bool {
        match self {
            SelectedEntries::All => true,
            SelectedEntries::Some(chosen) => chosen.get(position).copied().unwrap_or(false),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkEntry<'t> {
    pub dir: NodeId,
    pub name: &'t [u8],
    pub node: NodeId,
}

/// Visits all entries except the root in the order of [`Tree::walk`], with their depth (1 below the
/// root), without building paths.
pub(crate) fn walk<'t>(tree: &'t Tree, mut visit: impl FnMut(usize, WalkEntry<'t>)) {
    let mut open = vec![(NodeId::ROOT, tree.entries(NodeId::ROOT))];
    loop {
        let depth = open.len();
        let Some((dir, entries)) = open.last_mut() else { return };
        let dir = *dir;
        let Some(entry) = entries.next() else {
            open.pop();
            continue;
        };
        visit(depth, WalkEntry { dir, name: entry.name, node: entry.node });
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
        let chosen = SelectedEntries::new(&tree, &patterns)?;
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
