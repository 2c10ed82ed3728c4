//! Tries many mutated images, each under guard, and counts how they end.
//!
//! `packfs-mutate KIND [--images N] [--seed N] [--minutes N] [--state FILE] [--findings
//! DIR]` starts workers and watches them; `packfs-mutate KIND --case
//! N` tries one case again, in this process, and keeps its image; `packfs-mutate KIND --write DIR
//! --from N --images M` only writes cases N to M, for other programs to be tried on.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of developers")]

use packfs_hostile::session::{Session, kinds};
use packfs_hostile::tally::{Ending, Found, Tally};
use packfs_hostile::{Class, Sandpit, Verdict};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// No image may take longer.
const TIME_MAX: Duration = Duration::from_secs(10);
/// No image may take more memory, the program itself included, in KiB.
const MEMORY_MAX: u64 = 512 << 10;
/// Address space of a worker, so that the machine outlives what it finds, in bytes.
const ADDRESS_SPACE_MAX: u64 = 8 << 30;
/// Cases of one worker.
const CASES_A_WORKER: u64 = 5000;

type Failure = Box<dyn std::error::Error>;

/// A worker's report on a case.
#[derive(Serialize, Deserialize)]
struct Done {
    case: u64,
    base: String,
    class: Class,
    verdict: Option<Verdict>,
    breach: Option<String>,
    panic: Option<String>,
    memory: u64,
    took: u64,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

struct Asked {
    format: String,
    images: u64,
    seed: u64,
    minutes: Option<u64>,
    state: Option<PathBuf>,
    findings: PathBuf,
    case: Option<u64>,
    worker: Option<u64>,
    write: Option<PathBuf>,
    from: u64,
}

impl Asked {
    fn read() -> Result<Asked, Failure> {
        let mut words = std::env::args().skip(1);
        let kinds = kinds();
        let format = words.next().ok_or_else(|| format!("which of {}?", kinds.join(", ")))?;
        if !kinds.contains(&&*format) {
            return Err(format!("{format:?}: {} are allowed", kinds.join(", ")).into());
        }
        let mut asked = Asked {
            format,
            images: 100_000,
            seed: 1,
            minutes: None,
            state: None,
            findings: std::env::temp_dir(),
            case: None,
            worker: None,
            write: None,
            from: 0,
        };
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{word} {value}: a number is needed"));
            match &*word {
                "--images" => asked.images = number()?,
                "--seed" => asked.seed = number()?,
                "--minutes" => asked.minutes = Some(number()?),
                "--state" => asked.state = Some(value.into()),
                "--findings" => asked.findings = value.into(),
                "--case" => asked.case = Some(number()?),
                "--worker" => asked.worker = Some(number()?),
                "--write" => asked.write = Some(value.into()),
                "--from" => asked.from = number()?,
                _ => return Err(format!("no option {word}").into()),
            }
        }
        Ok(asked)
    }
}

/// Runs all cases; returns true if nothing was found.
fn run() -> Result<bool, Failure> {
    if std::env::args().nth(1).is_some_and(|word| word == "kinds") {
        println!("{}", kinds().join("\n"));
        return Ok(true);
    }
    let asked = Asked::read()?;
    if let Some(from) = asked.worker {
        work(&asked, from)?;
        return Ok(true);
    }
    if let Some(number) = asked.case {
        return again(&asked, number);
    }
    if let Some(folder) = &asked.write {
        let session = Session::new(&asked.format, asked.seed)?;
        for number in asked.from..asked.images {
            write_image(folder, &asked.format, number, &session.case(number).bytes)?;
        }
        return Ok(true);
    }
    let known = asked.state.as_ref().and_then(|path| std::fs::read(path).ok());
    let mut tally: Tally = known.map(|text| serde_json::from_slice(&text)).transpose()?.unwrap_or_default();
    let start = Instant::now();
    while tally.next < asked.images {
        if asked.minutes.is_some_and(|minutes| start.elapsed() >= Duration::from_secs(60 * minutes)) {
            eprintln!("stopped before case {}; the same command goes on there", tally.next);
            break;
        }
        watch(&asked, &mut tally)?;
        if let Some(path) = &asked.state {
            std::fs::write(path, serde_json::to_vec(&tally)?)?;
        }
    }
    println!("{}, seed {}, {} images\n\n{}", asked.format, asked.seed, tally.next, tally.table());
    for found in &tally.found {
        println!("case {}: {:?}: {}", found.case, found.ending, found.what);
    }
    Ok(tally.found.is_empty())
}

/// Runs one worker until it is through with its cases, or ends before that.
fn watch(asked: &Asked, tally: &mut Tally) -> Result<(), Failure> {
    let until = asked.images.min(tally.next + CASES_A_WORKER);
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(&asked.format).args(["--seed", &asked.seed.to_string()]);
    command.args(["--worker", &tally.next.to_string(), "--images", &until.to_string()]);
    let mut worker = Worker(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?);
    let stdout = worker.0.stdout.take().ok_or("a worker without output")?;
    let (sender, lines) = channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut under_way = None;
    while tally.next < until {
        // Making the valid images takes its time too.
        let patience = if under_way.is_some() { TIME_MAX } else { 6 * TIME_MAX };
        match lines.recv_timeout(patience) {
            Ok(line) => match line.split_once(' ') {
                Some(("start", rest)) => {
                    under_way = Some(serde_json::from_str::<(u64, Class, String)>(rest)?)
                }
                Some(("done", rest)) => {
                    note(asked, tally, serde_json::from_str(rest)?)?;
                    tally.next += 1;
                }
                _ => return Err(format!("a worker said {line:?}").into()),
            },
            Err(over) => {
                let Some((case, class, base)) = under_way else {
                    return Err("a worker did not start".into());
                };
                let (ending, what) = if over == RecvTimeoutError::Timeout {
                    (Ending::Timeout, format!("more than {TIME_MAX:?}"))
                } else {
                    (Ending::Signal, format!("the process ended: {}", worker.0.wait()?))
                };
                keep(
                    asked,
                    tally,
                    class,
                    Found { case, ending, what: format!("{class:?} of {base}: {what}") },
                )?;
                tally.next = case + 1;
                break;
            }
        }
    }
    drop(worker);
    drop(lines);
    let _ = reader.join();
    Ok(())
}

/// A worker that does not outlive its watcher.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn note(asked: &Asked, tally: &mut Tally, done: Done) -> Result<(), Failure> {
    tally.memory_max = tally.memory_max.max(done.memory);
    tally.longest = tally.longest.max(done.took);
    let said = format!("{:?} of {}", done.class, done.base);
    let bad = if let Some(panic) = done.panic {
        Some((Ending::Panic, panic))
    } else if let Some(breach) = done.breach {
        Some((Ending::Breach, breach))
    } else if done.memory > MEMORY_MAX {
        Some((Ending::Memory, format!("{} MiB", done.memory >> 10)))
    } else if done.took > TIME_MAX.as_millis() as u64 {
        Some((Ending::Timeout, format!("{} ms", done.took)))
    } else {
        None
    };
    match (bad, done.verdict) {
        (Some((ending, what)), _) => {
            keep(asked, tally, done.class, Found { case: done.case, ending, what: format!("{said}: {what}") })
        }
        (None, Some(verdict)) => {
            tally.count(done.class, Ending::Judged(verdict));
            Ok(())
        }
        (None, None) => Err("a worker gave no verdict".into()),
    }
}

/// Counts what was found and keeps its image.
fn keep(asked: &Asked, tally: &mut Tally, class: Class, found: Found) -> Result<(), Failure> {
    eprintln!("case {}: {:?}: {}", found.case, found.ending, found.what);
    let session = Session::new(&asked.format, asked.seed)?;
    write_image(&asked.findings, &asked.format, found.case, &session.case(found.case).bytes)?;
    tally.count(class, found.ending);
    tally.found.push(found);
    Ok(())
}

fn write_image(folder: &Path, format: &str, case: u64, bytes: &[u8]) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("{format}-{case}.img"));
    std::fs::write(&path, bytes)?;
    Ok(path)
}

/// Messages of this process's panics.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn panics() -> Vec<String> {
    std::mem::take(&mut *PANICS.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

fn work(asked: &Asked, from: u64) -> Result<(), Failure> {
    let limit =
        rustix::process::Rlimit { current: Some(ADDRESS_SPACE_MAX), maximum: Some(ADDRESS_SPACE_MAX) };
    rustix::process::setrlimit(rustix::process::Resource::As, limit)?;
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string().replace('\n', " ");
        PANICS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(text);
    }));
    let session = Session::new(&asked.format, asked.seed)?;
    let pit = Sandpit::new()?;
    let mut out = std::io::stdout().lock();
    for number in from..asked.images {
        let case = session.case(number);
        writeln!(out, "start {}", serde_json::to_string(&(number, case.class, &case.base))?)?;
        out.flush()?;
        forget_peak();
        let start = Instant::now();
        let judged = catch_unwind(AssertUnwindSafe(|| case.judge(&pit))).ok();
        let took = start.elapsed().as_millis() as u64;
        let done = Done {
            case: number,
            base: case.base,
            class: case.class,
            verdict: judged.as_ref().map(|judged| judged.verdict),
            breach: judged.and_then(|judged| judged.breach).map(|breach| breach.to_string()),
            panic: panics().into_iter().next(),
            memory: peak(),
            took,
        };
        writeln!(out, "done {}", serde_json::to_string(&done)?)?;
        out.flush()?;
    }
    Ok(())
}

/// Has the kernel measure the peak anew.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most memory that was resident, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Tries one case, for people.
fn again(asked: &Asked, number: u64) -> Result<bool, Failure> {
    let case = Session::new(&asked.format, asked.seed)?.case(number);
    let path = write_image(&asked.findings, &asked.format, number, &case.bytes)?;
    println!("case {number}: {:?} of {}; the image is {}", case.class, case.base, path.display());
    forget_peak();
    let judged = case.judge(&Sandpit::new()?);
    println!("{:?}, {} MiB", judged.verdict, peak() >> 10);
    if let Some(error) = &judged.error {
        println!("error: {error}");
    }
    if let Some(breach) = &judged.breach {
        println!("breach: {breach}");
    }
    Ok(judged.breach.is_none())
}
