//! Progress on a terminal: one bar for each stage with files, bytes, ratio and remaining time; and
//! cancellation.
//!
//! Nothing is drawn unless standard error is a terminal and neither `--quiet` nor `--json` was
//! given. Warnings are always printed, on standard error. The work queries [`Bars::cancelled`] and
//! ends by itself, so that it can clean up; a second signal ends the program at once.

use crate::{report, text};
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use packfs::{Error, Progress, Stage};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Shorter work shows no bar, which would flash.
const DELAY: Duration = Duration::from_millis(300);
/// Default width in columns, for terminals that do not report theirs.
const COLUMNS: usize = 80;
/// Length of a bar between its brackets, in columns: preferred, and least.
const BAR_LENS: (usize, usize) = (24, 8);
/// Interval between updates of the bars.
const TICK: Duration = Duration::from_millis(120);
/// Time for work that may wait for its input to notice a signal.
const PATIENCE: Duration = Duration::from_secs(1);

static UNDO: OnceLock<fn() -> Vec<Error>> = OnceLock::new();

/// Registers `undo`, called before a signal ends the program at once; it returns errors. Only the
/// first registration counts.
pub fn undo_before_exit(undo: fn() -> Vec<Error>) {
    // A second registration would be by the same program.
    let _ = UNDO.set(undo);
}

/// Values shown beside bytes.
#[derive(Default)]
struct Counters {
    files: AtomicU64,
    files_total: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

#[derive(Default)]
struct Stop {
    /// 0 without a signal.
    signal: AtomicI32,
    /// Set while temporary files may exist, which must be removed before the program ends.
    leaves_traces: AtomicBool,
}

/// Progress bars, and the handler of signals.
pub struct Bars {
    bar: ProgressBar,
    counters: Arc<Counters>,
    stop: Arc<Stop>,
    by_files: AtomicBool,
    started: Instant,
    /// True to report parts line by line, if bars are wanted without a terminal.
    tells_parts: bool,
}

impl Bars {
    /// Returns bars if `wanted` and standard error is a terminal. From now on SIGINT and SIGTERM
    /// only request cancellation, and so does SIGHUP, unless it was ignored at the start, as by
    /// `nohup`.
    pub fn new(wanted: bool) -> Self {
        let shown = wanted && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bars = Bars {
            bar: ProgressBar::with_draw_target(None, target),
            counters: Arc::default(),
            stop: Arc::default(),
            by_files: AtomicBool::new(false),
            started: Instant::now(),
            tells_parts: wanted && !shown,
        };
        // A warning before the first stage also redraws the bar.
        bars.bar.set_style(style(Stage::Scan, bars.started, &bars.counters));
        bars.listen();
        bars
    }

    fn listen(&self) {
        // Without handlers a signal ends the program at once, without cleanup.
        let Ok(mut signals) = signal_hook::iterator::Signals::new(listened()) else { return };
        let stop = Arc::clone(&self.stop);
        let bar = self.bar.clone();
        std::thread::spawn(move || {
            for signal in signals.forever() {
                let first = stop.signal.swap(signal, Ordering::SeqCst) == 0;
                if first && !stop.leaves_traces.load(Ordering::SeqCst) {
                    std::thread::sleep(PATIENCE);
                }
                if !first || !stop.leaves_traces.load(Ordering::SeqCst) {
                    bar.finish_and_clear();
                    // Mounts and folders would outlast the program.
                    for error in UNDO.get().into_iter().flat_map(|undo| undo()) {
                        report::failure(&error);
                    }
                    std::process::exit(128 + signal);
                }
            }
        });
    }

    /// Prints without disturbing the bar.
    pub fn beside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Clears the bar before a result is printed.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Returns the exit code of a cancelled program: 129, 130 or 143.
    pub fn stopped_exit_code(&self) -> Option<u8> {
        match self.stop.signal.load(Ordering::SeqCst) {
            0 => None,
            signal => u8::try_from(128 + signal).ok(),
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Progress for Bars {
    fn begin(&self, stage: Stage, files_total: u64, bytes_total: u64) {
        if stage != Stage::Scan {
            self.stop.leaves_traces.store(true, Ordering::SeqCst);
        }
        if self.bar.is_hidden() {
            return;
        }
        let counters = &self.counters;
        for counter in [&counters.files, &counters.bytes_in, &counters.bytes_out] {
            counter.store(0, Ordering::Relaxed);
        }
        counters.files_total.store(files_total, Ordering::Relaxed);
        self.by_files.store(bytes_total == 0, Ordering::Relaxed);
        let total = if bytes_total == 0 { files_total } else { bytes_total };
        // First, because all that follows draws.
        self.bar.set_style(style(stage, self.started, counters));
        self.bar.set_length(total);
        self.bar.reset();
        self.bar.enable_steady_tick(TICK);
    }

    fn advance(&self, files: u64, bytes_in: u64, bytes_out: u64) {
        if self.bar.is_hidden() {
            return;
        }
        self.counters.files.fetch_add(files, Ordering::Relaxed);
        self.counters.bytes_in.fetch_add(bytes_in, Ordering::Relaxed);
        self.counters.bytes_out.fetch_add(bytes_out, Ordering::Relaxed);
        self.bar.inc(if self.by_files.load(Ordering::Relaxed) { files } else { bytes_in });
    }

    fn part(&self, what: &str) {
        if self.tells_parts {
            report::note(what);
        }
    }

    fn warn(&self, message: &str) {
        self.bar.suspend(|| report::warning(message));
    }

    fn cancelled(&self) -> bool {
        self.stop.signal.load(Ordering::Relaxed) != 0
    }
}

/// Signals that request cancellation.
fn listened() -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM];
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !ignores_hangup(&status) {
        signals.push(SIGHUP);
    }
    signals
}

/// Tests signal 1 in `/proc/PID/status`.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

fn word(stage: Stage) -> &'static str {
    match stage {
        Stage::Scan => "scanning",
        Stage::Base => "reusing",
        Stage::Order => "ordering",
        Stage::Dedupe => "comparing",
        Stage::Data => "packing",
        Stage::Metadata => "writing metadata",
        Stage::Extract => "unpacking",
        Stage::Verify => "checking",
        Stage::Hash => "hashing",
        Stage::Upload => "uploading",
        _ => stage.name(),
    }
}

fn style(stage: Stage, started: Instant, counters: &Arc<Counters>) -> ProgressStyle {
    let counters = Arc::clone(counters);
    let draw = move |state: &ProgressState, out: &mut dyn Write| {
        if started.elapsed() >= DELAY {
            let (elapsed, eta) = (HumanDuration(state.elapsed()), HumanDuration(state.eta()));
            let total = state.len().filter(|total| *total > 0);
            let times = match total {
                Some(_) => format!("{elapsed:#}, {eta:#} to go"),
                None => format!("{elapsed:#}"),
            };
            let part = total.map(|total| (state.pos() as f64 / total as f64).min(1.0));
            let columns = report::columns(std::io::stderr()).unwrap_or(COLUMNS);
            // A failure to draw does not stop the work.
            let _ = out.write_str(&line(word(stage), part, &facts(stage, &counters), &times, columns));
        }
    };
    let style = ProgressStyle::with_template("{line}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    style.with_key("line", draw)
}

/// Omits facts that do not fit; each may have shorter forms, and the times take precedence:
///
/// ```text
///   packing [=====>       ]  45%  1,234/5,000 files  1.2 GiB  3s, 4s to go
/// ```
///
/// `part` is the completed share, if known.
fn line(word: &str, part: Option<f64>, facts: &[Vec<String>], times: &str, columns: usize) -> String {
    // Some terminals begin a new line after the last column.
    let room = columns.saturating_sub(1);
    let percent = part.map_or(String::new(), |part| format!(" {:>3.0}%", (part * 100.0).floor()));
    let start = format!("{word:>9}");
    let mut used = start.len() + percent.len();
    let bar_len_min = if part.is_some() { BAR_LENS.1 + 3 } else { 0 };
    let mut fitting = |text: &str| {
        let fits = !text.is_empty() && used + bar_len_min + 2 + text.len() <= room;
        used += if fits { 2 + text.len() } else { 0 };
        if fits { format!("  {text}") } else { String::new() }
    };
    let times = fitting(times);
    let shown = |forms: &Vec<String>| forms.iter().map(|form| fitting(form)).find(|form| !form.is_empty());
    let rest = facts.iter().filter_map(shown).collect::<String>() + &times;
    let bar_len = room.saturating_sub(used + 3).min(BAR_LENS.0);
    let bar = match part {
        Some(part) if bar_len >= BAR_LENS.1 => format!(" [{}]", bar(part, bar_len)),
        _ => String::new(),
    };
    let mut line = format!("{start}{bar}{percent}{rest}");
    line.truncate(room);
    line
}

fn bar(part: f64, len: usize) -> String {
    let filled = ((part * len as f64) as usize).min(len);
    let head = if filled < len { ">" } else { "" };
    format!("{:<len$}", "=".repeat(filled) + head)
}

/// `1,234/5,000 files` and `1.2 GiB > 400.0 MiB (33 %)`, as far as known, each in forms that become
/// shorter. Only packing writes less than it reads.
fn facts(stage: Stage, counters: &Counters) -> [Vec<String>; 2] {
    let [files, files_total, bytes_in, bytes_out] =
        [&counters.files, &counters.files_total, &counters.bytes_in, &counters.bytes_out]
            .map(|counter| counter.load(Ordering::Relaxed));
    let of_files = match files_total {
        0 if files == 0 => Vec::new(),
        0 => vec![format!("{} files", HumanCount(files))],
        total => vec![format!("{}/{} files", HumanCount(files), HumanCount(total))],
    };
    let read = text::size(bytes_in);
    let of_bytes = match (bytes_in, bytes_out) {
        (0, _) => Vec::new(),
        (_, 1..) if stage == Stage::Data => {
            let both = format!("{read} > {}", text::size(bytes_out));
            vec![format!("{both} ({})", text::percent(bytes_out, bytes_in)), both, read]
        }
        _ => vec![read],
    };
    [of_files, of_bytes]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_files_bytes_and_ratio() {
        let counters = Counters::default();
        let shown = |stage| facts(stage, &counters).map(|forms| forms.first().cloned().unwrap_or_default());
        counters.files.store(1234, Ordering::Relaxed);
        assert_eq!(shown(Stage::Data), ["1,234 files", ""]);
        counters.files_total.store(5000, Ordering::Relaxed);
        counters.bytes_in.store(3 << 20, Ordering::Relaxed);
        counters.bytes_out.store(1 << 20, Ordering::Relaxed);
        assert_eq!(shown(Stage::Data), ["1,234/5,000 files", "3.0 MiB > 1.0 MiB (33.3 %)"]);
        assert_eq!(shown(Stage::Extract), ["1,234/5,000 files", "3.0 MiB"], "nothing is compressed");
        counters.bytes_in.store(1, Ordering::Relaxed);
        assert_eq!(shown(Stage::Data)[1], "1 B > 1.0 MiB (over 999 %)");
    }

    #[test]
    fn a_line_is_shorter_than_the_terminal() {
        let files = vec!["123,456,789/123,456,789 files".to_owned()];
        let forms = ["1023.9 GiB > 1023.9 GiB (100.0 %)", "1023.9 GiB > 1023.9 GiB", "1023.9 GiB"];
        let facts = [files, forms.map(str::to_owned).into()];
        for columns in 0..200 {
            for part in [None, Some(0.0), Some(0.5), Some(1.0)] {
                for word in ["packing", "writing metadata"] {
                    let line = line(word, part, &facts, "12m, 34m to go", columns);
                    assert!(line.len() < columns.max(1), "{columns}: {line}");
                    assert!(columns < 80 || line.ends_with("12m, 34m to go"), "{columns}: {line}");
                }
            }
        }
        let shown = |columns| line("packing", Some(0.5), &facts, "3s, 4s to go", columns);
        assert_eq!(
            shown(80),
            "  packing [========>        ]  50%  123,456,789/123,456,789 files  3s, 4s to go"
        );
        let line = |columns| line("packing", Some(0.5), &[vec!["1/2 files".into()]], "3s, 4s to go", columns);
        assert_eq!(line(80), "  packing [============>           ]  50%  1/2 files  3s, 4s to go");
        assert_eq!(line(50), "  packing [=========>        ]  50%  3s, 4s to go");
        assert_eq!(line(12), "  packing  ");
    }

    #[test]
    fn a_hangup_that_is_ignored_stays_so() {
        assert!(ignores_hangup("Name:\tpackfs\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n"));
        assert!(!ignores_hangup("Name:\tpackfs\nSigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n"));
        assert!(!ignores_hangup(""));
    }

    #[test]
    fn the_template_is_valid() {
        assert!(ProgressStyle::with_template("{line}").is_ok());
        let bar = ProgressBar::hidden();
        bar.set_style(style(Stage::Data, Instant::now(), &Arc::default()));
        bar.inc(1);
    }
}
