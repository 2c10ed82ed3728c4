//! Actions of mksquashfs: changes of the files that an expression selects.

use super::action_tree::{Origins, State};
use super::expressions::{self, Expression, Names, Typed};
use super::moves;
use super::options::xattr;
use crate::common::globs::regex;
use crate::common::parse::Given;
use crate::common::users::Ids;
use packfs::source::{Loaded, ModeChange};
use packfs::{Error, ImagePath, NodeKind, Result, ResultExt};
use regex::bytes::Regex;
use std::collections::HashMap;
use std::path::PathBuf;

const OPTIONS: [&str; 4] = ["-action", "-log-action", "-true-action", "-false-action"];
const FILES: [&str; 4] = ["-action-file", "-log-action-file", "-true-action-file", "-false-action-file"];

/// Placement of data, which packfs decides itself.
const PLACEMENT: [&str; 10] = [
    "fragment",
    "fragments",
    "no-fragments",
    "always-use-fragments",
    "dont-always-use-fragments",
    "tailend",
    "no-tailend",
    "compressed",
    "uncompressed",
    "align",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Empty {
    All,
    Source,
    Excluded,
}

#[derive(Debug)]
enum What {
    Nothing,
    Exclude,
    Prune,
    Empty(Empty),
    Owner(Option<u32>, Option<u32>),
    Mode(ModeChange),
    WithoutXattrs(Regex),
    OnlyXattrs(Regex),
    AddXattr(Vec<u8>, Vec<u8>),
    /// Path from the root or from the directory of the file.
    Move(String),
}

#[derive(Debug, Default)]
pub struct Actions(Vec<(What, Expression)>);

/// Attributes by path.
pub type Added = HashMap<ImagePath, Vec<(Vec<u8>, Vec<u8>)>>;

impl Actions {
    pub fn of(given: &Given, users: &Ids, groups: &Ids) -> Result<Self> {
        let (names, mut actions) = (Names { users, groups }, Vec::new());
        let mut add = |text: &str| -> Result<()> {
            let typed = expressions::parse(text, &names)?;
            actions.push((what(&typed, &names)?, typed.expression));
            Ok(())
        };
        for (option, value) in &given.options {
            if OPTIONS.contains(option) {
                add(&value.to_string_lossy())?;
            } else if FILES.contains(option) {
                let text =
                    std::fs::read_to_string(value).or_io(|| format!("cannot open action file {value:?}"))?;
                let joined = text.replace("\\\n", "");
                let lines =
                    joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
                lines.into_iter().try_for_each(&mut add)?;
            }
        }
        Ok(Actions(actions))
    }

    pub fn apply(&self, loaded: Loaded, sources: &[PathBuf]) -> Result<(Loaded, Added)> {
        let mut added = Added::new();
        if self.0.is_empty() {
            return Ok((loaded, added));
        }
        let mut state = State::new(&loaded.tree, sources, Origins::default());
        self.exclude(&mut state);
        self.change(&mut state);
        if !self.0.iter().any(|(what, _)| matches!(what, What::Move(_))) {
            self.leave_out(&mut state, &mut added);
            let changes = state.changes()?;
            return Ok((changes.made(loaded)?, added));
        }
        let (changes, lost) = (state.changes()?, state.lost());
        let loaded = changes.made(loaded)?;
        let (loaded, paths) = self.moved(loaded, sources)?;
        let mut state = State::new(&loaded.tree, sources, Origins { paths, lost });
        self.leave_out(&mut state, &mut added);
        let changes = state.changes()?;
        Ok((changes.made(loaded)?, added))
    }

    /// Also returns the former paths, by path.
    fn moved(&self, loaded: Loaded, sources: &[PathBuf]) -> Result<(Loaded, HashMap<ImagePath, ImagePath>)> {
        let state = State::new(&loaded.tree, sources, Origins::default());
        let mut targets: HashMap<ImagePath, Vec<String>> = HashMap::new();
        for at in 1..state.items.len() {
            for (what, test) in &self.0 {
                if let What::Move(target) = what
                    && state.holds(test, at)
                {
                    targets.entry(state.items[at].path.clone()).or_default().push(target.clone());
                }
            }
        }
        state.check()?;
        moves::moved(loaded, |path| targets.get(path).cloned().unwrap_or_default())
    }

    fn leave_out(&self, state: &mut State<'_>, added: &mut Added) {
        self.prune(state);
        self.empty(state);
        self.filter(state, added);
    }

    fn exclude(&self, state: &mut State<'_>) {
        for at in 1..state.items.len() {
            let is_out = |state: &State<'_>| {
                self.0.iter().any(|(what, test)| matches!(what, What::Exclude) && state.holds(test, at))
            };
            if state.items[at].is_there && is_out(state) {
                state.remove(at);
            }
        }
    }

    fn change(&self, state: &mut State<'_>) {
        // The root comes last.
        for at in (1..state.items.len()).chain([0]).filter(|at| state.items[*at].is_there).collect::<Vec<_>>()
        {
            for (what, test) in &self.0 {
                let node = state.items[at].node;
                let kind = &state.tree.node(node).kind;
                let is_dir = *kind == NodeKind::Directory;
                let is_symlink = matches!(kind, NodeKind::Symlink(_));
                match what {
                    What::Owner(uid, gid) if state.holds(test, at) => {
                        let owner = &mut state.metas[node.index()].owner;
                        (owner.uid, owner.gid) = (uid.unwrap_or(owner.uid), gid.unwrap_or(owner.gid));
                    }
                    What::Mode(change) if !is_symlink && state.holds(test, at) => {
                        let meta = &mut state.metas[node.index()];
                        meta.mode = change.apply(meta.mode, is_dir);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Removes symbolic links first, while their targets still exist.
    fn prune(&self, state: &mut State<'_>) {
        for links in [true, false] {
            for at in (1..state.items.len()).rev() {
                let is_link = matches!(state.tree.node(state.items[at].node).kind, NodeKind::Symlink(_));
                let is_out = |state: &State<'_>| {
                    self.0.iter().any(|(what, test)| matches!(what, What::Prune) && state.holds(test, at))
                };
                if is_link == links && state.items[at].is_there && is_out(state) {
                    state.remove(at);
                }
            }
        }
    }

    fn empty(&self, state: &mut State<'_>) {
        for at in (1..state.items.len()).rev() {
            let item = &state.items[at];
            let is_dir = state.tree.node(item.node).is_dir();
            if !is_dir || !item.is_there || item.entries > 0 {
                continue;
            }
            let lost = item.lost || state.had_entries(at);
            let is_out = self.0.iter().any(|(what, test)| match what {
                What::Empty(cause) => {
                    let is_meant = match cause {
                        Empty::All => true,
                        Empty::Source => !lost,
                        Empty::Excluded => lost,
                    };
                    is_meant && state.holds(test, at)
                }
                _ => false,
            });
            if is_out {
                state.remove(at);
            }
        }
    }

    fn filter(&self, state: &mut State<'_>, added: &mut Added) {
        for at in 0..state.items.len() {
            let node = state.items[at].node;
            let kind = &state.tree.node(node).kind;
            if !state.items[at].is_there {
                continue;
            }
            let takes_user = matches!(kind, NodeKind::Directory | NodeKind::File { .. });
            for (what, test) in &self.0 {
                if !matches!(what, What::WithoutXattrs(_) | What::OnlyXattrs(_) | What::AddXattr(..))
                    || !state.holds(test, at)
                {
                    continue;
                }
                let tree = state.tree;
                let own = || tree.xattrs(tree.node(node).xattrs).clone();
                match what {
                    What::WithoutXattrs(regex) => {
                        state.xattrs.entry(node).or_insert_with(own).retain(|name, _| !regex.is_match(name));
                    }
                    What::OnlyXattrs(regex) => {
                        state.xattrs.entry(node).or_insert_with(own).retain(|name, _| regex.is_match(name));
                    }
                    What::AddXattr(name, value) if takes_user || !name.starts_with(b"user.") => {
                        let list = added.entry(state.items[at].path.clone()).or_default();
                        list.push((name.clone(), value.clone()));
                    }
                    _ => {}
                }
            }
        }
    }
}

fn what(typed: &Typed, names: &Names<'_>) -> Result<What> {
    let words: Vec<&str> = typed.arguments.iter().map(String::as_str).collect();
    Ok(match (typed.name.as_str(), &words[..]) {
        ("exclude", []) => What::Exclude,
        ("prune", []) => What::Prune,
        ("empty", [] | ["all"]) => What::Empty(Empty::All),
        ("empty", ["source"]) => What::Empty(Empty::Source),
        ("empty", ["excluded"]) => What::Empty(Empty::Excluded),
        ("uid", [uid]) => What::Owner(Some(names.users.id(uid)?), None),
        ("gid", [gid]) => What::Owner(None, Some(names.groups.id(gid)?)),
        ("guid", [uid, gid]) => What::Owner(Some(names.users.id(uid)?), Some(names.groups.id(gid)?)),
        ("mode" | "chmod", [_, ..]) => What::Mode(words.join(",").parse()?),
        ("xattrs-exclude", [text]) => What::WithoutXattrs(regex(text.as_bytes())?),
        ("xattrs-include", [text]) => What::OnlyXattrs(regex(text.as_bytes())?),
        ("xattrs-add", [text]) => {
            let (name, value) = xattr(text.as_bytes())?;
            What::AddXattr(name, value)
        }
        ("noop", []) => What::Nothing,
        (name, _) if PLACEMENT.contains(&name) => What::Nothing,
        ("move", [path]) => What::Move((*path).to_owned()),
        (name, _) => {
            return Err(Error::usage(format!("no action \"{name}\" with {} arguments", words.len())));
        }
    })
}
