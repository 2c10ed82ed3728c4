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

/// What one image tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Bytes decoded.
    pub(crate) decoded: u64,
    /// Seconds to read all of it from memory the first time.
    pub(crate) cold: f64,
    /// And again, when the kernel has it all.
    pub(crate) warm: f64,
    /// Files read.
    pub(crate) files: u64,
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
    let pattern = Pattern::of(&opened, &files)?;
    let scaling = as_it_is(u64::from(candidate.layout.block.unwrap_or(0)));
    let decoded = forecast(&pattern, &scaling, &Cost { per_byte: 0.0, per_file: 0.0 }, &mut Memory).decoded;
    let (mut cold, mut warm) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..RUNS {
        let mounted = Mounted::new(candidate.layout.format, image, folder)?;
        cold = cold.min(mounted.read(&files, progress)?);
        warm = warm.min(mounted.read(&files, progress)?);
    }
    Ok(Measured { decoded, cold, warm, files: files.len() as u64 })
}

/// Every file with bytes, in the order of the tree.
fn paths(tree: &Tree) -> Vec<ImagePath> {
    let files = tree.nodes().filter(|(_, node)| matches!(node.kind, NodeKind::File { len: 1.., .. }));
    files.map(|(id, _)| tree.path(id)).collect()
}

/// What that comes to for each byte and file.
pub(crate) fn cost_measured(all: &[Measured]) -> Cost {
    let sum = |of: fn(&Measured) -> f64| all.iter().map(of).sum::<f64>();
    let decoding = (sum(|one| one.cold) - sum(|one| one.warm)).max(0.0);
    Cost {
        per_byte: decoding / sum(|one| one.decoded as f64).max(1.0),
        per_file: sum(|one| one.warm) / sum(|one| one.files as f64).max(1.0),
    }
}

/// The same, told from packfs's own decoding.
pub(crate) fn cost_guessed(candidate: &Candidate, all: &[Decoding]) -> Cost {
    let codec = candidate.codec.as_deref().unwrap_or_default();
    let slower = SLOWER.iter().find(|(name, _)| codec.starts_with(name)).map_or(1.5, |(_, factor)| *factor);
    let cpu: f64 = all.iter().map(|one| one.cpu).sum();
    let bytes: f64 = all.iter().map(|one| one.bytes as f64).sum();
    Cost { per_byte: cpu * slower / bytes.max(1.0), per_file: PER_FILE }
}
