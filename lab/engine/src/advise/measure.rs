//! Costs of a candidate: packs trees with it, and decodes the images.

use super::candidates::Candidate;
use super::scratch::explained;
use packfs::MemoryImage;
use packfs::source::Loaded;
use packfs::{
    Class, Error, InodeKind, OpenOptions, Pack, PackReport, Progress, Result, ResultExt, WithoutWarnings,
};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a read.
const BUFFER_LEN: usize = 256 << 10;

#[derive(Clone, Debug, Default)]
pub(crate) struct Packed {
    /// Length of the image, in bytes.
    pub(crate) image_len: u64,
    pub(crate) data_len: u64,
    pub(crate) metadata_len: u64,
    /// Bytes of each class of files: before, and in the image.
    pub(crate) classes: BTreeMap<Class, (u64, u64)>,
    /// Seconds of all processors.
    pub(crate) cpu: f64,
    /// Losses, if the format cannot hold everything: it is made only with `--lossy`.
    pub(crate) losses: Vec<String>,
}

impl Packed {
    fn new(report: &PackReport, cpu: f64) -> Self {
        let row = |row: &packfs::ClassRow| (row.class, (row.bytes, row.stored));
        Packed {
            image_len: report.image_len,
            data_len: report.data_len,
            metadata_len: report.metadata_len,
            classes: report.classes.iter().map(row).collect(),
            cpu,
            losses: report.losses.iter().filter(|loss| loss.refused).map(lost_words).collect(),
        }
    }
}

fn lost_words(loss: &packfs::Loss) -> String {
    let others = if loss.count > 1 { format!(" and {} more", loss.count - 1) } else { String::new() };
    format!("{} ({}{others})", loss.what, loss.example)
}

/// Processor time of this process, in seconds.
pub(crate) fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Makes an image, with what `trace` lists in front. Neither waits for the disk nor reads it back,
/// so that compressing is what is measured.
///
/// Errors: as [`Pack::run_with`].
pub(crate) fn pack(
    loaded: &Arc<Loaded>,
    candidate: &Candidate,
    trace: Option<&Path>,
    output: &Path,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Packed> {
    let packing = Pack::of_loaded(Arc::clone(loaded), output);
    let packing = if let Some(trace) = trace { packing.trace(trace) } else { packing };
    let packing = candidate
        .apply(packing)
        .jobs(jobs)
        .lossy(true)
        .with(|options| options.keep_going = true)
        .verify(false)
        .sync(false);
    let cpu = cpu_seconds();
    // Many images are made, and the same warning of each is no help.
    let report = packing.run_with(&WithoutWarnings(progress)).map_err(explained)?;
    Ok(Packed::new(&report, cpu_seconds() - cpu))
}

/// Cost of decoding all files of an image once by packfs, from memory, on one thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Decoding {
    /// Bytes of files.
    pub(crate) bytes: u64,
    /// Seconds of a processor.
    pub(crate) cpu: f64,
}

/// Reads all files of an image in the order of its disk.
///
/// Errors: those of reading it, `Cancelled`.
pub(crate) fn decode(image: &Path, progress: &dyn Progress) -> Result<Decoding> {
    let bytes = std::fs::read(image).or_io(|| format!("cannot read {image:?}"))?;
    let memory = Arc::new(MemoryImage::new(image.to_string_lossy(), bytes));
    let opened = OpenOptions::new().jobs(1).readahead_bytes(0).open_image(memory)?;
    let mut files = Vec::new();
    for walked in opened.walk() {
        let walked = walked?;
        if let InodeKind::File { len } = walked.inode.kind
            && len > 0
        {
            files.push(walked.id);
        }
    }
    let start = cpu_seconds();
    let mut total = 0;
    let mut buffer = vec![0; BUFFER_LEN];
    for id in files {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        let file = opened.open_id(id)?;
        let mut at = 0;
        loop {
            let len = file.read_at(at, &mut buffer)?;
            if len == 0 {
                break;
            }
            at += len as u64;
        }
        total += at;
    }
    Ok(Decoding { bytes: total, cpu: cpu_seconds() - start })
}
