//! One run of one program, measured from outside.
//!
//! Peak memory comes from the kernel's account of the child. Until a child starts its program that account includes
//! pages it shares with us, so this process has to stay small: nothing big is ever read or built in it.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4;

use crate::failure::{Failure, Result};
use crate::rivals;

/// What one run took.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub wall: Duration,
    pub user: Duration,
    pub system: Duration,
    /// Most memory it ever had resident, in bytes.
    pub memory_peak: u64,
    /// Length of what it wrote: the image or the tar; None for a tree.
    pub output_len: Option<u64>,
}

impl Sample {
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

/// Runs a command to its end. It has to succeed; `stdout` takes its standard output.
pub fn run(words: &[OsString], stdout: Option<&Path>) -> Result<Sample> {
    let failed = |what: String| Failure::new(format!("{}: {what}", rivals::spelled(words)));
    let (program, arguments) = words.split_first().ok_or_else(|| failed("no command".into()))?;
    let out = match stdout {
        Some(path) => File::create(path).map_err(|error| Failure::io("make", path, error))?.into(),
        None => Stdio::null(),
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(out);

    let start = Instant::now();
    let child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let ended = child.wait4().map_err(|error| failed(error.to_string()))?;
    let wall = start.elapsed();

    if !ended.status.success() {
        return Err(failed(ended.status.to_string()));
    }
    let usage = ended.rusage;
    let (user, system, memory_peak) = (usage.utime, usage.stime, usage.maxrss);
    Ok(Sample { wall, user, system, memory_peak, output_len: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<OsString> {
        text.iter().map(OsString::from).collect()
    }

    #[test]
    fn measures_the_processor_time_and_memory_of_the_child() {
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let sample = run(&words(&["sh", "-c", busy]), None).unwrap();
        assert!(sample.cpu() > Duration::ZERO && sample.wall > Duration::ZERO);
        assert!(sample.memory_peak > 100 << 10, "{}", sample.memory_peak);
    }

    #[test]
    fn fails_when_the_command_fails() {
        let error = run(&words(&["sh", "-c", "exit 3"]), None).unwrap_err();
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }
}
