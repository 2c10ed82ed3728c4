//! Progress as lines of JSON on standard error, for schedulers and their logs.

use packfs::{Progress, Stage};
use packfs_terminal::json::json;
use packfs_terminal::report;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Least time between two lines of a stage.
const BETWEEN_LINES: Duration = Duration::from_secs(1);

/// Prints a line when a stage begins, and one for what was done in each second.
pub(super) struct JsonLines<'a> {
    shard: usize,
    /// Prints warnings, and hears of signals.
    bars: &'a dyn Progress,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stage: Option<(Stage, Instant)>,
    totals: (u64, u64),
    files: u64,
    bytes_in: u64,
    bytes_out: u64,
    is_told: bool,
}

impl<'a> JsonLines<'a> {
    pub(super) fn new(shard: usize, bars: &'a dyn Progress) -> Self {
        JsonLines { shard, bars, state: Mutex::default() }
    }

    fn tell(&self, state: &mut State) {
        let Some((stage, _)) = state.stage else { return };
        let line = json!({
            "shard": self.shard,
            "stage": stage.name(),
            "files": state.files,
            "files_total": state.totals.0,
            "bytes": state.bytes_in,
            "bytes_total": state.totals.1,
            "bytes_written": state.bytes_out,
        });
        report::note(line);
        state.stage = Some((stage, Instant::now()));
        state.is_told = true;
    }
}

impl Progress for JsonLines<'_> {
    fn begin(&self, stage: Stage, files_total: u64, bytes_total: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_told {
            self.tell(&mut state);
        }
        let totals = (files_total, bytes_total);
        *state = State { stage: Some((stage, Instant::now())), totals, ..State::default() };
        self.tell(&mut state);
    }

    fn advance(&self, files: u64, bytes_in: u64, bytes_out: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.files = state.files.saturating_add(files);
        state.bytes_in = state.bytes_in.saturating_add(bytes_in);
        state.bytes_out = state.bytes_out.saturating_add(bytes_out);
        state.is_told = false;
        if state.stage.is_some_and(|(_, told)| told.elapsed() >= BETWEEN_LINES) {
            self.tell(&mut state);
        }
    }

    fn warn(&self, message: &str) {
        self.bars.warn(message);
    }

    fn cancelled(&self) -> bool {
        self.bars.cancelled()
    }
}
