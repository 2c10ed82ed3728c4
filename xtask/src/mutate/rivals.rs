//! `cargo xtask mutate --rivals`: mutated images as input of rivals, with the limits of packfs.
//!
//! Each program unpacks each image, or lists it if it cannot unpack, in a separate process of an
//! unprivileged user. Changes outside its target are detected and cannot do harm.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use wait4::Wait4;

use crate::failure::{Failure, Result};
use crate::table::Table;
use crate::{metadata, peers, shell, workspace};

/// Limits, as for packfs: seconds of processor time, resident bytes, address space.
const SECONDS_MAX: u64 = 10;
const MEMORY_MAX: u64 = 512 << 20;
const ADDRESS_SPACE_KIB: u64 = 8 << 20;
/// Maximum length of files, to protect the disk; the program gets an error.
const FILE_LEN_KIB: u64 = 1 << 20;
/// Maximum wall time: a program that blocks uses no processor time.
const PATIENCE: Duration = Duration::from_secs(120);
/// Number of images on the disk at a time.
const BATCH: usize = 500;
/// User and group without files.
const NOBODY: u32 = 65_534;
/// Maximum number of cases listed for each ending.
const NAMED_MAX: usize = 5;

/// Function that returns the command line for an image and a target that does not exist yet.
type Words = Box<dyn Fn(&Path, &Path) -> Vec<OsString>>;

struct Tried {
    name: String,
    version: String,
    words: Words,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    Read,
    Refused,
    Signal(i32),
    Timeout,
    Memory,
    Outside,
}

/// Tests the first `images` cases of a seed.
pub fn run(formats: &[&str], images: usize, seed: usize, packfs: Option<&str>) -> Result<()> {
    let packfs = packfs.map_or_else(built, |path| Ok(path.into()))?;
    let programs = |format: &str| Ok::<_, Failure>(others(format)?.into_iter().chain([ours(&packfs)?]));
    for format in formats {
        let programs: Vec<Tried> = programs(format)?.collect();
        let pit = Pit::make()?;
        let mut endings = vec![BTreeMap::<Ending, Vec<usize>>::new(); programs.len()];
        for from in (0..images).step_by(BATCH) {
            let until = images.min(from + BATCH);
            let mut write = super::program("packfs-mutate");
            write.arg(format).args(["--seed", &seed.to_string(), "--from", &from.to_string()]);
            write.args(["--images", &until.to_string(), "--write"]).arg(pit.images());
            shell::run_quietly(&mut write)?;
            for case in from..until {
                let image = pit.images().join(format!("{format}-{case}.img"));
                for (program, endings) in programs.iter().zip(&mut endings) {
                    endings.entry(pit.run(program, &image)?).or_default().push(case);
                }
                fs::remove_file(&image).map_err(|error| Failure::io("remove", &image, error))?;
            }
            eprintln!("{format}: {until} of {images}");
        }
        println!("{format}, seed {seed}, {images} images\n\n{}", table(&programs, &endings).markdown());
        for (program, endings) in programs.iter().zip(&endings) {
            for (ending, cases) in endings {
                if !matches!(ending, Ending::Read | Ending::Refused) {
                    let first: Vec<String> = cases.iter().take(NAMED_MAX).map(usize::to_string).collect();
                    println!(
                        "{} {ending:?}: {} cases, such as {}",
                        program.name,
                        cases.len(),
                        first.join(", ")
                    );
                }
            }
        }
    }
    Ok(())
}

fn table(programs: &[Tried], endings: &[BTreeMap<Ending, Vec<usize>>]) -> Table {
    let headings = ["program", "version", "read", "refused", "signal", "timeout", "memory", "outside"];
    let mut table = Table::new(&headings, 2);
    for (program, endings) in programs.iter().zip(endings) {
        let count = |ending| endings.get(&ending).map_or(0, Vec::len).to_string();
        let signals: Vec<String> = endings
            .iter()
            .filter_map(|(ending, cases)| match ending {
                Ending::Signal(number) => Some(format!("{} {}", cases.len(), signal_name(*number))),
                _ => None,
            })
            .collect();
        table.row(vec![
            program.name.clone(),
            program.version.clone(),
            count(Ending::Read),
            count(Ending::Refused),
            if signals.is_empty() { "0".into() } else { signals.join(", ") },
            count(Ending::Timeout),
            count(Ending::Memory),
            count(Ending::Outside),
        ]);
    }
    table
}

fn signal_name(number: i32) -> String {
    let known =
        [(4, "SIGILL"), (6, "SIGABRT"), (7, "SIGBUS"), (8, "SIGFPE"), (9, "SIGKILL"), (11, "SIGSEGV")];
    let found = known.iter().find(|(known, _)| *known == number);
    found.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}

fn built() -> Result<PathBuf> {
    let mut cargo = metadata::cargo();
    cargo.args(["build", "--release", "--quiet", "--package", "packfs-cli", "--bin", "packfs"]);
    shell::run(cargo.current_dir(workspace::root()))?;
    Ok(metadata::Workspace::read()?.target_directory.join("release/packfs"))
}

fn ours(packfs: &Path) -> Result<Tried> {
    let said = shell::capture(Command::new(packfs).arg("--version"))?;
    let version = said.split_whitespace().nth(1).unwrap_or("unknown").to_owned();
    let packfs = packfs.to_owned();
    let words = move |image: &Path, dir: &Path| {
        let start: [OsString; 4] = [packfs.clone().into(), "unpack".into(), image.into(), dir.into()];
        start.into_iter().chain(["--jobs", "1", "--quiet"].map(OsString::from)).collect()
    };
    Ok(Tried { name: "packfs".into(), version, words: Box::new(words) })
}

fn others(format: &str) -> Result<Vec<Tried>> {
    if format == "erofs" {
        let fsck = |image: &Path, dir: &Path| {
            let mut extract = OsString::from("--extract=");
            extract.push(dir);
            vec![extract, "-d0".into(), image.into()]
        };
        let dump = |image: &Path, _: &Path| vec!["-s".into(), "-S".into(), image.into()];
        return Ok(vec![peer("fsck.erofs", fsck)?, peer("dump.erofs", dump)?]);
    }
    let unsquashfs = |image: &Path, dir: &Path| {
        let mut words: Vec<OsString> =
            ["-no-progress", "-quiet", "-processors", "1", "-d"].map(OsString::from).into();
        words.extend([dir.into(), image.into()]);
        words
    };
    let rdsquashfs = |image: &Path, dir: &Path| {
        let mut words: Vec<OsString> = ["-q", "-u", "/", "-p"].map(OsString::from).into();
        words.extend([dir.into(), image.into()]);
        words
    };
    let sqfs2tar = |image: &Path, _: &Path| vec![image.into()];
    let mut all =
        vec![peer("unsquashfs", unsquashfs)?, peer("rdsquashfs", rdsquashfs)?, peer("sqfs2tar", sqfs2tar)?];
    all.extend(["7zz", "7z"].into_iter().find_map(seven_zip));
    Ok(all)
}

fn peer(name: &'static str, rest: impl Fn(&Path, &Path) -> Vec<OsString> + 'static) -> Result<Tried> {
    let (start, found) = peers::command(name)?;
    let words = move |image: &Path, dir: &Path| start.iter().cloned().chain(rest(image, dir)).collect();
    Ok(Tried { name: name.into(), version: found.upstream_version().into(), words: Box::new(words) })
}

fn seven_zip(name: &str) -> Option<Tried> {
    let program = shell::find_program(name)?;
    let said = Command::new(&program).output().ok()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let line = said.lines().find(|line| line.starts_with("7-Zip"))?;
    // `7-Zip (z) 26.02 (x64) ...`
    let mut words = line.split_whitespace().skip(1);
    let version = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let words = move |image: &Path, dir: &Path| {
        let mut output = OsString::from("-o");
        output.push(dir);
        vec![program.clone().into(), "x".into(), "-y".into(), "-bd".into(), output, image.into()]
    };
    Some(Tried { name: name.into(), version: version.to_owned(), words: Box::new(words) })
}

struct Pit(PathBuf);

const SENTINEL: &[u8] = b"untouched";

impl Pit {
    fn make() -> Result<Pit> {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let pit = Pit(place.join(format!("packfs-rivals-{}", std::process::id())));
        for folder in [pit.0.clone(), pit.images(), pit.room(), pit.room().join("work")] {
            workspace::make_dir(&folder)?;
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&folder, mode).map_err(|error| Failure::io("make", &folder, error))?;
        }
        let sentinel = pit.room().join("sentinel");
        fs::write(&sentinel, SENTINEL).map_err(|error| Failure::io("write", &sentinel, error))?;
        if shell::is_root() {
            for path in [pit.room(), pit.room().join("work"), sentinel] {
                chown(&path, Some(NOBODY), Some(NOBODY))
                    .map_err(|error| Failure::io("give", &path, error))?;
            }
        }
        Ok(pit)
    }

    fn images(&self) -> PathBuf {
        self.0.join("images")
    }

    fn room(&self) -> PathBuf {
        self.0.join("room")
    }

    fn run(&self, program: &Tried, image: &Path) -> Result<Ending> {
        let target = self.room().join("target");
        let words = (program.words)(image, &target);
        let limits = format!(
            "ulimit -c 0; ulimit -t {SECONDS_MAX}; ulimit -v {ADDRESS_SPACE_KIB}; ulimit -f {}; trap '' XFSZ; exec \"$@\"",
            FILE_LEN_KIB * 2
        );
        let mut command = Command::new("sh");
        command.args(["-c", &limits, "sh"]).args(&words).current_dir(self.room().join("work"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if shell::is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", program.name));
        let child = command.spawn().map_err(failed)?;
        let pid = Pid::from_child(&child);
        let (done, ended) = mpsc::channel::<()>();
        let watch = std::thread::spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        let result = child.wait4().map_err(failed)?;
        drop(done);
        let _ = watch.join();
        let usage = result.rusage;
        let ending = match result.status.signal() {
            _ if usage.maxrss > MEMORY_MAX => Ending::Memory,
            Some(number) if number == Signal::XCPU.as_raw() || number == Signal::KILL.as_raw() => {
                Ending::Timeout
            }
            Some(number) => Ending::Signal(number),
            None if result.status.success() => Ending::Read,
            // Exit status of a shell whose program ended by a signal.
            None => match result.status.code().filter(|code| (129..160).contains(code)) {
                Some(code) => Ending::Signal(code - 128),
                None => Ending::Refused,
            },
        };
        let clean = self.is_clean();
        self.clear(&target)?;
        Ok(if clean { ending } else { Ending::Outside })
    }

    /// Returns true if all files beside the target are unchanged, and none was added.
    fn is_clean(&self) -> bool {
        let names = |dir: &Path| -> Vec<OsString> {
            fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
        };
        let beside =
            names(&self.room()).iter().all(|name| name == "target" || name == "work" || name == "sentinel");
        let said = fs::read(self.room().join("sentinel"));
        beside && names(&self.room().join("work")).is_empty() && said.is_ok_and(|said| said == SENTINEL)
    }

    fn clear(&self, target: &Path) -> Result<()> {
        if fs::remove_dir_all(target).is_err() && target.symlink_metadata().is_ok() {
            // Some paths exceed the maximum length; `rm` walks relative to folders and removes
            // them.
            shell::run_quietly(Command::new("rm").arg("-rf").arg(target))?;
        }
        Ok(())
    }
}

impl Drop for Pit {
    fn drop(&mut self) {
        let _ = Command::new("rm").arg("-rf").arg(&self.0).status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &'static str) -> Tried {
        let words = move |_: &Path, target: &Path| {
            vec!["sh".into(), "-c".into(), text.into(), "sh".into(), OsString::from(target)]
        };
        Tried { name: "script".into(), version: "1".into(), words: Box::new(words) }
    }

    #[test]
    fn distinguishes_endings() {
        for (text, wanted) in [
            ("mkdir \"$1\"; echo a > \"$1/a\"", Ending::Read),
            ("exit 3", Ending::Refused),
            ("kill -SEGV $$", Ending::Signal(11)),
            ("kill -XCPU $$", Ending::Timeout),
            ("echo a > ../outside", Ending::Outside),
            ("echo a > ../sentinel", Ending::Outside),
        ] {
            let pit = Pit::make().unwrap();
            assert_eq!(pit.run(&script(text), Path::new("/dev/null")).unwrap(), wanted, "{text}");
            drop(pit);
        }
    }
}
