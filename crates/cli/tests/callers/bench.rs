//! A tree, images of it, and a comparison of two programs that are called by one line.

use packfs_testkit::{Compare, Mount, Peer, is_root, output_of_copy, peer, peer_since, skip, snapshot_dir};
use regex::Regex;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Lines of a caller.
pub struct Call {
    /// Number of the call site in the table.
    pub number: u8,
    /// Caller.
    pub caller: &'static str,
    /// Tool.
    pub tool: &'static str,
    /// Arguments: `OUT` is the image or folder to be written; `<FILE` and `>FILE` redirect, `@DIR`
    /// is a working directory, `A=B` before the arguments a variable, and a word in single
    /// quotes is one argument.
    pub lines: &'static [&'static str],
    /// Comparison.
    pub shows: Shows,
    /// Difference from the tool, with its reason; empty if there is none.
    pub differs: &'static str,
}

/// Comparison of two runs; exit codes are always compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The images `OUT` hold the same tree.
    Image,
    /// The same, and the kernel's mounts of both agree.
    Mounted(&'static str),
    /// The same tree but for times: the tool takes the current one.
    Timeless,
    /// The folders `OUT` hold the same files.
    Files,
    /// Standard output is equal.
    Text,
    /// The caller's expression finds the same in standard output.
    Parsed(&'static str),
    /// Standard output of packfs holds the word.
    Has(&'static str),
    /// Nothing else.
    Code,
    /// Mounts at `OUT` show the same files.
    Fuse,
    /// The tool is a fork that no distribution ships: packfs alone has to succeed.
    Alone,
    /// Nothing runs.
    Nothing,
}

impl Call {
    /// Returns the row of the guide.
    pub fn row(&self) -> String {
        let result = match (self.shows, self.differs) {
            (Shows::Alone, "") => "runs",
            (_, "") => "equal",
            (_, differs) => differs,
        };
        let lines: Vec<String> =
            self.lines.iter().map(|line| format!("`{}`", line.replace('|', "\\|"))).collect();
        format!("| {} | {} | {} | {} | {result} |\n", self.number, self.caller, self.tool, lines.join("<br>"))
    }
}

/// A folder with the tree `rootfs` and images of it.
pub struct Bench {
    folder: tempfile::TempDir,
}

/// Text that compresses well.
fn words(len: usize) -> Vec<u8> {
    (0..).flat_map(|n: u32| format!("line {} of a file\n", n * 7919 % 1000).into_bytes()).take(len).collect()
}

/// Splits a line at blanks; what stands in single quotes is one word.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted, mut is_word) = (Vec::new(), String::new(), false, false);
    for letter in line.chars() {
        match letter {
            '\'' => (is_quoted, is_word) = (!is_quoted, true),
            ' ' if !is_quoted => {
                words.extend(is_word.then(|| std::mem::take(&mut word)));
                is_word = false;
            }
            letter => {
                word.push(letter);
                is_word = true;
            }
        }
    }
    words.extend(is_word.then_some(word));
    words
}

impl Bench {
    /// Makes the tree and its images.
    pub fn new() -> Self {
        let bench = Bench { folder: tempfile::tempdir().unwrap() };
        std::fs::set_permissions(bench.folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        bench.tree();
        for (name, text) in [
            ("excludes", "usr/share\n# a comment\netc/*\n"),
            (
                "actions",
                "# a comment\n\nprune@name(*.conf) || \\\nname(vm*)\nchmod(0750)@type(d) && depth(1)\n",
            ),
            ("sort", "rootfs/usr/bin 100\nusr/share -5\n"),
            ("labels", "etc x security.selinux=label\nusr x user.note=0x41\n"),
            ("pseudo", "/dev/console C 8 600 0 0 5 1\nmade F 9 644 1 root echo made\n"),
            ("contexts", "/.*\tuser:role:type:s0\n"),
            ("config", " 0 0 755\nsystem/etc 0 2000 750\netc 0 2000 750\n"),
            ("hints", "65536 0 .*/tool$\n"),
            ("list", "dir /d 0755 0 0\nnod /d/null 0666 0 0 c 1 3\nfile /etc/os-release 0644 1 2\n"),
            ("order", "-10 usr/bin/tool\n"),
            (
                "xattrs",
                "# file: usr/bin/tool\nuser.a=\"b c\"\nuser.d=0x4142\n\n# file: etc/\nuser.e=0sSGVsbG8=\n",
            ),
            (
                "globs",
                "dir /d 0700 1 2\nglob /d 0644 3 4 -type f -name \"*o*\" usr/bin\n\
                 glob /e * 5 * -type d -type f -nonrecursive etc\nglob /f 0777 0 0 -type l .\n",
            ),
        ] {
            std::fs::write(bench.path(name), text).unwrap();
        }
        std::fs::create_dir(bench.path("bin")).unwrap();
        bench.packfs(&["install-names", "bin"]);
        bench.packfs(&["pack", "-q", "rootfs", "a.sqfs", "-O", "exports=on"]);
        bench.packfs(&["pack", "-q", "rootfs", "a.erofs", "-c", "lz4"]);
        bench.packfs(&["pack", "-q", "rootfs", "b.erofs", "-c", "zstd", "-O", "fragments=all"]);
        bench.packfs(&["tar", "-q", "a.sqfs", "-o", "a.tar"]);
        bench.packfs(&["pack", "-q", "rootfs/etc", "b.sqfs"]);
        bench.packfs(&["pack", "-q", "rootfs", "a.iso"]);
        bench.packfs(&["as", "create_compressed_fs", "-q", "-B", "65536", "a.iso", "a.cloop"]);
        bench.packfs(&["as", "unsquashfs", "-no-progress", "-pf", "a.pseudo", "a.sqfs"]);
        bench
    }

    fn tree(&self) {
        let root = self.path("rootfs");
        for dir in ["etc/cmdline.d", "usr/bin", "usr/share/doc", "boot", "empty", "tmp/below", "squash"] {
            std::fs::create_dir_all(root.join(dir)).unwrap();
        }
        for (name, bytes) in [
            ("etc/os-release", b"NAME=example\n".to_vec()),
            ("etc/cmdline.d/a.conf", b"quiet\n".to_vec()),
            ("usr/bin/tool", words(300_000)),
            ("usr/bin/same", words(300_000)),
            ("usr/share/doc/README", words(5_000)),
            ("boot/vmlinuz", words(90_000)),
            ("tmp/below/x", b"x".to_vec()),
            (".hidden", b"h".to_vec()),
            ("nothing", Vec::new()),
        ] {
            std::fs::write(root.join(name), bytes).unwrap();
        }
        std::fs::hard_link(root.join("usr/bin/tool"), root.join("usr/bin/hard")).unwrap();
        symlink("usr/bin", root.join("bin")).unwrap();
        symlink("/etc/os-release", root.join("usr/release")).unwrap();
        std::fs::set_permissions(root.join("usr/bin/same"), PermissionsExt::from_mode(0o4755)).unwrap();
        let made = "mkfifo pipe && if [ $(id -u) = 0 ]; then mknod null c 1 3 && mknod disk b 8 16 && \
             chown 7:9 etc/os-release; fi; setfattr -n user.note -v text usr/bin/tool || true; \
             find . -exec touch -h -d @1600000000 {} +";
        let status = Command::new("sh").args(["-c", made]).current_dir(&root).status().unwrap();
        assert!(status.success());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[track_caller]
    fn packfs(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_packfs"));
        command.args(args).current_dir(self.folder.path()).env_remove("SOURCE_DATE_EPOCH");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "packfs {args:?}\n{}{said}",
            String::from_utf8_lossy(&output.stdout)
        );
        output
    }

    /// Runs all lines by both programs, and holds packfs to what they show.
    #[track_caller]
    pub fn hold_all(&self, calls: &[Call]) {
        let mut faults = Vec::new();
        for call in calls.iter().filter(|call| call.shows != Shows::Nothing) {
            let found = match call.shows {
                Shows::Alone | Shows::Has(_) => None,
                _ => match call.tool {
                    "mksquashfs" | "unsquashfs" => peer_since(call.tool, "4.7"),
                    tool => peer(tool),
                },
            };
            for line in call.lines {
                if let Err(fault) = self.hold(call, line, found.as_ref()) {
                    faults.push(format!("{} {} {line}: {fault}", call.number, call.tool));
                }
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    fn hold(&self, call: &Call, line: &str, tool: Option<&Peer>) -> Result<(), String> {
        if call.shows == Shows::Fuse {
            return self.fuse(call, line, tool);
        }
        let ours = self.run(Command::new(self.path("bin").join(call.tool)), line, "ours");
        let said = String::from_utf8_lossy(&ours.stderr).into_owned();
        if let Shows::Alone | Shows::Has(_) = call.shows {
            let text = String::from_utf8_lossy(&ours.stdout);
            let has = if let Shows::Has(word) = call.shows { text.contains(word) } else { true };
            return if ours.status.success() && has { Ok(()) } else { Err(format!("{said}{text}")) };
        }
        let Some(tool) = tool else { return Ok(()) };
        let theirs = self.run(tool.command(&[]), line, "theirs");
        if ours.status.code() != theirs.status.code() {
            let other = String::from_utf8_lossy(&theirs.stderr);
            return Err(format!("{} and {}: {said}{other}", ours.status, theirs.status));
        }
        if !ours.status.success() {
            return Ok(());
        }
        self.compare(call.shows, line, &ours, &theirs)
    }

    fn compare(&self, shows: Shows, line: &str, ours: &Output, theirs: &Output) -> Result<(), String> {
        let texts = [ours, theirs].map(|run| String::from_utf8_lossy(&run.stdout).into_owned());
        let same = |what: &str, is_same: bool| if is_same { Ok(()) } else { Err(what.to_owned()) };
        match shows {
            Shows::Image | Shows::Files => self.diff(line, &[]),
            Shows::Timeless => self.diff(line, &["--no-times"]),
            Shows::Mounted(format) => self.diff(line, &[]).and_then(|()| self.mounts(format)),
            Shows::Text => same(&texts.join("\nbut\n"), texts[0] == texts[1]),
            Shows::Parsed(expression) => {
                let regex = Regex::new(expression).unwrap();
                let [ours, theirs] = texts.each_ref().map(|text| {
                    let found = regex.captures_iter(text);
                    let parts = found.map(|found| {
                        found.iter().skip(1).flatten().map(|part| part.as_str().to_owned()).collect()
                    });
                    parts.collect::<Vec<Vec<String>>>()
                });
                same(&format!("{ours:?} but {theirs:?}"), ours == theirs && !ours.is_empty())
            }
            _ => Ok(()),
        }
    }

    fn diff(&self, line: &str, more: &[&str]) -> Result<(), String> {
        let offset = if line.contains("-offset 4096") { "4096" } else { "0" };
        let mut command = Command::new(env!("CARGO_BIN_EXE_packfs"));
        command.args(["diff", "--offset-a", offset, "--offset-b", offset, "ours", "theirs"]);
        let output = command.args(more).current_dir(self.folder.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("{text}{said}")) }
    }

    fn mounts(&self, format: &str) -> Result<(), String> {
        if !is_root() {
            skip("the kernel's mounts need root");
            return Ok(());
        }
        let ours = Mount::new(&self.path("ours"), format)?;
        let theirs = Mount::new(&self.path("theirs"), format)?;
        let [ours, theirs] = [ours, theirs].map(|mount| snapshot_dir(&mount.path()));
        let differences = ours.differences(&theirs, Compare::ALL);
        if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
    }

    /// Completes a command with the words of a line.
    fn prepared(&self, mut command: Command, line: &str, out: &str) -> (Command, Option<PathBuf>) {
        let out = self.path(out);
        command.current_dir(self.folder.path()).env_clear().env("TZ", "UTC").env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::null());
        let (mut is_first, mut target) = (true, None);
        for word in split(line) {
            let word = word.replace("OUT", &out.display().to_string());
            match word.split_once('=') {
                Some((name, value))
                    if is_first && name.chars().all(|c| c.is_ascii_uppercase() || c == '_') =>
                {
                    command.env(name, value);
                    continue;
                }
                _ => {}
            }
            match word.as_bytes() {
                [b'@', ..] => {
                    command.current_dir(self.path(&word[1..]));
                }
                [b'<', ..] => {
                    command.stdin(std::fs::File::open(self.path(&word[1..])).unwrap());
                }
                [b'>', ..] => target = Some(self.path(&word[1..])),
                _ => {
                    command.arg(&word);
                    is_first = false;
                }
            }
        }
        (command, target)
    }

    fn run(&self, command: Command, line: &str, out: &str) -> Output {
        let path = self.path(out);
        let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        let (mut command, target) = self.prepared(command, line, out);
        let output = command.output().unwrap();
        if let Some(target) = target {
            std::fs::write(target, &output.stdout).unwrap();
        }
        output
    }

    fn fuse(&self, call: &Call, line: &str, tool: Option<&Peer>) -> Result<(), String> {
        if !is_root() || !Path::new("/dev/fuse").exists() {
            skip("mounting through FUSE needs root and /dev/fuse");
            return Ok(());
        }
        let theirs = tool.map(|tool| ("theirs", tool.command(&[])));
        for (out, command) in
            [("ours", Command::new(self.path("bin").join(call.tool)))].into_iter().chain(theirs)
        {
            let at = self.path(out);
            let _ = std::fs::remove_file(&at).or_else(|_| std::fs::remove_dir_all(&at));
            std::fs::create_dir(&at).unwrap();
            let (mut command, _) = self.prepared(command, line, out);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let image = if call.tool.starts_with("erofs") { "a.erofs" } else { "a.sqfs" };
            let shown = self.shown(&at, image, line);
            let _ = Command::new("umount").arg("-l").arg(&at).status();
            end(&mut child);
            shown.map_err(|fault| format!("{out}: {fault}"))?;
        }
        Ok(())
    }

    /// Compares a mount that is to come with an image.
    fn shown(&self, at: &Path, image: &str, line: &str) -> Result<(), String> {
        let patience = Instant::now() + Duration::from_secs(20);
        while !at.join("etc").exists() {
            if Instant::now() > patience {
                return Err("nothing was mounted".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_packfs"));
        command.args(["diff", "--no-xattrs", "--no-links", image]).arg(at).current_dir(self.folder.path());
        if line.contains("uid=") {
            command.arg("--no-owners");
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        if output.status.success() { Ok(()) } else { Err(text.into_owned()) }
    }
}

/// Waits for a driver whose mount is gone; kills it if it stays.
fn end(child: &mut Child) {
    let patience = Instant::now() + Duration::from_secs(10);
    while Instant::now() < patience {
        if child.try_wait().unwrap().is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// incus and distrobuilder read standard error, and tolerate two kinds of lines.
#[test]
fn a_user_without_privileges_hears_of_devices_in_words_that_incus_tolerates() {
    if !is_root() {
        skip("devices need root");
        return;
    }
    let bench = Bench::new();
    std::fs::copy(env!("CARGO_BIN_EXE_packfs"), bench.path("unsquashfs")).unwrap();
    std::fs::create_dir(bench.path("open")).unwrap();
    std::fs::set_permissions(bench.path("open"), PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = Command::new(bench.path("unsquashfs"));
    command.args(["-f", "-d", "open/d", "-n", "-user-xattrs", "a.sqfs"]).current_dir(bench.path(""));
    let output = output_of_copy(command.uid(65534).gid(65534));
    let said = String::from_utf8(output.stderr).unwrap();
    let tolerated = ["failed to create block device", "failed to create character device"];
    let other: Vec<&str> =
        said.lines().filter(|line| !tolerated.iter().any(|known| line.contains(known))).collect();
    assert_eq!((other, output.status.code()), (Vec::new(), Some(2)), "{said}");
}
