//! A small tree, an image of it, and a way to run the program.

use packfs_testkit::is_root;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// In the environment: the channel of mounts through FUSE.
pub const CHANNEL: &str = "PACKFS_TEST_CHANNEL";

/// A folder of its own for one test, removed at its end.
pub struct Fixture {
    folder: TempDir,
}

/// Result of a run of the program.
pub struct Run {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Run {
    /// Takes the output of a command that was run by other means.
    pub fn of(output: Output) -> Self {
        let stderr = String::from_utf8(output.stderr).unwrap();
        Run { code: output.status.code(), stdout: output.stdout, stderr }
    }

    /// Standard output as text.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        self.done();
        serde_json::from_slice(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// Standard error without what is told of every tree with times of this machine, whose
    /// fractions few formats hold.
    pub fn said(&self) -> String {
        let usual = ["warning: lost: times lose their fractions", "warning: lost: times become 1970"];
        let is_usual = |line: &&str| usual.iter().any(|usual| line.starts_with(usual));
        self.stderr.split_inclusive('\n').filter(|line| !is_usual(line)).collect()
    }

    /// It ended with this exit code.
    #[track_caller]
    pub fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        self
    }

    /// It ended well, and said nothing of errors or warnings.
    #[track_caller]
    pub fn done(&self) -> &Self {
        assert_eq!(
            (self.code, self.said().as_str()),
            (Some(0), ""),
            "{}",
            String::from_utf8_lossy(&self.stdout)
        );
        self
    }

    /// It worked, and told something: its warnings hold all of these words.
    #[track_caller]
    pub fn warned(&self, words: &[&str]) -> &Self {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in: {}", self.stderr);
        }
        self
    }

    /// It failed with this exit code and an error that holds all of these words.
    #[track_caller]
    pub fn failed(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        let error = self.stderr.lines().find(|line| !line.starts_with("warning: "));
        assert!(error.is_some_and(|line| line.starts_with("error: ")), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in: {}", self.stderr);
        }
        self
    }
}

impl Fixture {
    /// Starts the program on an input that never comes, stops it by SIGINT once it listens for
    /// that, and holds it to its word.
    pub fn stop_while_it_waits<const N: usize>(&self, args: [&str; N]) {
        let mut child = self.command(args).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Nothing ever comes through this pipe, nor does it end.
        let input = child.stdin.take().unwrap();
        wait_until_it_listens(&mut child);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(end_of(&mut child).code(), Some(130));
        drop(input);
    }

    /// An empty folder.
    pub fn new() -> Self {
        Fixture { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with the tree `rootfs` and its image `root.sqfs`.
    pub fn with_image() -> Self {
        let fixture = Fixture::with_tree();
        fixture.run(["pack", "rootfs", "root.sqfs", "-q"]).done();
        fixture
    }

    /// A folder with the tree `rootfs`.
    pub fn with_tree() -> Self {
        let fixture = Fixture::new();
        let root = fixture.path("rootfs");
        fixture.write("rootfs/etc/os-release", "NAME=example\n");
        fixture.write("rootfs/usr/bin/tool", words(300_000));
        fixture.write("rootfs/usr/bin/same", words(300_000));
        fixture.write("rootfs/usr/share/doc/README", words(5_000));
        std::fs::create_dir(root.join("empty")).unwrap();
        std::fs::hard_link(root.join("usr/bin/tool"), root.join("usr/bin/hard")).unwrap();
        std::os::unix::fs::symlink("usr/bin", root.join("bin")).unwrap();
        std::os::unix::fs::symlink("/etc/os-release", root.join("usr/release")).unwrap();
        fixture
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and makes the folders above it.
    #[track_caller]
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program, to be run in the folder, with nothing on standard input.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_packfs"));
        let args: Vec<_> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let is_served = args.iter().any(|arg| arg == "--fuse" || arg == "--foreground");
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        if let Some(channel) = std::env::var_os(CHANNEL).filter(|_| is_served) {
            command.arg("--channel").arg(channel);
        }
        command.env_remove("SOURCE_DATE_EPOCH").env("TZ", "UTC").env("XDG_CACHE_HOME", self.path(".cache"));
        command
    }

    /// Runs the program.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Run {
        Run::of(self.command(args).output().unwrap())
    }

    /// Runs the program as an unprivileged user, if this process can become one.
    pub fn run_as_nobody<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Run {
        if is_root() { self.run_copy_as_nobody(&self.program_for_all(), args) } else { self.run(args) }
    }

    /// The same for a verb of the lab.
    #[cfg(feature = "lab")]
    pub fn measure_as_nobody<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Run {
        if is_root() { self.run_copy_as_nobody(&self.programs_for_all(), args) } else { self.run(args) }
    }

    fn run_copy_as_nobody<S: AsRef<OsStr>>(&self, program: &Path, args: impl IntoIterator<Item = S>) -> Run {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null()).uid(65534).gid(65534);
        Run::of(packfs_testkit::output_of_copy(&mut command))
    }

    /// Copies the program into the folder, which is opened to all: where it was built may be closed
    /// to others.
    pub fn program_for_all(&self) -> PathBuf {
        self.copy_for_all(env!("CARGO_BIN_EXE_packfs"))
    }

    /// Like [`Fixture::program_for_all`], with `packfs-lab` in the same folder.
    #[cfg(feature = "lab")]
    pub fn programs_for_all(&self) -> PathBuf {
        self.copy_for_all(env!("CARGO_BIN_EXE_packfs-lab"));
        self.program_for_all()
    }

    fn copy_for_all(&self, program: &str) -> PathBuf {
        let folder = self.path(".programs");
        std::fs::create_dir_all(&folder).unwrap();
        let copy = folder.join(Path::new(program).file_name().unwrap());
        // One that runs still, as the server of a mount, cannot be written to.
        let _ = std::fs::remove_file(&copy);
        std::fs::copy(program, &copy).unwrap();
        for path in [&copy, &folder] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        std::fs::set_permissions(self.folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        // Once it ran, it is no longer busy for later runs.
        packfs_testkit::output_of_copy(Command::new(&copy).arg("--version"));
        copy
    }

    /// Runs the program with these bytes on standard input.
    pub fn run_with_input<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>, input: &[u8]) -> Run {
        let path = self.path(".input");
        std::fs::write(&path, input).unwrap();
        let output = self.command(args).stdin(std::fs::File::open(&path).unwrap()).output().unwrap();
        std::fs::remove_file(path).unwrap();
        Run::of(output)
    }

    /// The bytes of a file in the folder.
    #[track_caller]
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}

/// So many bytes of text that compresses well.
pub fn words(len: usize) -> Vec<u8> {
    (0..).flat_map(|n: u32| format!("line {} of a file\n", n * 7919 % 1000).into_bytes()).take(len).collect()
}

/// Returns true if two directories hold the same names and contents.
#[track_caller]
pub fn assert_same_files(a: &Path, b: &Path) {
    let names = |dir: &Path| {
        let mut names: Vec<_> =
            std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(a), names(b), "{a:?} and {b:?}");
    for name in names(a) {
        let (a, b) = (a.join(&name), b.join(&name));
        let file_type = a.symlink_metadata().unwrap().file_type();
        assert_eq!(file_type, b.symlink_metadata().unwrap().file_type(), "{b:?}");
        if file_type.is_dir() {
            assert_same_files(&a, &b);
        } else if file_type.is_symlink() {
            assert_eq!(std::fs::read_link(&a).unwrap(), std::fs::read_link(&b).unwrap(), "{b:?}");
        } else {
            assert!(std::fs::read(&a).unwrap() == std::fs::read(&b).unwrap(), "{b:?}");
        }
    }
}

/// Waits until SIGINT no longer ends a program in the usual way but asks it to stop.
///
/// Its handlers are set in the order SIGINT, SIGTERM, and what one of them does is only known to
/// the handler some time after the kernel knows of it: a SIGINT between the two is lost. That there
/// is a handler for the next signal tells that the first is ready.
fn wait_until_it_listens(child: &mut Child) {
    let both = [Signal::INT, Signal::TERM].map(|signal| 1u64 << (signal.as_raw() - 1)).iter().sum::<u64>();
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
        if u64::from_str_radix(caught, 16).unwrap() & both == both {
            return;
        }
        if let Some(code) = child.try_wait().unwrap() {
            let mut stderr = String::new();
            child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            panic!("it ended before it listened: {code}: {stderr}");
        }
        std::thread::yield_now();
    }
}

/// Waits for a program that has nothing left to wait for. Kills one that does not end, and fails
/// the test.
fn end_of(child: &mut Child) -> ExitStatus {
    let patience = Instant::now() + Duration::from_secs(120);
    while Instant::now() < patience {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    panic!("it does not end");
}
