//! The tests of squashfuse: shell scripts that mount images by its drivers.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::Outcome;
use super::run::{Side, Verdict, fill, verdict};
use crate::failure::{Failure, Result};

/// The smoke tests pack and read 164 MB of random data with each codec.
const SECONDS: u32 = 900;

/// Values that `configure` would find.
const VALUES: [(&str, &str); 5] = [
    ("build_os", "linux-gnu"),
    ("sq_fusermount", "fusermount3"),
    ("sq_mksquashfs_compressors", "gzip lz4 zstd"),
    ("sq_md5sum", "md5sum"),
    ("builddir", "."),
];

/// Scripts, and the program that each needs.
const SCRIPTS: [(&str, &str); 5] = [
    ("ll-smoke.sh", "squashfuse_ll"),
    ("ll-smoke-singlethreaded.sh", "squashfuse_ll"),
    ("notify_test.sh", "squashfuse"),
    ("umount-test.sh", "squashfuse_ll"),
    ("ls.sh", "squashfuse_ls"),
];

/// Programs of the suite that test functions of its library.
const INTERNAL: [&str; 2] = ["cachetest", "endiantest"];

pub fn run(checkout: &Path, side: &Side) -> Result<Vec<Outcome>> {
    let tests = checkout.join("tests");
    for name in ["lib.sh", "ll-smoke.sh", "ll-smoke-singlethreaded.sh", "umount-test.sh"] {
        fill(&tests.join(format!("{name}.in")), &tests.join(name), &VALUES)?;
    }
    for tool in ["squashfuse", "squashfuse_ll"] {
        let link = checkout.join(tool);
        symlink(side.tool(tool), &link).map_err(|error| Failure::io("link", &link, error))?;
    }
    let mut outcomes = Vec::new();
    for (script, program) in SCRIPTS {
        let found = if side.tool(program).exists() {
            verdict(side.command("bash", SECONDS).arg(tests.join(script)).current_dir(checkout))?
        } else {
            Verdict::NotRun(format!("no {program}"))
        };
        eprintln!("  {script}: {}", found.text());
        outcomes.push(Outcome { test: script.into(), verdict: found });
    }
    outcomes.extend(INTERNAL.map(|test| Outcome {
        test: test.into(),
        verdict: Verdict::NotRun("a test of functions of the library".into()),
    }));
    Ok(outcomes)
}
