//! `cargo xtask stress-mount`: many processes compare a mount with its source for minutes, then its program is killed.
//!
//! Any difference and any error ends it. After `kill -9` readers have to get errors, and `packfs umount` has to clear
//! what is left.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::args;
use crate::bench::read::{self, Images, MountCase};
use crate::failure::{Failure, Result};
use crate::load::Done;
use crate::mounts::{Mounted, Mounter, is_mount_point};
use crate::rivals::{ErofsFuse, Format, Packfs, Rival, SquashfuseLl};
use crate::shell;

pub const HELP: &str = "\
Usage: cargo xtask stress-mount [OPTIONS]

  --minutes N         for each image [5]
  --seconds N         instead of minutes
  --processes N       as many compare at the same time [8]
  --formats A,B       only these: squashfs erofs
  --codecs A,B        images of these instead of zstd of SquashFS, lz4hc and zstd of EROFS
  --packfs PATH       try this program instead of building one
  --with NAME         mount by packfs, kernel or fuse (squashfuse_ll and erofsfuse) [packfs]
  --scratch DIR       where the image lies [/dev/shm]

Needs root, `cargo xtask peers` and the Debian root of `cargo xtask corpus`.";

/// How long a reader may take to learn that the program is gone.
const ERROR_MAX: Duration = Duration::from_secs(30);

pub fn run(mut args: args::Args) -> Result<()> {
    let seconds = args.number("--minutes", 5)? * 60;
    let seconds = args.number("--seconds", seconds)?;
    let processes = args.number("--processes", 8)?;
    let with = args.option("--with")?.unwrap_or_else(|| "packfs".to_owned());
    let (formats, codecs) = (args.list("--formats")?, args.list("--codecs")?);
    let program = args.option("--packfs")?.map(PathBuf::from);
    let scratch = args.option("--scratch")?.map(PathBuf::from);
    args.finish_empty()?;

    let cases = read::images_of_trees(&formats, &codecs)?;
    let packfs = match (with.as_str(), program) {
        ("packfs", Some(program)) => Some(Packfs::at(program)?),
        ("packfs", None) => Some(Packfs::build()?),
        ("kernel" | "fuse", _) => None,
        (other, _) => return Err(Failure::usage(format!("--with {other:?}: packfs, kernel or fuse"))),
    };
    let (squashfuse_ll, erofsfuse) = (SquashfuseLl::find()?, ErofsFuse::find()?);
    let scratch = read::scratch(scratch.as_deref())?;
    let images = Images::new(processes.min(2))?;
    for case in &cases {
        let mounter = match (&packfs, with.as_str(), case.format) {
            (Some(packfs), ..) => Mounter::Program(packfs),
            (None, "kernel", _) => Mounter::Kernel,
            (None, _, Format::Squashfs) => Mounter::Program(&squashfuse_ll as &dyn Rival),
            (None, _, Format::Erofs) => Mounter::Program(&erofsfuse),
        };
        case.workload.corpus().ensure()?;
        let image = images.provide(case, &scratch)?;
        let mut mounted = Mounted::new(mounter, case.format, &image, &scratch.path("mnt"))?;
        compare(case, &mounted, processes, seconds)?;
        if let Some(packfs) = &packfs {
            kill_and_clear(case, &mut mounted, packfs)?;
        }
    }
    Ok(())
}

/// All processes at once, each with a seed of its own; the first that finds something ends the others.
fn compare(case: &MountCase, mounted: &Mounted, processes: usize, seconds: usize) -> Result<()> {
    let (image, source) = (case.image_label(), case.workload.corpus().path());
    eprintln!("{image}: {processes} processes for {seconds} s");
    let start = |seed: usize| reader("verify", &mounted.dir, &source, seed + 1, seconds);
    let mut running = Running((0..processes).map(start).collect::<Result<_>>()?);
    let total = running.finish()?;
    let memory = mounted.memory_peak().map_or_else(String::new, |len| {
        format!("; the program had at most {} MiB resident", len.div_ceil(1 << 20))
    });
    println!(
        "{image}: {} operations, {} MB compared, no difference{memory}",
        total.operations,
        total.bytes / 1_000_000
    );
    Ok(())
}

/// Kills the program under a reader.
fn kill_and_clear(case: &MountCase, mounted: &mut Mounted, packfs: &Packfs) -> Result<()> {
    let (image, dir) = (case.image_label(), mounted.dir.clone());
    let source = case.workload.corpus().path();
    let mut running = Running(vec![reader("verify", &dir, &source, 99, 3600)?]);
    std::thread::sleep(Duration::from_millis(500));
    mounted.kill_daemon();
    running.expect_errors()?;
    let words = packfs.unmount_command(&dir);
    let (program, arguments) =
        words.split_first().ok_or_else(|| Failure::new("no command to unmount with"))?;
    shell::run_quietly(Command::new(program).args(arguments))?;
    if is_mount_point(&dir) {
        return Err(Failure::new(format!("{image}: packfs umount left {} mounted", dir.display())));
    }
    println!("{image}: killed under a reader, which got an error; packfs umount cleared the mount");
    Ok(())
}

/// A process of ours that reads a mount.
fn reader(work: &str, dir: &Path, source: &Path, seed: usize, seconds: usize) -> Result<Child> {
    let program =
        std::env::current_exe().map_err(|error| Failure::new(format!("cannot find myself: {error}")))?;
    let mut command = Command::new(program);
    command.args(["load", work]).arg(dir).arg("--names-of").arg(source);
    command.args(["--seed", &seed.to_string(), "--seconds", &seconds.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|error| Failure::new(format!("cannot start a reader: {error}")))
}

/// Readers at work, killed when dropped.
struct Running(Vec<Child>);

impl Running {
    /// Waits for all and adds up what they did; the first failure is the outcome.
    fn finish(&mut self) -> Result<Done> {
        let mut total = Done::default();
        while !self.0.is_empty() {
            let Some(at) = self.ended()? else {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            let done = outcome(self.0.swap_remove(at))?;
            total.operations += done.operations;
            total.bytes += done.bytes;
        }
        Ok(total)
    }

    /// Every reader has to fail, and soon.
    fn expect_errors(&mut self) -> Result<()> {
        let start = Instant::now();
        while !self.0.is_empty() {
            match self.ended()? {
                Some(at) => {
                    if outcome(self.0.swap_remove(at)).is_ok() {
                        return Err(Failure::new("a reader noticed nothing of the program's end"));
                    }
                }
                None if start.elapsed() > ERROR_MAX => {
                    return Err(Failure::new("a reader hangs although the program is gone"));
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        Ok(())
    }

    fn ended(&mut self) -> Result<Option<usize>> {
        for (index, child) in self.0.iter_mut().enumerate() {
            if child.try_wait().map_err(|error| Failure::new(format!("a reader: {error}")))?.is_some() {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Both fail only if it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn outcome(child: Child) -> Result<Done> {
    let output = child.wait_with_output().map_err(|error| Failure::new(format!("a reader: {error}")))?;
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let done = output.status.success().then(|| Done::from_json(&said)).flatten();
    done.ok_or_else(|| {
        Failure::new(format!("a reader ended with {}: {}", output.status, complained.trim_end()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(scripts: &[&str]) -> Running {
        let start = |script: &&str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        Running(scripts.iter().map(start).collect())
    }

    const DONE: &str = r#"echo '{"seconds":1,"cpu_seconds":0.5,"operations":7,"bytes":9}'"#;

    #[test]
    fn adds_up_what_readers_did() {
        let done = running(&[DONE, DONE]).finish().unwrap();
        assert_eq!((done.operations, done.bytes), (14, 18));
    }

    #[test]
    fn ends_with_the_first_reader_that_fails() {
        let mut running = running(&["exec sleep 1000", "echo differs >&2; exit 1"]);
        let error = running.finish().unwrap_err().to_string();
        assert!(error.ends_with("exit status: 1: differs"), "{error}");
    }

    #[test]
    fn expects_readers_of_a_dead_mount_to_fail() {
        assert!(running(&["exit 1"]).expect_errors().is_ok());
        assert!(running(&[DONE]).expect_errors().is_err());
    }
}
