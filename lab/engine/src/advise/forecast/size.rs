//! Length of an image of the whole.
//!
//! The whole is packed once in each layout with a quick codec, so what files have in common, how
//! they share blocks and what metadata they take is known, not estimated. What another codec makes
//! of it is estimated as a ratio to that on samples, class of files by class (a ratio estimator,
//! post-stratified; Cochran, Sampling Techniques, 6.10). Several samples, each of which stands for
//! the whole, tell how far off that may be.

use crate::advise::measure::Packed;
use packfs::Class;
use serde::Serialize;
use std::collections::BTreeMap;

/// A class has a ratio of its own if it is at least so large in the samples, in stored bytes.
const CLASS_LEN_MIN: u64 = 256 << 10;
/// Least error, as a share: pieces of files end where a file does not.
const ERROR_MIN: f64 = 0.003;
/// Padding of both formats, in bytes.
const PADDING: u64 = 4096;

/// Length of an image.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Size {
    /// Bytes.
    pub bytes: u64,
    /// Error as a share of it: two standard errors; 0 if it was packed as a whole.
    pub error: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Pair {
    /// The quick one, as in the whole.
    pub(crate) reference: Packed,
    pub(crate) candidate: Packed,
}

#[derive(Clone, Debug)]
pub(crate) struct Whole {
    pub(crate) packed: Packed,
    /// Quotient of the tree's bytes to the packed ones; 1 for all.
    pub(crate) times: f64,
}

/// Stored bytes by class, of data and of metadata.
#[derive(Clone, Debug, Default)]
struct Sums {
    classes: BTreeMap<Class, f64>,
    data: f64,
    metadata: f64,
}

impl Sums {
    fn add(&mut self, packed: &Packed) {
        for (class, (_, stored)) in &packed.classes {
            *self.classes.entry(*class).or_default() += *stored as f64;
        }
        self.data += packed.data_len as f64;
        self.metadata += packed.metadata_len as f64;
    }

    fn of<'a>(all: impl Iterator<Item = &'a Packed>) -> Sums {
        let mut sums = Sums::default();
        all.for_each(|packed| sums.add(packed));
        sums
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratios {
    pub(crate) data: f64,
    pub(crate) metadata: f64,
}

pub(crate) fn ratios(whole: &Whole, pairs: &[Pair]) -> Ratios {
    let reference = Sums::of(pairs.iter().map(|pair| &pair.reference));
    let candidate = Sums::of(pairs.iter().map(|pair| &pair.candidate));
    let over = |part: f64, all: f64| if all > 0.0 { part / all } else { 1.0 };
    let overall = over(candidate.data, reference.data);
    let (mut before, mut after) = (0.0, 0.0);
    for (class, (_, stored)) in &whole.packed.classes {
        let sampled = reference.classes.get(class).copied().unwrap_or_default();
        let ratio = match candidate.classes.get(class) {
            Some(found) if sampled >= CLASS_LEN_MIN as f64 => over(*found, sampled),
            _ => overall,
        };
        before += *stored as f64;
        after += *stored as f64 * ratio;
    }
    let data = if before > 0.0 { after / before } else { overall };
    Ratios { data, metadata: over(candidate.metadata, reference.metadata) }
}

pub(crate) fn forecast(whole: &Whole, pairs: &[Pair]) -> Size {
    let estimate = |pairs: &[Pair]| {
        let ratios = ratios(whole, pairs);
        let (data, metadata) = (whole.packed.data_len as f64, whole.packed.metadata_len as f64);
        (data * ratios.data + metadata * ratios.metadata) * whole.times
    };
    let bytes = estimate(pairs);
    let each: Vec<f64> = pairs.iter().map(|pair| estimate(std::slice::from_ref(pair))).collect();
    let spread = if bytes > 0.0 { standard_error(&each) / bytes } else { 0.0 };
    let part = if whole.times > 1.0 { 0.03 } else { 0.0 };
    let error = ERROR_MIN + 2.0 * spread + part;
    Size { bytes: (bytes.round() as u64).next_multiple_of(PADDING), error }
}

/// The length of the whole where nothing is compressed: what it has in common is known, and the
/// rest is as long as it is.
pub(crate) fn stored(whole: &Whole, pairs: &[Pair]) -> Size {
    let data: u64 = whole.packed.classes.values().map(|(bytes, _)| bytes).sum();
    let metadata = whole.packed.metadata_len as f64 * ratios(whole, pairs).metadata;
    let bytes = ((data as f64 + metadata) * whole.times).round() as u64;
    let part = if whole.times > 1.0 { 0.03 } else { 0.0 };
    Size { bytes: bytes.next_multiple_of(PADDING), error: ERROR_MIN + part }
}

fn standard_error(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    if values.len() < 2 {
        // One sample tells nothing of the others.
        return values.first().map_or(0.0, |value| value * 0.02);
    }
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (variance / count).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(text: u64, pictures: u64, metadata: u64) -> Packed {
        let classes = BTreeMap::from([(Class::Text, (0, text)), (Class::Image, (0, pictures))]);
        let data_len = text + pictures;
        Packed {
            data_len,
            metadata_len: metadata,
            image_len: data_len + metadata,
            classes,
            ..Packed::default()
        }
    }

    fn pair(reference: Packed, candidate: Packed) -> Pair {
        Pair { reference, candidate }
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn classes_have_ratios_of_their_own() {
        // Half of the sample is pictures, which no codec shrinks, and a tenth of the whole.
        let whole = Whole { packed: packed(90 * MIB, 10 * MIB, MIB), times: 1.0 };
        let pairs = [pair(packed(4 * MIB, 4 * MIB, MIB), packed(3 * MIB, 4 * MIB, MIB))];
        let size = forecast(&whole, &pairs);
        let wanted = 90.0 * 0.75 + 10.0 + 1.0;
        assert!((size.bytes as f64 / MIB as f64 - wanted).abs() < 0.01, "{size:?}");
    }

    #[test]
    fn a_sample_that_is_the_whole_is_exact() {
        let reference = packed(5 * MIB, 7 * MIB, MIB);
        let candidate = packed(3 * MIB, 6 * MIB, MIB / 2);
        let whole = Whole { packed: reference.clone(), times: 1.0 };
        let size = forecast(&whole, &[pair(reference, candidate.clone())]);
        assert_eq!(size.bytes, candidate.image_len.next_multiple_of(PADDING));
    }

    #[test]
    fn samples_that_differ_make_the_error_larger() {
        let whole = Whole { packed: packed(90 * MIB, 0, 0), times: 1.0 };
        let of = |mib: u64| pair(packed(4 * MIB, 0, 0), packed(mib * MIB / 10, 0, 0));
        let alike = forecast(&whole, &[of(30), of(30), of(30)]);
        assert!((alike.error - ERROR_MIN).abs() < 1e-9);
        let unlike = forecast(&whole, &[of(27), of(30), of(33)]);
        assert_eq!(alike.bytes, unlike.bytes);
        assert!(unlike.error > 0.1, "{unlike:?}");
    }

    #[test]
    fn a_class_that_no_sample_has_goes_by_all_of_them() {
        let whole = Whole { packed: packed(0, 100 * MIB, 0), times: 2.0 };
        let size = forecast(&whole, &[pair(packed(4 * MIB, 0, 0), packed(2 * MIB, 0, 0))]);
        assert_eq!(size.bytes, 100 * MIB);
    }

    #[test]
    fn what_is_stored_is_as_long_as_it_is() {
        let mut reference = packed(5 * MIB, 7 * MIB, MIB);
        reference.classes =
            BTreeMap::from([(Class::Text, (20 * MIB, 5 * MIB)), (Class::Image, (8 * MIB, 7 * MIB))]);
        let pairs = [pair(packed(MIB, MIB, MIB), packed(4 * MIB, MIB, 2 * MIB))];
        assert_eq!(stored(&Whole { packed: reference, times: 1.0 }, &pairs).bytes, 30 * MIB);
    }

    #[test]
    fn nothing_takes_nothing() {
        let whole = Whole { packed: Packed::default(), times: 1.0 };
        assert_eq!(forecast(&whole, &[]).bytes, 0);
    }
}
