//! Filling an output with a Zstandard frame in one parse.
//!
//! libzstd parses somewhat more input than will fit; for its strategy `dfast`, [`quick`] parses
//! instead, and stops right after that. The parse is cut where it is expected to fill the output,
//! and only the entropy stage runs over the part before the cut; if necessary, once more over the
//! last block with a corrected cut.

mod bisect;
mod cost;
#[allow(unsafe_code)]
mod ffi;
mod frame;
mod parse;
mod quick;
mod split;

use super::Frame;
use crate::{EncodeError, Encoder, Fit, FitEncoder};
use bisect::Bisection;
use ffi::{Context, Parameter};
use parse::{Habits, Parse};
use quick::{Quick, Tables};

/// Initial input expected to fit, as a multiple of the space.
const FIRST_GUESS: usize = 3;

/// Maximum runs of the entropy stage for one output.
const RUNS_MAX: usize = 6;

/// Shorter inputs are hardly ever shortened.
const SHORTENED_LEN_MIN: usize = 12 << 10;

/// The last strategy (`ZSTD_dfast`) whose parse is so fast that the entropy stage costs as much.
const FAST_STRATEGY_MAX: i32 = 2;

const QUICK_STRATEGY: i32 = 2;

/// Shorter inputs are left to libzstd.
const QUICK_LEN_MIN: usize = 64;

/// With such a parse, one part in this many may remain empty.
const FAST_SHARE: usize = 192;

/// Largest window log that decoders accept by default (`ZSTD_WINDOWLOG_LIMIT_DEFAULT`).
const WINDOW_LOG_USUAL_MAX: u8 = 27;

pub(crate) struct FrameFit {
    level: i32,
    window_log_max: Option<u8>,
    /// For inputs that are likely to fit as a whole.
    whole: Frame,
    parser: Option<Context>,
    coder: Option<Context>,
    parse: Parse,
    quick: Option<Box<Quick>>,
    /// Strategy of the parse, which the entropy stage uses, too.
    strategy: i32,
    scratch: Vec<u8>,
    /// The blocks before the one that is cut, once they are coded.
    head: Head,
    frame: Vec<u8>,
    /// The last fit limited by the space, not by the input.
    last: Option<Fit>,
    /// Estimated length of the last first cut, and the length written.
    promised: Option<Promise>,
    shortens: bool,
    /// Length of the parsed input, if it was consumed as a whole.
    parsed_len: Option<usize>,
}

#[derive(Default)]
struct Head {
    plain_len: usize,
    blocks: Vec<u8>,
}

impl Head {
    fn forget(&mut self) {
        self.plain_len = 0;
        self.blocks.clear();
    }
}

#[derive(Clone, Copy)]
struct Promise {
    expected: usize,
    written: usize,
}

impl FrameFit {
    pub(crate) fn new(level: i32, window_log_max: Option<u8>) -> FrameFit {
        FrameFit {
            level,
            window_log_max,
            whole: Frame::new(level, window_log_max),
            parser: parser(level).ok(),
            coder: coder(level).ok(),
            parse: Parse::default(),
            quick: None,
            strategy: 0,
            scratch: Vec::new(),
            head: Head::default(),
            frame: Vec::new(),
            last: None,
            promised: None,
            shortens: false,
            parsed_len: None,
        }
    }

    /// Parses all of `src`, of which about `expected` bytes will be used: the parameters of the
    /// level are chosen by that.
    fn parse(&mut self, src: &[u8], expected: usize) -> Result<(), EncodeError> {
        let parser = self.parser.as_mut().ok_or(EncodeError::OutOfMemory)?;
        let parameters = ffi::parameters(self.level, expected.min(src.len()));
        self.strategy = parameters.strategy as i32;
        let window_log = window_log(src.len(), self.window_log_max);
        for (parameter, value) in [
            (Parameter::ZSTD_c_windowLog, window_log),
            (Parameter::ZSTD_c_chainLog, parameters.chainLog),
            (Parameter::ZSTD_c_hashLog, parameters.hashLog),
            (Parameter::ZSTD_c_searchLog, parameters.searchLog),
            (Parameter::ZSTD_c_minMatch, parameters.minMatch),
            (Parameter::ZSTD_c_targetLength, parameters.targetLength),
            (Parameter::ZSTD_c_strategy, parameters.strategy as u32),
        ] {
            parser.set(parameter, value as i32)?;
        }
        let habits = Habits { literals_stored: self.level < 0, divides: self.strategy > FAST_STRATEGY_MAX };
        self.parse.read(parser, src, habits)
    }

    fn encode(&mut self, src: &[u8], cut: usize) -> Result<(), EncodeError> {
        let coder = self.coder.as_mut().ok_or(EncodeError::OutOfMemory)?;
        let window_log = window_log(cut, self.window_log_max);
        coder.set(Parameter::ZSTD_c_windowLog, window_log as i32)?;
        coder.set(Parameter::ZSTD_c_strategy, self.strategy)?;
        let head_len = self.parse.head_len(cut);
        let bound = zstd_safe::compress_bound(cut) + 3 * self.parse.block_count() + 64;
        if self.scratch.len() < bound {
            self.scratch.resize(bound, 0);
        }
        if self.head.plain_len != head_len {
            self.head.forget();
        }
        if self.head.plain_len < head_len {
            let len = coder.encode(self.parse.head(head_len), 0, &src[..head_len], &mut self.scratch)?;
            self.head.plain_len = head_len;
            self.head.blocks.extend_from_slice(frame::blocks(&self.scratch[..len]).ok_or(NO_FRAME)?);
            frame::go_on(&mut self.head.blocks).ok_or(NO_FRAME)?;
        }
        let tail = &src[head_len..cut];
        let len = self.parse.with_tail(head_len, cut, |sequences| {
            coder.encode(sequences, head_len, tail, &mut self.scratch)
        })?;
        frame::begin(cut, window_log, &mut self.frame);
        self.frame.extend_from_slice(&self.head.blocks);
        self.frame.extend_from_slice(frame::blocks(&self.scratch[..len]).ok_or(NO_FRAME)?);
        Ok(())
    }

    /// Implements `compress_to_fit` with a parse that stops as early as possible; `None` if the
    /// level or input does not permit it.
    fn compress_quickly(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<Fit>, EncodeError> {
        let log_max = self.window_log_max.unwrap_or(WINDOW_LOG_USUAL_MAX).min(WINDOW_LOG_USUAL_MAX);
        let src_len = src.len().min(1 << log_max);
        let expected = match self.last {
            Some(last) => like(last, dst.len()),
            None => dst.len().saturating_mul(FIRST_GUESS),
        };
        let parameters = ffi::parameters(self.level, expected.min(src_len));
        if parameters.strategy as i32 != QUICK_STRATEGY || src_len < QUICK_LEN_MIN {
            return Ok(None);
        }
        self.strategy = QUICK_STRATEGY;
        let tables = Tables {
            long_log: parameters.hashLog,
            short_log: parameters.chainLog,
            short_len: parameters.minMatch,
        };
        let mut quick = self.quick.take().unwrap_or_else(|| Box::new(Quick::new()));
        self.parse.begin(&mut quick, src_len, tables);
        let fit = self.fill_quickly(&mut quick, &src[..src_len], dst, expected);
        self.quick = Some(quick);
        let fit = fit?;
        if fit.consumed == src_len && src_len < src.len() || fit.written == 0 {
            return Ok(None);
        }
        if fit.consumed < src_len {
            self.last = Some(fit);
        } else {
            self.parsed_len = Some(src_len);
        }
        Ok(Some(fit))
    }

    /// Parses until `dst` is full, which is expected after `expected` bytes of input.
    fn fill_quickly(
        &mut self,
        quick: &mut Quick,
        src: &[u8],
        dst: &mut [u8],
        expected: usize,
    ) -> Result<Fit, EncodeError> {
        let mut wanted = self.promised.map_or(dst.len(), |promise| promise.corrected(dst.len()));
        let mut look_at = expected - expected / 16;
        loop {
            // An unreliable estimate does not justify a second run of the entropy stage.
            wanted += wanted / 64 + 16;
            let offered = self.parse.read_on(quick, src, wanted, look_at);
            let fit = self.fill(&src[..offered], dst)?;
            if fit.written == 0 || fit.consumed < offered || offered == src.len() {
                return Ok(fit);
            }
            // All of it fits: costs were overestimated.
            wanted = (wanted as u64).saturating_mul(dst.len() as u64) as usize / fit.written;
            look_at = 0;
        }
    }

    /// Finds the cut that fills `dst`.
    fn fill(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        // Part that may remain empty, and whose middle is aimed at. A fast parse is cheaper than a
        // second run of the entropy stage.
        let share = if self.strategy > FAST_STRATEGY_MAX { 8192 } else { FAST_SHARE };
        let tolerance = 2 + dst.len() / share;
        let aim = dst.len() - tolerance / 2;
        let mut best = Fit::default();
        let mut too_long = src.len() + 1;
        self.head.forget();
        let expected = self.promised.map_or(aim, |promise| promise.corrected(aim));
        let mut cut = self.parse.first_cut(src, expected);
        for run in 0..RUNS_MAX {
            self.encode(src, cut)?;
            let written = self.frame.len();
            if run == 0 && cut < src.len() {
                self.promised = Some(Promise { expected, written });
            }
            if written <= dst.len() {
                dst[..written].copy_from_slice(&self.frame);
                best = Fit { consumed: cut, written };
            } else {
                too_long = cut;
            }
            let filled = best.written > 0 && dst.len() - best.written <= tolerance;
            if filled || too_long - best.consumed <= 1 || best.consumed == src.len() {
                break;
            }
            // While nothing fits, ever less is tried.
            let caution = if best.written == 0 { dst.len() * run * run / 256 } else { 0 };
            let moved = self.parse.moved_cut(src, cut, written, aim.saturating_sub(caution));
            let next = self.parse.sound_cut(moved.clamp(best.consumed + 1, too_long - 1));
            if next == cut || next <= best.consumed {
                break;
            }
            cut = next;
        }
        Ok(best)
    }
}

const NO_FRAME: EncodeError = EncodeError::Internal("libzstd wrote no frame");

impl Promise {
    /// Returns the estimate to aim at to get `wanted` bytes, if it is as far from the truth as the
    /// last one.
    fn corrected(self, wanted: usize) -> usize {
        let Promise { expected, written } = self;
        let corrected = (wanted as u64).saturating_mul(expected as u64) / (written.max(1) as u64);
        (corrected as usize).clamp(wanted - wanted / 16, wanted + wanted / 16)
    }
}

/// Returns the smallest window for `src_len` bytes, within the limit.
fn window_log(src_len: usize, log_max: Option<u8>) -> u32 {
    let needed = usize::BITS - src_len.saturating_sub(1).leading_zeros();
    needed.clamp(10, log_max.unwrap_or(WINDOW_LOG_USUAL_MAX).max(10).into())
}

fn parser(level: i32) -> Result<Context, EncodeError> {
    let mut context = Context::new().ok_or(EncodeError::OutOfMemory)?;
    context.set(Parameter::ZSTD_c_compressionLevel, level)?;
    Ok(context)
}

/// Returns a context that only codes: its match finder, which is prepared for every frame, is as
/// small as possible.
fn coder(level: i32) -> Result<Context, EncodeError> {
    let mut context = Context::new().ok_or(EncodeError::OutOfMemory)?;
    for (parameter, value) in [
        (Parameter::ZSTD_c_compressionLevel, level),
        (Parameter::ZSTD_c_hashLog, 6),
        (Parameter::ZSTD_c_chainLog, 6),
        (Parameter::ZSTD_c_searchLog, 1),
        (Parameter::ZSTD_c_minMatch, 3),
        // ZSTD_c_blockDelimiters: ZSTD_sf_explicitBlockDelimiters.
        (Parameter::ZSTD_c_experimentalParam11, 1),
        // ZSTD_c_useRowMatchFinder: ZSTD_ps_disable.
        (Parameter::ZSTD_c_experimentalParam14, 2),
        // ZSTD_c_repcodeResolution: ZSTD_ps_enable.
        (Parameter::ZSTD_c_experimentalParam19, 1),
    ] {
        context.set(parameter, value)?;
    }
    Ok(context)
}

/// Estimates the input that fits into `room` at the ratio of `last`.
fn like(last: Fit, room: usize) -> usize {
    let like = (last.consumed as u64).saturating_mul(room as u64) / (last.written.max(1) as u64);
    usize::try_from(like).unwrap_or(usize::MAX)
}

fn more_than(expected: usize) -> usize {
    expected.saturating_add(expected / 8 + 256)
}

impl FitEncoder for FrameFit {
    fn begin_segment(&mut self) {
        self.last = None;
        self.promised = None;
        self.shortens = false;
    }

    fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        if src.is_empty() || dst.is_empty() {
            return Ok(Fit::default());
        }
        self.parsed_len = None;
        if let Some(fit) = self.compress_quickly(src, dst)? {
            return Ok(fit);
        }
        let is_parsed = self.shortens && src.len() > SHORTENED_LEN_MIN;
        if !is_parsed
            && src.len() <= dst.len().saturating_mul(2)
            && let Some(written) = self.whole.compress(src, dst)?
        {
            return Ok(Fit { consumed: src.len(), written });
        }
        let mut expected = match self.last {
            Some(last) => like(last, dst.len()),
            None => dst.len().saturating_mul(FIRST_GUESS),
        };
        let mut offered = more_than(expected);
        loop {
            offered = offered.min(src.len());
            let offer = &src[..offered];
            let fit = match self.parse(offer, expected) {
                Ok(()) => self.fill(offer, dst)?,
                // A last block of a few bytes, or a parse that failed verification.
                Err(EncodeError::Internal(_)) => Fit::default(),
                Err(error) => return Err(error),
            };
            if fit.written == 0 {
                // Rare, so its encoder is not kept.
                let encoder = Frame::new(self.level, self.window_log_max);
                return Bisection::new(Box::new(encoder)).compress_to_fit(src, dst);
            }
            if fit.consumed < offered {
                self.last = Some(fit);
                return Ok(fit);
            }
            if offered == src.len() {
                self.parsed_len = Some(offered);
                return Ok(fit);
            }
            expected = like(fit, dst.len()).clamp(offered, offered.saturating_mul(16));
            offered = more_than(expected);
        }
    }

    fn expect_shortening(&mut self, likely: bool) {
        self.shortens = likely;
    }

    fn shorten(&mut self, src: &[u8], _whole: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        if self.parsed_len == Some(src.len()) && !dst.is_empty() {
            let fit = self.fill(src, dst)?;
            if fit.written > 0 {
                return Ok(fit);
            }
        }
        self.compress_to_fit(src, dst)
    }
}
