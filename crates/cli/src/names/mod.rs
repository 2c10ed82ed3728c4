//! Other tools' names: the program run as mksquashfs, unsquashfs and others reads their command
//! lines, by one file a tool, and does the work by the library.
//!
//! A name counts as argument 0, without its directory, without a version or `static` behind it
//! (`mksquashfs4`, `mksquashfs-4.6`, `mksquashfs.static`), and without the name of a package before
//! it (`squashfs-tools.mksquashfs`), or behind `packfs as`.

mod action_tree;
mod actions;
mod block_list;
mod cloop;
mod composefs_info;
mod compsize;
mod cram;
mod digests;
mod dump_erofs;
mod elf;
mod erofs_extents;
mod erofs_layers;
mod expressions;
mod follow;
mod fsck_erofs;
mod fuse;
mod globs;
mod hints;
mod listing;
mod measured;
mod mkcomposefs;
mod mkfs_erofs;
mod mksquashfs;
mod mkzftree;
mod modes;
mod moves;
mod ng_diff;
mod ng_glob;
mod ng_list;
mod ng_pack;
mod ng_read;
mod ng_sort;
mod ng_words;
mod parse;
mod programs;
mod pseudo;
mod selected;
mod sources;
mod squash;
mod streamed;
mod streams;
mod superblock;
mod teller;
mod trees;
mod unpseudo;
mod unsquashfs;
mod usage;
mod users;
mod verbs;
mod when;

pub use measured::Measured;
pub use verbs::{AsOpts, InstallNamesOpts};

use crate::out::{Outcome, report};
use packfs::{Error, ErrorKind};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind as IoErrorKind;
use std::path::Path;
use std::process::ExitCode;

/// A tool whose command line is read.
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    run: fn(&[OsString]) -> Outcome,
    /// Exit code of a failure.
    failed: u8,
}

/// All tools.
pub const TOOLS: &[Tool] = &[
    Tool { name: "mksquashfs", run: mksquashfs::run, failed: 1 },
    Tool { name: "sqfstar", run: mksquashfs::run_star, failed: 1 },
    Tool { name: "unsquashfs", run: unsquashfs::run, failed: 1 },
    Tool { name: "sqfscat", run: unsquashfs::run_cat, failed: 1 },
    Tool { name: "mkfs.erofs", run: mkfs_erofs::run, failed: 1 },
    Tool { name: "fsck.erofs", run: fsck_erofs::run, failed: 1 },
    Tool { name: "dump.erofs", run: dump_erofs::run, failed: 234 },
    Tool { name: "mount.erofs", run: |args| fuse::run("mount.erofs", args), failed: 1 },
    Tool { name: "erofsfuse", run: |args| fuse::run("erofsfuse", args), failed: 1 },
    Tool { name: "squashfuse", run: |args| fuse::run("squashfuse", args), failed: 254 },
    Tool { name: "squashfuse_ll", run: |args| fuse::run("squashfuse_ll", args), failed: 2 },
    Tool { name: "gensquashfs", run: ng_pack::run_gen, failed: 1 },
    Tool { name: "tar2sqfs", run: ng_pack::run_tar, failed: 1 },
    Tool { name: "sqfs2tar", run: ng_read::run_tar, failed: 1 },
    Tool { name: "rdsquashfs", run: ng_read::run_read, failed: 1 },
    Tool { name: "sqfsdiff", run: ng_diff::run, failed: 2 },
    Tool { name: "mkfs.cramfs", run: |args| cram::run_make("mkfs.cramfs", args), failed: 8 },
    Tool { name: "mkcramfs", run: |args| cram::run_make("mkcramfs", args), failed: 8 },
    Tool { name: "fsck.cramfs", run: cram::run_check, failed: 8 },
    Tool { name: "create_compressed_fs", run: cloop::run_make, failed: 1 },
    Tool { name: "extract_compressed_fs", run: cloop::run_extract, failed: 1 },
    Tool { name: "mkcomposefs", run: mkcomposefs::run, failed: 1 },
    Tool { name: "composefs-info", run: composefs_info::run, failed: 1 },
    Tool { name: "mkzftree", run: mkzftree::run, failed: 73 },
    Tool { name: "compsize", run: compsize::run, failed: 1 },
    Tool { name: "snapfuse", run: |args| fuse::run("snapfuse", args), failed: 254 },
];

/// Returns the tool that a program's path names.
pub fn tool(path: &OsStr) -> Option<&'static Tool> {
    let name = Path::new(path).file_name()?.to_str()?;
    let exact = TOOLS.iter().find(|tool| tool.name == name);
    let versioned = || TOOLS.iter().find(|tool| name.strip_prefix(tool.name).is_some_and(is_version));
    let packaged = |tool: &&Tool| name.strip_suffix(tool.name).is_some_and(|rest| rest.ends_with('.'));
    exact.or_else(versioned).or_else(|| TOOLS.iter().find(packaged))
}

/// True for what may stand behind a name: `4`, `-4.6.1`, `.static`, `-static-v4.6`.
fn is_version(rest: &str) -> bool {
    rest.split(['.', '-', '_']).all(|part| {
        let digits = part.strip_prefix('v').unwrap_or(part);
        part == "static" || digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns advice for a command line of packfs that has an option of the tool that does the same.
pub fn meant(args: &[OsString]) -> Option<String> {
    let (verb, words) = args.get(1..)?.split_first()?;
    let (tool, tables): (&str, &[&[parse::Row]]) = match verb.to_str()? {
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

/// Returns the command line of `packfs mount` where a tool that mounts was called.
pub fn mount_arguments(args: &[OsString]) -> Option<Vec<OsString>> {
    let (tool, rest) = mounting(args)?;
    fuse::arguments(tool.name, rest)
}

/// Returns the tool that mounts, if one was called; `None` if the line is refused.
pub fn mount_tool(args: &[OsString]) -> Option<&'static Tool> {
    let (tool, rest) = mounting(args)?;
    fuse::arguments(tool.name, rest).map(|_| tool)
}

/// Returns the tool that mounts, and what stands behind its name.
fn mounting(args: &[OsString]) -> Option<(&'static Tool, &[OsString])> {
    let (first, rest) = args.split_first()?;
    let (tool, rest) = match (tool(first), rest) {
        (Some(tool), rest) => (tool, rest),
        (None, [verb, name, rest @ ..]) if verb == "as" => (self::tool(name)?, rest),
        _ => return None,
    };
    fuse::NAMES.contains(&tool.name).then_some((tool, rest))
}

impl Tool {
    /// Runs it with the arguments behind its name, and prints its error.
    pub fn run(&self, args: &[OsString]) -> ExitCode {
        let outcome = (self.run)(args).and_then(|code| report::all_printed().map(|()| code));
        outcome.unwrap_or_else(|error| self.failure(&error))
    }

    /// Prints the error of a mount, and returns the exit code; none if it was printed before.
    pub fn mount_failure(&self, error: Option<&Error>) -> ExitCode {
        let is_usage = error.is_some_and(|error| error.kind() == ErrorKind::Usage);
        if let Some(error) = error {
            self.failure(error);
        }
        ExitCode::from(match self.name {
            "squashfuse" | "snapfuse" if is_usage => 3,
            "squashfuse" | "squashfuse_ll" | "snapfuse" if !is_usage => 255,
            _ => 1,
        })
    }

    fn failure(&self, error: &Error) -> ExitCode {
        if report::is_closed_output(error) {
            return ExitCode::from(report::CLOSED_OUTPUT);
        }
        report::failure_of(self.name, error);
        let is_missing = error.io_source().is_some_and(|source| source.kind() == IoErrorKind::NotFound);
        match self.name {
            // The tools have no code for it.
            _ if report::is_lost_output(error) => ExitCode::FAILURE,
            // It ends with the number of the system's error.
            "dump.erofs" if is_missing => ExitCode::from(254),
            "mkfs.cramfs" | "mkcramfs" | "fsck.cramfs" if error.kind() == ErrorKind::Usage => {
                ExitCode::from(16)
            }
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
