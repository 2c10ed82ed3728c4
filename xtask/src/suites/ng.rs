//! The tests of squashfs-tools-ng that run its programs, and its archives and lists, whose images
//! are compared with those of the originals by the kernel's driver.
//!
//! Its own script compares SHA-512 sums of images, which no other encoder can meet.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Outcome;
use super::run::{Side, Verdict, fill, verdict};
use crate::failure::{Failure, Result};
use crate::{shell, workspace};

const SECONDS: u32 = 120;

/// Tests of the suite that call functions of its libraries.
const INTERNAL: [&str; 5] = [
    "test_filemap_xattr",
    "test_fstree_from_file",
    "test_fstree_from_file2",
    "test_fstree_glob1",
    "test_sort_file",
];

pub fn run(checkout: &Path, side: &Side) -> Result<Vec<Outcome>> {
    let mut outcomes = scripts(checkout, side)?;
    for archive in archives(checkout)? {
        let name = archive.strip_prefix(checkout).unwrap_or(&archive).display().to_string();
        let short = name.trim_start_matches("lib/tar/test/data/").to_owned();
        outcomes.push(outcome(format!("tar2sqfs {short}"), tar2sqfs(side, &archive)?));
        outcomes.push(outcome(format!("sqfs2tar {short}"), sqfs2tar(side, &archive)?));
    }
    for list in ["fstree_glob1.txt", "fstree_glob2.txt", "fstree_glob3.txt"] {
        outcomes.push(outcome(format!("gensquashfs {list}"), gensquashfs(checkout, side, list)?));
    }
    outcomes.extend(
        INTERNAL
            .map(|test| outcome(test.into(), Verdict::NotRun("a test of functions of the library".into()))),
    );
    Ok(outcomes)
}

fn outcome(test: String, verdict: Verdict) -> Outcome {
    eprintln!("  {test}: {}", verdict.text());
    Outcome { test, verdict }
}

fn scripts(checkout: &Path, side: &Side) -> Result<Vec<Outcome>> {
    let (tools, top) = (side.tools().display().to_string(), checkout.display().to_string());
    let values = [("abs_top_builddir", tools.as_str()), ("abs_top_srcdir", top.as_str())];
    let mut outcomes = Vec::new();
    for (folder, script) in
        [("bin/rdsquashfs/test", "pathtraversal.sh"), ("bin/tar2sqfs/test", "test_tar_sqfs.sh")]
    {
        let path = checkout.join(folder).join(script);
        fill(&checkout.join(folder).join(format!("{script}.in")), &path, &values)?;
        let work = checkout.join("work");
        workspace::remove_dir(&work)?;
        workspace::make_dir(&work)?;
        let found = verdict(side.command("sh", SECONDS).arg(&path).current_dir(&work))?;
        outcomes.push(outcome(script.into(), found));
    }
    Ok(outcomes)
}

fn archives(checkout: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Command::new("git");
    let text = shell::capture(found.args(["ls-files", "*.tar"]).current_dir(checkout))?;
    Ok(text.lines().filter(|line| !line.contains("/file-size/")).map(|line| checkout.join(line)).collect())
}

fn tar2sqfs(side: &Side, archive: &Path) -> Result<Verdict> {
    let arguments = ["--defaults", "mtime=0", "-c", "gzip", "-q", "-f"];
    let pack = |program: &Path, image: &Path| -> Result<Command> {
        let input = std::fs::File::open(archive).map_err(|error| Failure::io("open", archive, error))?;
        let mut command = Command::new(program);
        command.args(arguments).arg(image).stdin(Stdio::from(input));
        Ok(command)
    };
    let [ours, theirs] = ["ours.sqfs", "theirs.sqfs"].map(|name| side.folder().join(name));
    let theirs_ran = pack(&original("tar2sqfs"), &theirs)?.output().is_ok_and(|run| run.status.success());
    match (verdict(&mut pack(&side.tool("tar2sqfs"), &ours)?)?, theirs_ran) {
        (Verdict::Passed, true) => same_mounts(&ours, &theirs),
        (Verdict::Failed(_), false) => Ok(Verdict::Passed),
        (found, _) => Ok(found),
    }
}

fn sqfs2tar(side: &Side, archive: &Path) -> Result<Verdict> {
    let image = side.folder().join("source.sqfs");
    let input = std::fs::File::open(archive).map_err(|error| Failure::io("open", archive, error))?;
    let mut pack = Command::new(original("tar2sqfs"));
    pack.args(["--defaults", "mtime=0", "-c", "gzip", "-q", "-f"]).arg(&image).stdin(Stdio::from(input));
    if !pack.output().is_ok_and(|run| run.status.success()) {
        return Ok(Verdict::NotRun("tar2sqfs refuses the archive".into()));
    }
    let list =
        "set -o pipefail; \"$0\" \"$1\" | tar --xattrs --xattrs-include='*' --numeric-owner -tvvf - | sort";
    let listed = |program: PathBuf| {
        let mut command = Command::new("bash");
        shell::capture(command.args(["-c", list]).arg(program).arg(&image).env("TZ", "UTC"))
    };
    Ok(match (listed(side.tool("sqfs2tar")), listed(original("sqfs2tar"))) {
        (Ok(ours), Ok(theirs)) if ours == theirs => Verdict::Passed,
        (Ok(ours), Ok(theirs)) => Verdict::Failed(first_difference(&ours, &theirs)),
        (Err(error), Ok(_)) => Verdict::Failed(error.to_string()),
        (_, Err(_)) => Verdict::NotRun("the original fails".into()),
    })
}

fn gensquashfs(checkout: &Path, side: &Side, list: &str) -> Result<Verdict> {
    let folder = checkout.join("bin/gensquashfs/test");
    let pack = |program: &Path, image: &Path| {
        let mut command = Command::new(program);
        command.args(["-q", "-f", "-c", "gzip", "-D", ".", "-F", list]).arg(image).current_dir(&folder);
        command
    };
    let [ours, theirs] = ["ours.sqfs", "theirs.sqfs"].map(|name| side.folder().join(name));
    let theirs_ran = pack(&original("gensquashfs"), &theirs).output().is_ok_and(|run| run.status.success());
    match (verdict(&mut pack(&side.tool("gensquashfs"), &ours))?, theirs_ran) {
        (Verdict::Passed, true) => same_mounts(&ours, &theirs),
        (Verdict::Failed(_), false) => Ok(Verdict::Passed),
        (found, _) => Ok(found),
    }
}

fn original(tool: &str) -> PathBuf {
    workspace::peers().join("bin").join(tool)
}

/// Compares all that a walk of two kernel mounts shows.
fn same_mounts(ours: &Path, theirs: &Path) -> Result<Verdict> {
    // Names, types, modes, owners, sizes, times, links, devices, targets, contents, attributes.
    let walk = "set -e; d=$(mktemp -d); trap 'umount \"$d\"; rmdir \"$d\"' EXIT; \
        mount -t squashfs -o loop,ro \"$0\" \"$d\"; cd \"$d\"; \
        find . ! -type d -printf '%p %y %#m %U:%G %s %T@ %n %l\\n' -o -printf '%p %y %#m %U:%G %T@\\n' | sort; \
        find . -type f -exec sha256sum {} + | sort -k 2; \
        find . \\( -type b -o -type c \\) -exec stat -c '%n %t %T' {} + | sort; \
        find . -type f -o -type d | sort | xargs -d '\\n' getfattr -h -d -m - -e hex 2>/dev/null || true; cd /";
    let [ours, theirs] =
        [ours, theirs].map(|image| shell::capture(Command::new("bash").args(["-c", walk]).arg(image)));
    let (ours, theirs) = (ours?, theirs?);
    Ok(if ours == theirs { Verdict::Passed } else { Verdict::Failed(first_difference(&ours, &theirs)) })
}

/// Returns the first line of two texts that differs.
fn first_difference(ours: &str, theirs: &str) -> String {
    let mut pairs = ours.lines().zip(theirs.lines().chain(std::iter::repeat("")));
    match pairs.find(|(ours, theirs)| ours != theirs) {
        Some((ours, theirs)) => format!("{ours:?} instead of {theirs:?}"),
        None => "lines are missing at the end".into(),
    }
}
