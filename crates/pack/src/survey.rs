//! Space that an image would take, file by file, whether it fits or not.
//!
//! A survey by samples answers soon: everything is done as for the image, except that a quick
//! encoder compresses the data, and the wanted one only samples of it. Duplicates, shared blocks
//! and metadata are thus known, and one ratio is estimated. Samples are chosen by their contents,
//! so every run chooses the same.

use crate::PackOptions;
use packfs_codec::{BranchSet, CodecSettings, EncodeError, Encoder, Fit, FitEncoder};
use packfs_core::{Error, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of input that the wanted encoder compresses, about.
const SAMPLE_LEN: u64 = 24 << 20;
/// Shorter trees are packed nearly as soon as surveyed.
const TREE_LEN_MIN: u64 = 24 << 20;
/// Bytes of a block that choose it.
const CHOOSING_LEN: usize = 64 << 10;
/// Fewer samples are not significant.
const COUNT_MIN: usize = 3;
/// Allowance besides the error of the ratio: another way to pack may be denser than the one
/// surveyed.
const MARGIN: f64 = 0.1;

/// Records the space that an image takes while it is packed.
#[derive(Debug, Default)]
pub struct Survey {
    samples: Option<Arc<Samples>>,
    found: OnceLock<Measured>,
}

/// Space of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Length of the image, without padding; estimated if it was surveyed by samples.
    pub len: u64,
    /// Length that no image is expected to fall below.
    pub least: u64,
    /// Bytes of each node's data; data shared by several nodes counts for the first.
    pub spaces: Vec<u64>,
}

pub(crate) struct Figures {
    pub data_len: u64,
    pub metadata_len: u64,
    /// Part of the data that is not compressed.
    pub plain_len: u64,
    pub spaces: Vec<u64>,
}

impl Survey {
    /// Creates a survey by samples of a tree whose files have `len` bytes; `None` if packing it
    /// takes hardly longer.
    pub fn by_samples(len: u64) -> Option<Self> {
        let threshold = u128::from(u64::MAX) * u128::from(SAMPLE_LEN) / u128::from(len.max(SAMPLE_LEN));
        let samples = Samples { threshold: threshold as u64, ..Samples::default() };
        let survey = Survey { samples: Some(Arc::new(samples)), found: OnceLock::new() };
        (len >= TREE_LEN_MIN).then_some(survey)
    }

    /// Returns the space; `None` if packing ended before all data was placed.
    pub fn found(&self) -> Option<&Measured> {
        self.found.get()
    }

    pub(crate) fn note(&self, figures: Figures) {
        let found = match &self.samples {
            Some(samples) => samples.estimate(figures),
            None => {
                let len = figures.data_len + figures.metadata_len;
                Measured { len, least: len, spaces: figures.spaces }
            }
        };
        // A survey is of one image.
        let _ = self.found.set(found);
    }
}

#[derive(Debug, Default)]
struct Samples {
    /// Blocks whose hash is not above it are samples.
    threshold: u64,
    /// Bytes of each sample by the quick encoder and by the wanted one. A thread may compress again
    /// what another did, so each counts once.
    taken: Mutex<BTreeMap<u64, (u64, u64)>>,
    /// Bytes that the quick encoder did not shrink, but the wanted one may.
    unshrunk: AtomicU64,
}

impl Samples {
    fn chosen(&self, block: &[u8]) -> Option<u64> {
        let hash = xxh3_64(&block[..block.len().min(CHOOSING_LEN)]);
        (hash <= self.threshold).then_some(hash)
    }

    fn add(&self, hash: u64, quick: usize, dense: usize) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.insert(hash, (quick as u64, dense as u64));
    }

    fn add_unshrunk(&self, len: usize) {
        self.unshrunk.fetch_add(len as u64, Ordering::Relaxed);
    }

    /// Ratio of the wanted encoder to the quick one, and its greatest error (a ratio estimator;
    /// Cochran, Sampling Techniques, 6.4).
    fn ratio(&self) -> (f64, f64) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = || taken.values().map(|&(quick, dense)| (quick as f64, dense as f64));
        let (quick, dense) = rows().fold((0.0, 0.0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
        if quick == 0.0 {
            return (1.0, 1.0);
        }
        let ratio = dense / quick;
        let squares: f64 = rows().map(|row| (row.1 - ratio * row.0).powi(2)).sum();
        let (count, freedom) = (taken.len() as f64, (taken.len() as f64 - 1.0).max(1.0));
        let error = (squares * count / freedom).sqrt() / quick;
        // About the quantile of Student's t for 99.9 %.
        let errors = 3.0 + 76.0 / freedom.powi(2);
        (ratio, if taken.len() < COUNT_MIN { ratio } else { errors * error })
    }

    fn estimate(&self, figures: Figures) -> Measured {
        let Figures { data_len, metadata_len, plain_len, spaces } = figures;
        let (ratio, error) = self.ratio();
        let noise_len = plain_len.saturating_sub(self.unshrunk.load(Ordering::Relaxed)).min(data_len);
        let compressed_len = (data_len - noise_len) as f64;
        let kept = (noise_len + metadata_len) as f64;
        let least = (kept + compressed_len * (ratio - error).max(0.0)) * (1.0 - MARGIN);
        let data = noise_len as f64 + compressed_len * ratio;
        let share = data / (data_len as f64).max(1.0);
        let spaces = spaces.into_iter().map(|space| (space as f64 * share) as u64).collect();
        Measured { len: data as u64 + metadata_len, least: least as u64, spaces }
    }
}

impl PackOptions {
    pub(crate) fn encoder(&self, settings: Option<&CodecSettings>) -> Result<Option<Box<dyn Encoder>>> {
        let (Some(samples), Some(codec)) = (self.samples(), settings) else {
            return self.effort.encoder(settings);
        };
        let quick = packfs_codec::encoder(&CodecSettings::PROBE).map_err(Error::usage)?;
        let dense = self.effort.encoder(settings)?;
        Ok(dense.map(|dense| -> Box<dyn Encoder> {
            Box::new(Sampling { quick, dense, of: Of::new(samples, codec) })
        }))
    }

    pub(crate) fn fit_encoder(&self, settings: &CodecSettings) -> Result<Box<dyn FitEncoder>> {
        let dense = self.effort.fit_encoder(settings)?;
        let Some(samples) = self.samples() else { return Ok(dense) };
        let quick = packfs_codec::fit_encoder(&CodecSettings::PROBE).map_err(Error::usage)?;
        Ok(Box::new(Sampling { quick, dense, of: Of::new(samples, settings) }))
    }

    fn samples(&self) -> Option<&Arc<Samples>> {
        self.survey.as_ref()?.samples.as_ref()
    }
}

struct Sampling<E: ?Sized> {
    quick: Box<E>,
    dense: Box<E>,
    of: Of,
}

struct Of {
    samples: Arc<Samples>,
    /// True if another codec of the format may be denser where the quick one is.
    counts_less: bool,
    scratch: Vec<u8>,
}

impl Of {
    fn new(samples: &Arc<Samples>, settings: &CodecSettings) -> Self {
        Of { samples: Arc::clone(samples), counts_less: settings.is_slow(), scratch: Vec::new() }
    }

    fn scratch(&mut self, len: usize) -> &mut [u8] {
        self.scratch.resize(self.scratch.len().max(len), 0);
        &mut self.scratch[..len]
    }

    fn add(&self, hash: u64, quick: usize, dense: usize) {
        self.samples.add(hash, quick, if self.counts_less { dense.min(quick) } else { dense });
    }
}

impl Encoder for Sampling<dyn Encoder> {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        let quick = self.quick.compress(src, dst)?;
        if quick.is_none() {
            self.of.samples.add_unshrunk(src.len());
        }
        if let Some(hash) = self.of.samples.chosen(src) {
            let dense = self.dense.compress(src, self.of.scratch(dst.len()))?;
            self.of.add(hash, quick.unwrap_or(src.len()), dense.unwrap_or(src.len()));
        }
        Ok(quick)
    }

    fn expect_code(&mut self, branches: BranchSet) {
        self.quick.expect_code(branches);
        self.dense.expect_code(branches);
    }
}

impl FitEncoder for Sampling<dyn FitEncoder> {
    fn begin_segment(&mut self) {
        self.quick.begin_segment();
    }

    fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        let quick = self.quick.compress_to_fit(src, dst)?;
        let shrinks = quick.written < quick.consumed;
        if !shrinks {
            self.of.samples.add_unshrunk(src.len().min(dst.len()));
        }
        if let Some(hash) = self.of.samples.chosen(src) {
            self.dense.begin_segment();
            let dense = self.dense.compress_to_fit(src, self.of.scratch(dst.len()))?;
            // Both for as much input as the quick one took, or for an output without compression.
            let (len, written) =
                if shrinks { (quick.consumed, quick.written) } else { (dst.len(), dst.len()) };
            let rate =
                |fit: Fit| (len as u64 * fit.written as u64).div_ceil(fit.consumed.max(1) as u64) as usize;
            self.of.add(hash, written, if dense.consumed > 0 { rate(dense).min(len) } else { len });
        }
        Ok(quick)
    }

    fn expect_shortening(&mut self, likely: bool) {
        self.quick.expect_shortening(likely);
    }

    fn shorten(&mut self, src: &[u8], whole: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        self.quick.shorten(src, whole, dst)
    }
}
