//! Filters entries by globs.

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use packfs_core::{Error, ImagePath, Result};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) struct Rules {
    exclude: PathGlobs,
    include: Option<PathGlobs>,
}

struct PathGlobs {
    matcher: Gitignore,
    unused: RefCell<BTreeSet<String>>,
}

impl PathGlobs {
    fn new(globs: &[String]) -> Result<Self> {
        let matcher = compile(globs)?;
        let given = globs.iter().filter(|glob| !glob.trim().is_empty() && !glob.starts_with('#'));
        Ok(PathGlobs { matcher, unused: RefCell::new(given.cloned().collect()) })
    }

    /// Decided by the last glob that matches the path, or else a directory above it.
    fn matches(&self, path: &ImagePath, is_dir: bool) -> bool {
        let found = self.matcher.matched_path_or_any_parents(as_path(path), is_dir);
        if let Some(glob) = found.inner() {
            self.unused.borrow_mut().remove(glob.original());
        }
        found.is_ignore()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    /// Keep the directory if something below it is kept.
    OnlyIfNeeded,
    LeaveOut,
}

impl Rules {
    pub(crate) fn new(exclude: &[String], include: &[String]) -> Result<Self> {
        let include = (!include.is_empty()).then(|| PathGlobs::new(include)).transpose()?;
        Ok(Rules { exclude: PathGlobs::new(exclude)?, include })
    }

    pub(crate) fn unused(&self) -> Vec<String> {
        let all = [Some(&self.exclude), self.include.as_ref()].into_iter().flatten();
        all.flat_map(|globs| globs.unused.borrow().clone()).collect()
    }

    pub(crate) fn judge(&self, path: &ImagePath, is_dir: bool) -> Verdict {
        if path.is_root() {
            return Verdict::Keep;
        }
        if self.exclude.matches(path, is_dir) {
            return Verdict::LeaveOut;
        }
        match &self.include {
            Some(include) if !include.matches(path, is_dir) => {
                if is_dir {
                    Verdict::OnlyIfNeeded
                } else {
                    Verdict::LeaveOut
                }
            }
            _ => Verdict::Keep,
        }
    }
}

fn as_path(path: &ImagePath) -> &Path {
    Path::new(OsStr::from_bytes(path.as_bytes()))
}

fn compile(globs: &[String]) -> Result<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    for glob in globs {
        builder.add_line(None, glob).map_err(|fault| wrong(glob, &fault))?;
    }
    builder.build().map_err(|fault| Error::usage(format!("globs: {fault}")))
}

fn wrong(glob: &str, fault: &ignore::Error) -> Error {
    Error::usage(format!("glob {glob:?}: {fault}"))
}

/// Keyed by directory. A tree may have thousands of ignore files.
#[derive(Default)]
pub(crate) struct IgnoreFiles(HashMap<ImagePath, Vec<Gitignore>>);

impl IgnoreFiles {
    /// Errors: `Usage` for an invalid glob, with its line; `name` is the name of the file.
    pub(crate) fn add(&mut self, dir: &ImagePath, text: &[u8], name: &str) -> Result<()> {
        let mut builder = GitignoreBuilder::new("");
        for (index, line) in String::from_utf8_lossy(text).lines().enumerate() {
            let added = builder.add_line(None, line).map(|_| ());
            added.map_err(|fault| wrong(line, &fault).at(format!("{name}:{}", index + 1)))?;
        }
        let globs = builder.build().map_err(|fault| Error::usage(format!("{name}: {fault}")))?;
        if !globs.is_empty() {
            self.0.entry(dir.clone()).or_default().push(globs);
        }
        Ok(())
    }

    pub(crate) fn leave_out(&self, path: &ImagePath, is_dir: bool) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let mut dir = path.clone();
        while dir.pop() {
            let skip = if dir.is_root() { 0 } else { dir.as_bytes().len() + 1 };
            let below = Path::new(OsStr::from_bytes(&path.as_bytes()[skip..]));
            for globs in self.0.get(&dir).into_iter().flatten().rev() {
                let found = globs.matched(below, is_dir);
                if !found.is_none() {
                    return found.is_ignore();
                }
            }
        }
        false
    }
}

pub(crate) struct XattrRules {
    exclude: Gitignore,
    include: Option<Gitignore>,
}

impl XattrRules {
    pub(crate) fn new(exclude: &[String], include: &[String]) -> Result<Self> {
        let include = (!include.is_empty()).then(|| compile(include)).transpose()?;
        Ok(XattrRules { exclude: compile(exclude)?, include })
    }

    pub(crate) fn keeps(&self, name: &[u8]) -> bool {
        let name = Path::new(OsStr::from_bytes(name));
        !self.exclude.matched(name, false).is_ignore()
            && self.include.as_ref().is_none_or(|include| include.matched(name, false).is_ignore())
    }
}
