//! Progress in the format of the tools.

use packfs::{Progress, Result, Stage};
use packfs_terminal::progress::Bars;
use packfs_terminal::{Outcome, report};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Only on a terminal.
    Bar,
    /// Printed on standard output, one per line.
    Percentage,
    Silent,
}

/// Warnings are plain lines.
pub struct Teller {
    bars: Bars,
    form: Form,
    total: AtomicU64,
    done: AtomicU64,
    printed: AtomicU64,
}

/// Runs `work` with progress, then `end` with its result, unless a signal stopped it.
pub fn told<T>(
    form: Form,
    work: impl FnOnce(&Teller) -> Result<T>,
    end: impl FnOnce(T) -> Result<()>,
) -> Outcome {
    let teller = Teller::new(form);
    let result = work(&teller);
    teller.finish();
    match (result, teller.stopped()) {
        (Err(_), Some(code)) => Ok(ExitCode::from(code)),
        (result, _) => result.and_then(end).map(|()| ExitCode::SUCCESS),
    }
}

impl Teller {
    /// Signals stop the work from now on.
    pub fn new(form: Form) -> Self {
        let printed = AtomicU64::new(u64::MAX);
        let (total, done) = (AtomicU64::new(0), AtomicU64::new(0));
        Teller { bars: Bars::new(form == Form::Bar), form, total, done, printed }
    }

    /// Prints the last percentage.
    pub fn finish(&self) {
        self.bars.finish();
        if self.form == Form::Percentage {
            self.print(100);
        }
    }

    pub fn stopped(&self) -> Option<u8> {
        self.bars.stopped_exit_code()
    }

    fn print(&self, percent: u64) {
        if self.printed.swap(percent, Ordering::Relaxed) != percent {
            report::line_on_the_way(percent);
        }
    }
}

impl Progress for Teller {
    fn begin(&self, stage: Stage, files_total: u64, bytes_total: u64) {
        self.bars.begin(stage, files_total, bytes_total);
        let total = if matches!(stage, Stage::Data | Stage::Extract) { bytes_total } else { 0 };
        self.total.store(total, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    fn advance(&self, files: u64, bytes_in: u64, bytes_out: u64) {
        self.bars.advance(files, bytes_in, bytes_out);
        let total = self.total.load(Ordering::Relaxed);
        if self.form == Form::Percentage && total > 0 {
            let done = self.done.fetch_add(bytes_in, Ordering::Relaxed).saturating_add(bytes_in);
            // The last percent is that of the metadata.
            self.print(done.saturating_mul(100).checked_div(total).unwrap_or(0).min(99));
        }
    }

    fn part(&self, what: &str) {
        self.bars.part(what);
    }

    fn warn(&self, message: &str) {
        // No format of these tools has fractions of seconds. Times out of range are reported.
        if !message.starts_with("lost: times lose their fractions") {
            self.bars.beside(|| report::note(message));
        }
    }

    fn cancelled(&self) -> bool {
        self.bars.cancelled()
    }
}
