//! What the processor takes while the kernel reads an image: measured where this process may mount, else told from packfs's own
//! decoding.

use super::candidates::Candidate;
use super::forecast::pattern::Pattern;
use super::forecast::time::{Cost, Memory, as_it_is, forecast};
use super::measure::Decoding;
use super::mounted::Mounted;
use packfs::{ImagePath, NodeKind, OpenOptions, Progress, Result, Tree};
use std::path::Path;

/// Times that each image is mounted anew and read; the quickest counts, as nothing makes a machine quicker than it is.
const RUNS: usize = 3;
/// What opening and closing a file takes on a machine of 2020, in seconds, where it was not measured.
const PER_FILE: f64 = 30e-6;
/// How much slower Linux decodes than packfs does, and copies, by the beginning of a codec's name: estimates, not measured.
const SLOWER: [(&str, f64); 6] =
    [("zstd", 1.6), ("lz4", 2.0), ("gzip", 2.5), ("deflate", 2.5), ("xz", 1.3), ("lzma", 1.3)];

/// What one image tells: three walks over all of its files, as soon as it is mounted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Bytes of data decoded in all.
    data: u64,
    /// Bytes of metadata decoded in all.
    metadata: u64,
    /// Seconds to look every file up, when the kernel knows nothing of the image.
    lookup: f64,
    /// Seconds to read every file then, from memory.
    cold: f64,
    /// And again, when the kernel has it all.
    warm: f64,
    /// Files.
    files: u64,
}

/// Reads all files of an image that lies in memory by the kernel's own driver.
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
    let opened = OpenOptions::new().jobs(1).open(image)?;
    let mut pattern = Pattern::of(&opened, &files)?;
    let decoded = |pattern: &Pattern| {
        let scaling = as_it_is(u64::from(candidate.layout.block.unwrap_or(0)));
        forecast(pattern, &scaling, &Cost { per_byte: 0.0, per_file: 0.0 }, &mut Memory).decoded
    };
    let all = decoded(&pattern);
    pattern.files.iter_mut().for_each(|file| file.metadata.clear());
    let data = decoded(&pattern);
    let quickest = f64::INFINITY;
    let [mut lookup, mut cold, mut warm] = [quickest; 3];
    for _ in 0..RUNS {
        let mounted = Mounted::new(candidate.layout.format, image, folder)?;
        lookup = lookup.min(mounted.look_up(&files, progress)?);
        cold = cold.min(mounted.read(&files, progress)?);
        warm = warm.min(mounted.read(&files, progress)?);
    }
    Ok(Measured { data, metadata: all.saturating_sub(data), lookup, cold, warm, files: files.len() as u64 })
}

/// Every file with bytes, in the order of the tree.
fn paths(tree: &Tree) -> Vec<ImagePath> {
    let files = tree.nodes().filter(|(_, node)| matches!(node.kind, NodeKind::File { len: 1.., .. }));
    files.map(|(id, _)| tree.path(id)).collect()
}

/// What that comes to for each byte and file.
///
/// Decoding is what reading takes the first time and not the second. Finding a file, which makes its inode and name known to
/// the kernel, is what looking up takes without the decoding in it: in trees of tiny files that is most of the time, and has
/// nothing to do with how many bytes they have.
pub(crate) fn cost_measured(all: &[Measured]) -> Cost {
    let sum = |of: fn(&Measured) -> f64| all.iter().map(of).sum::<f64>();
    let per_byte = (sum(|one| one.cold) - sum(|one| one.warm)).max(0.0) / sum(|one| one.data as f64).max(1.0);
    let finding = (sum(|one| one.lookup) - per_byte * sum(|one| one.metadata as f64)).max(0.0);
    Cost { per_byte, per_file: (finding + sum(|one| one.warm)) / sum(|one| one.files as f64).max(1.0) }
}

/// The same, told from packfs's own decoding.
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

    /// 1 us a file to find, 2 us to open and copy, 1 ms for each MiB decoded.
    #[test]
    fn what_files_take_is_not_charged_to_their_bytes() {
        let of = |files: u64, data: u64| {
            let metadata = files * 64;
            let decoding = |bytes: u64| bytes as f64 * 1e-3 / 1_048_576.0;
            let (found, opened) = (files as f64 * 1e-6, files as f64 * 2e-6);
            let (lookup, cold) = (found + decoding(metadata), opened + decoding(data));
            Measured { data, metadata, lookup, cold, warm: opened, files }
        };
        for images in [vec![of(100_000, 1 << 20)], vec![of(10, 1 << 30), of(100_000, 1 << 20)]] {
            let cost = cost_measured(&images);
            assert!((cost.per_byte * 1_048_576.0 - 1e-3).abs() < 1e-9, "{cost:?}");
            assert!((cost.per_file - 3e-6).abs() < 1e-12, "{cost:?}");
        }
    }
}
