//! Processor time while the kernel reads an image: measured where this process may mount, else
//! estimated from packfs's own decoding.

use super::candidates::Candidate;
use super::forecast::pattern::Pattern;
use super::forecast::time::{Cost, Memory, as_it_is, forecast};
use super::measure::Decoding;
use super::mounted::Mounted;
use packfs::{ImagePath, NodeKind, OpenOptions, Progress, Result, Tree};
use std::path::Path;

/// Times that each image is mounted anew and read; the quickest counts, as nothing makes a machine
/// quicker than it is.
const RUNS: usize = 3;
/// Seconds to open and close a file on a machine of 2020, where it was not measured.
const PER_FILE: f64 = 30e-6;
/// Quotients of Linux's time for decoding and copying to packfs's, by the beginning of a codec's
/// name: estimates, not measured.
const SLOWER: [(&str, f64); 6] =
    [("zstd", 1.6), ("lz4", 2.0), ("gzip", 2.5), ("deflate", 2.5), ("xz", 1.3), ("lzma", 1.3)];

/// Every which file is read by the thinner walk.
const THIN: usize = 5;

/// Walks over the files of one image, as soon as it is mounted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    all: Walk,
    /// Every fifth: nearly as much is decoded where files share blocks, and a fifth where they do
    /// not.
    thin: Walk,
    /// Bytes of metadata decoded to find all files.
    metadata: u64,
    /// Seconds to find all files, when the kernel knows nothing of the image.
    lookup: f64,
    /// Seconds to read all files when the kernel has all of them.
    warm: f64,
}

/// Files read, once they were found and before the kernel had anything of them.
#[derive(Clone, Copy, Debug)]
struct Walk {
    files: u64,
    /// Bytes of data decoded.
    data: u64,
    seconds: f64,
}

/// Reads files of an image that lies in memory by the kernel's own driver.
///
/// Errors: those of mounting and reading, `Cancelled`.
pub(crate) fn by_kernel(
    image: &Path,
    tree: &Tree,
    candidate: &Candidate,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Measured> {
    let files = paths(tree);
    let thinned: Vec<ImagePath> = files.iter().step_by(THIN).cloned().collect();
    let opened = OpenOptions::new().jobs(1).open(image)?;
    let scaling = as_it_is(u64::from(candidate.layout.block.unwrap_or(0)));
    let decoded = |pattern: &Pattern| {
        forecast(pattern, &scaling, &Cost { per_byte: 0.0, per_file: 0.0 }, &mut Memory).decoded
    };
    let mut pattern = Pattern::of(&opened, &files)?;
    let decoded_all = decoded(&pattern);
    pattern.files.iter_mut().for_each(|file| file.metadata.clear());
    let data = decoded(&pattern);
    pattern.files = pattern.files.into_iter().step_by(THIN).collect();
    let thin_data = decoded(&pattern);
    let [mut lookup, mut all, mut warm, mut thin] = [f64::INFINITY; 4];
    for _ in 0..RUNS {
        let mounted = Mounted::new(candidate.layout.format, image, folder)?;
        lookup = lookup.min(mounted.look_up(&files, progress)?);
        all = all.min(mounted.read(&files, progress)?);
        warm = warm.min(mounted.read(&files, progress)?);
        drop(mounted);
        let mounted = Mounted::new(candidate.layout.format, image, folder)?;
        mounted.look_up(&thinned, progress)?;
        thin = thin.min(mounted.read(&thinned, progress)?);
    }
    let walk = |files: &[ImagePath], data, seconds| Walk { files: files.len() as u64, data, seconds };
    Ok(Measured {
        all: walk(&files, data, all),
        thin: walk(&thinned, thin_data, thin),
        metadata: decoded_all.saturating_sub(data),
        lookup,
        warm,
    })
}

/// Every file with bytes, in the order of the tree.
fn paths(tree: &Tree) -> Vec<ImagePath> {
    let files = tree.nodes().filter(|(_, node)| matches!(node.kind, NodeKind::File { len: 1.., .. }));
    files.map(|(id, _)| tree.path(id)).collect()
}

/// Returns the cost of each byte and file.
///
/// Reading a file for the first time takes the kernel pages and calls, however few bytes it has,
/// and decoding beside that. Both walks together tell one from the other where they differ, which
/// they do where many small files share blocks; elsewhere it does not matter. Finding a file, which
/// makes its name and inode known, is what looking up takes without the decoding in it.
pub(crate) fn cost_measured(all: &[Measured]) -> Cost {
    let sum = |of: fn(&Measured) -> f64| all.iter().map(of).sum::<f64>();
    let files = sum(|one| one.all.files as f64).max(1.0);
    let warm = sum(|one| one.warm) / files;
    let (per_byte, reading) = told_apart(all).filter(|&(_, reading)| reading > warm).unwrap_or_else(|| {
        let decoding = (sum(|one| one.all.seconds) - sum(|one| one.warm)).max(0.0);
        (decoding / sum(|one| one.all.data as f64).max(1.0), warm)
    });
    let finding = (sum(|one| one.lookup) - per_byte * sum(|one| one.metadata as f64)).max(0.0) / files;
    Cost { per_byte, per_file: finding + reading }
}

/// Seconds for each byte and each file: two equations, if they are not nearly the same one.
fn told_apart(all: &[Measured]) -> Option<(f64, f64)> {
    let sum = |of: fn(&Walk) -> f64| {
        let walks = |one: &Measured| (of(&one.all), of(&one.thin));
        all.iter().map(walks).fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d))
    };
    let (files, thin_files) = sum(|walk| walk.files as f64);
    let (data, thin_data) = sum(|walk| walk.data as f64);
    let (seconds, thin_seconds) = sum(|walk| walk.seconds);
    // How much more than its share the thinner walk decodes.
    let excess = thin_data * files - data * thin_files;
    if excess < data * thin_files {
        return None;
    }
    let per_byte = (thin_seconds * files - seconds * thin_files) / excess;
    let per_file = (seconds * thin_data - thin_seconds * data) / excess;
    (per_byte > 0.0 && per_file > 0.0).then_some((per_byte, per_file))
}

pub(crate) fn cost_guessed(candidate: &Candidate, all: &[Decoding]) -> Cost {
    let codec = candidate.codec.as_deref().unwrap_or_default();
    let slower = SLOWER.iter().find(|(name, _)| codec.starts_with(name)).map_or(1.5, |(_, factor)| *factor);
    let cpu: f64 = all.iter().map(|one| one.cpu).sum();
    let bytes: f64 = all.iter().map(|one| one.bytes as f64).sum();
    Cost { per_byte: cpu * slower / bytes.max(1.0), per_file: PER_FILE }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PER_BYTE: f64 = 1e-3 / 1_048_576.0;

    /// 1 us a file to find, 20 us to read the first time and 2 us again, and 1 ms for each MiB
    /// decoded.
    fn measured(files: u64, data: u64, thin_data: u64) -> Measured {
        let walk = |files: u64, data: u64| Walk {
            files,
            data,
            seconds: files as f64 * 20e-6 + data as f64 * PER_BYTE,
        };
        let metadata = files * 64;
        Measured {
            all: walk(files, data),
            thin: walk(files / 5, thin_data),
            metadata,
            lookup: files as f64 * 1e-6 + metadata as f64 * PER_BYTE,
            warm: files as f64 * 2e-6,
        }
    }

    #[test]
    fn what_files_take_is_not_charged_to_their_bytes() {
        let tiny = measured(100_000, 1 << 20, 1 << 20);
        for images in [vec![tiny], vec![tiny, tiny]] {
            let cost = cost_measured(&images);
            assert!((cost.per_file - 21e-6).abs() < 1e-9, "{cost:?}");
            assert!((cost.per_byte / PER_BYTE - 1.0).abs() < 1e-6, "{cost:?}");
        }
    }

    /// Then a fifth of the files costs a fifth of everything, whatever is charged to what.
    #[test]
    fn equal_walks_are_attributed_to_decoding() {
        let cost = cost_measured(&[measured(1000, 5 << 20, 1 << 20)]);
        let whole = 1000.0 * 20e-6 + 5.0 * 1e-3;
        assert!((f64::from(5 << 20) * cost.per_byte + 1000.0 * 2e-6 - whole).abs() < 1e-9, "{cost:?}");
    }
}
