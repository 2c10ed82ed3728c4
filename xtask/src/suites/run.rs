//! One test of a suite, and the tools that it runs.

use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::{Failure, Result};
use crate::{shell, workspace};

/// Exit code of a test that does not apply, as automake has it.
const SKIPPED: i32 = 77;
/// Exit code of `timeout`.
const TIMED_OUT: i32 = 124;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed(String),
    NotRun(String),
}

impl Verdict {
    pub fn text(&self) -> String {
        match self {
            Verdict::Passed => "passed".into(),
            Verdict::Failed(why) => format!("failed: {why}"),
            Verdict::NotRun(why) => format!("not run: {why}"),
        }
    }
}

/// A folder with tools under their names: packfs, or the originals.
pub struct Side {
    name: &'static str,
    folder: PathBuf,
}

impl Side {
    pub fn packfs(program: &Path, folder: &Path) -> Result<Self> {
        let side = Self::empty("packfs", folder)?;
        let program = program.canonicalize().map_err(|error| Failure::io("find", program, error))?;
        shell::run_quietly(Command::new(program).arg("install-names").arg(side.tools()))?;
        Ok(side)
    }

    pub fn originals(folder: &Path) -> Result<Self> {
        let side = Self::empty("originals", folder)?;
        let peers = workspace::peers().join("bin");
        let entries = std::fs::read_dir(&peers).map_err(|_| {
            Failure::new(format!("no tools in {}\nhint: run `cargo xtask peers` first", peers.display()))
        })?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let link = side.tools().join(path.file_name().unwrap_or_default());
            symlink(&path, &link).map_err(|error| Failure::io("link", &link, error))?;
        }
        Ok(side)
    }

    fn empty(name: &'static str, folder: &Path) -> Result<Self> {
        let side = Self { name, folder: folder.to_owned() };
        workspace::remove_dir(&side.tools())?;
        workspace::make_dir(&side.tools())?;
        Ok(side)
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn tools(&self) -> PathBuf {
        self.folder.join("tools")
    }

    pub fn tool(&self, name: &str) -> PathBuf {
        self.tools().join(name)
    }

    /// Returns a command with the tools first on `PATH`, which ends after some seconds.
    pub fn command(&self, program: &str, seconds: u32) -> Command {
        let mut path = OsString::from(self.tools());
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new("timeout");
        command.args(["-k", "5", &seconds.to_string(), program]).env("PATH", path).stdin(Stdio::null());
        command
    }
}

pub fn verdict(command: &mut Command) -> Result<Verdict> {
    let output = command
        .output()
        .map_err(|error| Failure::new(format!("cannot run {}: {error}", shell::spelled(command))))?;
    let said =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat();
    let last = || said.trim_end().lines().last().unwrap_or_default().trim().to_owned();
    Ok(match output.status.code() {
        Some(0) => Verdict::Passed,
        Some(SKIPPED) => Verdict::NotRun(last()),
        Some(TIMED_OUT) => Verdict::Failed("not ended in time".into()),
        Some(code) => Verdict::Failed(format!("exit code {code}: {}", last())),
        None => Verdict::Failed(format!("signal {}", output.status.signal().unwrap_or_default())),
    })
}

pub fn fill(template: &Path, target: &Path, values: &[(&str, &str)]) -> Result<()> {
    let text = std::fs::read_to_string(template).map_err(|error| Failure::io("read", template, error))?;
    let text = values.iter().fold(text, |text, (name, value)| text.replace(&format!("@{name}@"), value));
    std::fs::write(target, text).map_err(|error| Failure::io("write", target, error))?;
    std::fs::set_permissions(target, PermissionsExt::from_mode(0o755))
        .map_err(|error| Failure::io("make runnable", target, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(script: &str) -> Verdict {
        verdict(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn a_verdict_is_the_exit_code_with_the_last_line() {
        assert_eq!(of("true"), Verdict::Passed);
        assert_eq!(of("echo a; echo b; exit 77"), Verdict::NotRun("b".into()));
        assert_eq!(of("echo a >&2; exit 3"), Verdict::Failed("exit code 3: a".into()));
        assert_eq!(of("kill -9 $$"), Verdict::Failed("signal 9".into()));
    }
}
