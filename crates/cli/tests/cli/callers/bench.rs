//! A tree, images of it, and a comparison of two programs that are called by one line.

use super::call::{But, Call, Shows};
use super::judge::{compare, require};
use packfs_testkit::{
    LoopDevice, Peer, Snapshot, is_root, output_of_copy, peer, peer_since, skip, snapshot_dir,
};
use regex::Regex;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

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
            (
                "names",
                "file /made/by/os 04755 1 2 etc/os-release\nslink /made/l 0777 0 0 to  there\n\
                 dir /made 0700 3 4\nnod \"/a \\\"b\\\"\" 0600 0 0 b 7 1\n",
            ),
            ("quoted", "# file: usr/bin/tool\nuser.a=\"b \\\"c\\\" \\\\ \\101\"\n"),
            ("twice", "# file: usr/bin/tool\nuser.a=\"1\"\nuser.a=\"2\"\n"),
            ("lists", "# file: usr/bin/tool\nsystem.posix_acl_access=0x02\n"),
            ("nothing", "file /nothing 04755 1 2 /dev/null\n"),
            ("hard", "/.*\tuser:role:type:s0\n/usr/bin/hard\tuser:role:hard:s0\n"),
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
        // The decoder of cloop-utils divides by zero if there are fewer than ten blocks.
        std::fs::write(bench.path("a.disk"), words(2 << 20)).unwrap();
        std::fs::create_dir(bench.path("bin")).unwrap();
        bench.packfs(&["install-names", "bin"]);
        bench.packfs(&["pack", "-q", "rootfs", "a.sqfs", "-O", "exports=on"]);
        bench.packfs(&["pack", "-q", "rootfs", "a.erofs", "-c", "lz4"]);
        bench.packfs(&["pack", "-q", "rootfs", "b.erofs", "-c", "zstd", "-O", "fragments=all"]);
        for (source, layer) in [("rootfs", "lower.erofs"), ("rootfs/usr", "upper.erofs")] {
            bench.packfs(&["pack", "-q", source, layer, "-c", "none", "-O", "chunks=4096"]);
        }
        bench.packfs(&["tar", "-q", "a.sqfs", "-o", "a.tar"]);
        let mut tar = Command::new("tar");
        tar.args([
            "--numeric-owner",
            "-cf",
            "implied.tar",
            "-C",
            "rootfs",
            "etc/cmdline.d/a.conf",
            "usr/bin/tool",
        ]);
        assert!(tar.current_dir(bench.path("")).status().unwrap().success());
        bench.packfs(&["composefs", "pack", "-q", "rootfs", "a.cfs"]);
        std::fs::write(bench.path("a.dump"), bench.packfs(&["composefs", "dump", "a.cfs"]).stdout).unwrap();
        bench.packfs(&["pack", "-q", "rootfs/etc", "b.sqfs"]);
        bench.packfs(&["pack", "-q", "rootfs", "a.iso"]);
        bench.packfs(&["as", "create_compressed_fs", "-q", "-B", "65536", "a.disk", "a.cloop"]);
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

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[track_caller]
    pub fn packfs(&self, args: &[&str]) -> Output {
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
        for call in calls {
            let found = match call.shows {
                Shows::Alone | Shows::Holds(_) => None,
                _ if call.since.is_empty() => peer(call.tool),
                _ => peer_since(call.tool, call.since),
            };
            for line in call.lines {
                if let Err(fault) = self.hold_within_a_second(call, line, found.as_ref()) {
                    faults.push(format!("{} {} {line}: {fault}", call.number, call.tool));
                }
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// Runs both again if they differ and a second began meanwhile: some lines store the time of
    /// the run.
    fn hold_within_a_second(&self, call: &Call, line: &str, tool: Option<&Peer>) -> Result<(), String> {
        let second = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let mut outcome = Ok(());
        for _ in 0..5 {
            let start = second();
            outcome = self.hold(call, line, tool);
            if outcome.is_ok() || second() == start {
                break;
            }
        }
        outcome
    }

    fn hold(&self, call: &Call, line: &str, tool: Option<&Peer>) -> Result<(), String> {
        if !is_root() && line.starts_with("+device") {
            skip("block devices need root");
            return Ok(());
        }
        match call.shows {
            Shows::Fuse => return self.fuse(call, line, tool),
            Shows::Holds(words) => {
                let program = std::fs::read(self.path("bin").join(call.tool)).unwrap();
                let has = |word: &&str| program.windows(word.len()).any(|part| part == word.as_bytes());
                return require(words.iter().all(has), || "the program lacks a word".into());
            }
            _ => {}
        }
        let ours = self.run(self.named(call.tool), line, "ours");
        let said = String::from_utf8_lossy(&ours.stderr).into_owned();
        if call.shows == Shows::Alone {
            return require(ours.status.success(), || said);
        }
        let Some(tool) = tool else { return Ok(()) };
        let theirs = self.run(tool.command(&[]), line, "theirs");
        if ours.status.code() != theirs.status.code() && !call.but.contains(&But::ExitCode) {
            let other = String::from_utf8_lossy(&theirs.stderr);
            return Err(format!("{} and {}: {said}{other}", ours.status, theirs.status));
        }
        let is_message = matches!(call.shows, Shows::Has(_) | Shows::Parsed(_));
        if !ours.status.success() && !is_message {
            return Ok(());
        }
        self.compare(call, line, [&ours, &theirs])
    }

    /// Returns a command that runs packfs under a name.
    fn named(&self, tool: &str) -> Command {
        let link = self.path("bin").join(tool);
        if link.exists() {
            return Command::new(link);
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_packfs"));
        command.args(["as", tool]);
        command
    }

    fn compare(&self, call: &Call, line: &str, runs: [&Output; 2]) -> Result<(), String> {
        let texts = runs.map(|run| String::from_utf8_lossy(&run.stdout).into_owned());
        match call.shows {
            Shows::Image => self.images(call, line),
            Shows::Followed(devices) => {
                for name in ["ours", "theirs"] {
                    let mut image = std::fs::read(self.path(name)).unwrap();
                    devices.iter().for_each(|device| image.extend(std::fs::read(self.path(device)).unwrap()));
                    std::fs::write(self.path(name), image).unwrap();
                }
                self.images(call, line)
            }
            Shows::Files => self.folders(call.but),
            Shows::Text => require(texts[0] == texts[1], || texts.join("\nbut\n")),
            Shows::Has(word) => runs.into_iter().try_for_each(|run| {
                let texts = [&run.stdout, &run.stderr].map(|text| String::from_utf8_lossy(text));
                require(texts.iter().any(|text| text.contains(word)), || texts.concat())
            }),
            Shows::Parsed(expression) => {
                let regex = Regex::new(expression).unwrap();
                let [ours, theirs] = texts.each_ref().map(|text| {
                    let found = regex.captures_iter(text);
                    let parts = found.map(|found| {
                        found.iter().skip(1).flatten().map(|part| part.as_str().to_owned()).collect()
                    });
                    parts.collect::<Vec<Vec<String>>>()
                });
                require(ours == theirs && !ours.is_empty(), || format!("{ours:?} but {theirs:?}"))
            }
            Shows::Decoded => ["ours", "theirs"].into_iter().try_for_each(|name| self.decoded(name)),
            _ => Ok(()),
        }
    }

    /// Decodes a compressed disk by the original tool, and compares it with its source.
    fn decoded(&self, name: &str) -> Result<(), String> {
        let Some(decoder) = peer("extract_compressed_fs") else { return Ok(()) };
        decoder.run(&[&self.path(name), &self.path("decoded")]);
        let mut decoded = std::fs::read(self.path("decoded")).unwrap();
        let source = std::fs::read(self.path("a.disk")).unwrap();
        decoded.truncate(source.len());
        require(decoded == source, || format!("{name} is decoded to other bytes"))
    }

    /// Completes a command with the words of a line.
    fn prepared(&self, mut command: Command, line: &str, out: &str) -> (Command, Option<PathBuf>) {
        command.current_dir(self.path("")).env_clear().env("TZ", "UTC").env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::null());
        let (mut is_first, mut target) = (true, None);
        for word in split(line) {
            let word = word.replace("OUT", out);
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
                [b'+', ..] if is_first => {}
                _ => {
                    command.arg(&word);
                    is_first = false;
                }
            }
        }
        (command, target)
    }

    /// Runs a line. What a pipe `OUT` got is returned as standard output.
    fn run(&self, command: Command, line: &str, out: &str) -> Output {
        let path = self.path(out);
        let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        let line = for_one(line, out == "ours");
        let mut device = None;
        match line.split(' ').next() {
            Some("+file" | "+device") => std::fs::write(&path, vec![0xa5; 4 << 20]).unwrap(),
            Some("+pipe") => {
                let status = Command::new("mkfifo").arg(&path).status().unwrap();
                assert!(status.success());
            }
            _ => {}
        }
        if line.starts_with("+device") {
            device = Some(LoopDevice::new(&path).unwrap());
        }
        let out = device.as_ref().map_or(path.as_path(), LoopDevice::path).display().to_string();
        let (mut command, target) = self.prepared(command, &line, &out);
        if line.starts_with("+pipe") {
            return through_pipe(command, &path);
        }
        let output = command.output().unwrap();
        if let Some(target) = target {
            std::fs::write(target, &output.stdout).unwrap();
        }
        output
    }

    /// Compares the mounts of both drivers.
    fn fuse(&self, call: &Call, line: &str, tool: Option<&Peer>) -> Result<(), String> {
        if !is_root() || !Path::new("/dev/fuse").exists() {
            skip("mounting through FUSE needs root and /dev/fuse");
            return Ok(());
        }
        let ours = self.shown(self.named(call.tool), line, "ours")?;
        let Some(tool) = tool else { return Ok(()) };
        compare(call.but, ours, self.shown(tool.command(&[]), line, "theirs")?)
    }

    /// Returns the tree that a driver shows.
    fn shown(&self, command: Command, line: &str, out: &str) -> Result<Snapshot, String> {
        let at = self.path(out);
        let _ = std::fs::remove_file(&at).or_else(|_| std::fs::remove_dir_all(&at));
        std::fs::create_dir(&at).unwrap();
        let (mut command, _) = self.prepared(command, line, &at.display().to_string());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let patience = Instant::now() + Duration::from_secs(20);
        while !at.join("etc").exists() && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(10));
        }
        let shown = at.join("etc").exists().then(|| snapshot_dir(&at));
        let _ = Command::new("umount").arg("-l").arg(&at).status();
        end(&mut child);
        shown.ok_or_else(|| format!("{out}: nothing was mounted"))
    }
}

/// Returns the line without braces: packfs gets what they hold, the tool does not.
fn for_one(line: &str, is_packfs: bool) -> String {
    if is_packfs {
        return line.replace(['{', '}'], "");
    }
    let parts = line.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest));
    parts.collect::<Vec<_>>().concat()
}

/// Runs a command that writes to a pipe.
fn through_pipe(mut command: Command, pipe: &Path) -> Output {
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let path = pipe.to_owned();
    let reader = std::thread::spawn(move || std::fs::read(path).unwrap());
    let mut output = child.wait_with_output().unwrap();
    // A reader whose writer never came waits for one.
    let mut open = std::fs::OpenOptions::new();
    let _ = open.write(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(pipe);
    output.stdout = reader.join().unwrap();
    output
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
