//! Command lines of other tools, such as mksquashfs, translated to the library: one file per tool.
//!
//! A tool is selected by argument 0, without its directory, a version or `static` suffix
//! (`mksquashfs4`, `mksquashfs-4.6`, `mksquashfs.static`), and a package prefix
//! (`squashfs-tools.mksquashfs`), or by `packfs as`.
#![forbid(unsafe_code)]

mod cloop;
mod common;
mod composefs_info;
mod compsize;
mod cramfs;
mod dump_erofs;
mod erofs;
mod fsck_erofs;
mod fuse;
mod gensquashfs;
mod mkcomposefs;
mod mkfs_erofs;
mod mksquashfs;
mod mkzftree;
mod ng;
mod rdsquashfs;
mod sqfsdiff;
mod squash;
mod unsquashfs;

pub use common::measured::Measured;

use packfs::{Error, ErrorKind};
use packfs_terminal::{Outcome, report};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind as IoErrorKind;
use std::path::Path;
use std::process::ExitCode;

/// Another tool, whose command line packfs takes.
pub struct Tool {
    /// Name of its program.
    pub name: &'static str,
    run: fn(&str, &[OsString]) -> Outcome,
    failed: u8,
    usage: u8,
    /// Exit code for a missing file.
    missing: u8,
    /// Exit codes of a mount, for a wrong command line and for a failure; `None` for tools that do
    /// not mount.
    mount: Option<(u8, u8)>,
}

impl Tool {
    const fn new(name: &'static str, run: fn(&str, &[OsString]) -> Outcome, failed: u8) -> Self {
        Tool { name, run, failed, usage: failed, missing: failed, mount: None }
    }

    const fn mounts(name: &'static str, failed: u8, mount: (u8, u8)) -> Self {
        Tool { mount: Some(mount), ..Tool::new(name, fuse::run, failed) }
    }

    const fn of_cramfs(name: &'static str, run: fn(&str, &[OsString]) -> Outcome) -> Self {
        Tool { usage: 16, ..Tool::new(name, run, 8) }
    }
}

/// All tools, in the order in which they are listed.
pub const TOOLS: &[Tool] = &[
    Tool::new("mksquashfs", |_, args| mksquashfs::run(args), 1),
    Tool::new("sqfstar", |_, args| mksquashfs::run_star(args), 1),
    Tool::new("unsquashfs", |_, args| unsquashfs::run(args), 1),
    Tool::new("sqfscat", |_, args| unsquashfs::run_cat(args), 1),
    Tool::new("mkfs.erofs", |_, args| mkfs_erofs::run(args), 1),
    Tool::new("fsck.erofs", |_, args| fsck_erofs::run(args), 1),
    // For a missing file it exits with the error number of the system.
    Tool { missing: 254, ..Tool::new("dump.erofs", |_, args| dump_erofs::run(args), 234) },
    Tool::mounts("mount.erofs", 1, (1, 1)),
    Tool::mounts("erofsfuse", 1, (1, 1)),
    Tool::mounts("squashfuse", 254, (3, 255)),
    Tool::mounts("squashfuse_ll", 2, (1, 255)),
    Tool::new("gensquashfs", |_, args| gensquashfs::run_gen(args), 1),
    Tool::new("tar2sqfs", |_, args| gensquashfs::run_tar(args), 1),
    Tool::new("sqfs2tar", |_, args| rdsquashfs::run_tar(args), 1),
    Tool::new("rdsquashfs", |_, args| rdsquashfs::run_read(args), 1),
    Tool::new("sqfsdiff", |_, args| sqfsdiff::run(args), 2),
    Tool::of_cramfs("mkfs.cramfs", cramfs::run_make),
    Tool::of_cramfs("mkcramfs", cramfs::run_make),
    Tool::of_cramfs("fsck.cramfs", |_, args| cramfs::run_check(args)),
    Tool::new("create_compressed_fs", |_, args| cloop::run_make(args), 1),
    Tool::new("extract_compressed_fs", |_, args| cloop::run_extract(args), 1),
    Tool::new("mkcomposefs", |_, args| mkcomposefs::run(args), 1),
    Tool::new("composefs-info", |_, args| composefs_info::run(args), 1),
    Tool::new("mkzftree", |_, args| mkzftree::run(args), 73),
    Tool::new("compsize", |_, args| compsize::run(args), 1),
    Tool::mounts("snapfuse", 254, (3, 255)),
];

/// Returns the tool that argument 0 selects.
pub fn tool(path: &OsStr) -> Option<&'static Tool> {
    let name = Path::new(path).file_name()?.to_str()?;
    let exact = TOOLS.iter().find(|tool| tool.name == name);
    let versioned = || TOOLS.iter().find(|tool| name.strip_prefix(tool.name).is_some_and(is_version));
    let packaged = |tool: &&Tool| name.strip_suffix(tool.name).is_some_and(|rest| rest.ends_with('.'));
    exact.or_else(versioned).or_else(|| TOOLS.iter().find(packaged))
}

/// Suffixes are such as `4`, `-4.6.1`, `.static`, `-static-v4.6`.
fn is_version(rest: &str) -> bool {
    rest.split(['.', '-', '_']).all(|part| {
        let digits = part.strip_prefix('v').unwrap_or(part);
        part == "static" || digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Suggests the tool with an equivalent option.
pub fn meant(args: &[OsString]) -> Option<String> {
    let (verb, words) = args.get(1..)?.split_first()?;
    let (tool, tables): (&str, &[&[common::parse::Row]]) = match verb.to_str()? {
        "pack" | "create" | "convert" => ("mksquashfs", mksquashfs::TABLES),
        "unpack" | "extract" => ("unsquashfs", unsquashfs::TABLES),
        _ => return None,
    };
    let is_meant = |word: &&OsString| {
        let word = word.to_str().filter(|word| word.len() > 2 && !word.starts_with("--"));
        word.is_some_and(|word| tables.iter().copied().flatten().any(|row| row.has(word)))
    };
    let option = words.iter().take_while(|word| *word != "--").find(is_meant)?.to_string_lossy();
    Some(format!("packfs as {tool} takes the command line of {tool}, such as {option}"))
}

/// Translates the command line of a mounting tool.
pub fn mount_arguments(args: &[OsString]) -> Option<Vec<OsString>> {
    let (tool, rest) = mounting(args)?;
    fuse::arguments(tool.name, rest)
}

/// Returns the mounting tool of a command line; `None` if its arguments are refused.
pub fn mount_tool(args: &[OsString]) -> Option<&'static Tool> {
    let (tool, rest) = mounting(args)?;
    fuse::arguments(tool.name, rest).map(|_| tool)
}

fn mounting(args: &[OsString]) -> Option<(&'static Tool, &[OsString])> {
    let (first, rest) = args.split_first()?;
    let (tool, rest) = match (tool(first), rest) {
        (Some(tool), rest) => (tool, rest),
        (None, [verb, name, rest @ ..]) if verb == "as" => (self::tool(name)?, rest),
        _ => return None,
    };
    tool.mount.is_some().then_some((tool, rest))
}

impl Tool {
    /// Runs the tool with its arguments, and prints an error; returns the exit code.
    pub fn run(&self, args: &[OsString]) -> ExitCode {
        let outcome = (self.run)(self.name, args).and_then(|code| report::all_printed().map(|()| code));
        outcome.unwrap_or_else(|error| self.failure(&error))
    }

    /// Prints the error of a mount, if not printed before; returns the exit code.
    pub fn mount_failure(&self, error: Option<&Error>) -> ExitCode {
        let is_usage = error.is_some_and(|error| error.kind() == ErrorKind::Usage);
        if let Some(error) = error {
            self.failure(error);
        }
        let (usage, failed) = self.mount.unwrap_or((self.usage, self.failed));
        ExitCode::from(if is_usage { usage } else { failed })
    }

    fn failure(&self, error: &Error) -> ExitCode {
        if report::is_closed_output(error) {
            return ExitCode::from(report::CLOSED_OUTPUT);
        }
        report::failure_of(self.name, error);
        let is_missing = error.io_source().is_some_and(|source| source.kind() == IoErrorKind::NotFound);
        match error.kind() {
            // The tools have no such code.
            _ if report::is_lost_output(error) => ExitCode::FAILURE,
            _ if is_missing => ExitCode::from(self.missing),
            ErrorKind::Usage => ExitCode::from(self.usage),
            _ => ExitCode::from(self.failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_known_by_path_and_with_a_version() {
        let named = |path: &str| tool(OsStr::new(path)).map(|tool| tool.name);
        assert_eq!(named("/usr/bin/mksquashfs"), Some("mksquashfs"));
        assert_eq!(named("mksquashfs4"), Some("mksquashfs"));
        assert_eq!(named("unsquashfs-4.6.1"), Some("unsquashfs"));
        assert_eq!(named("mksquashfs.static"), Some("mksquashfs"));
        assert_eq!(named("mkfs.erofs-static-v1.9"), Some("mkfs.erofs"));
        assert_eq!(named("/snap/bin/squashfs-tools.mksquashfs"), Some("mksquashfs"));
        assert_eq!(named("mymksquashfs"), None);
        assert_eq!(named("packfs"), None);
        assert_eq!(named("mksquashfsx"), None);
    }
}
