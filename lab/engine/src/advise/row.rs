//! Expectations of one candidate.

use super::candidates::Candidate;
use super::forecast::build::Build;
use super::forecast::size::Size;
use super::forecast::time::ReadTime;
use serde::Serialize;
use std::fmt;

/// Expectations of one candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The candidate.
    pub candidate: Candidate,
    /// Length of the image.
    pub size: Size,
    /// Time to make it.
    pub build: Build,
    /// Time to read the workload.
    pub read: ReadTime,
    /// MiB of files that packfs itself decodes in a second of one processor: measured on the
    /// sample.
    pub decodes_mib_per_second: f64,
    /// True if what decoding costs the kernel was measured, or told from packfs's own decoding.
    pub kernel_measured: bool,
    /// Losses of the format: it is packed with `--lossy` only.
    pub losses: Vec<String>,
    /// True if no other is both smaller and read sooner.
    pub on_front: bool,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.candidate.fmt(f)
    }
}

#[cfg(test)]
pub(crate) fn test_row(codec: &str, bytes: u64, read: f64, build: f64) -> Row {
    use super::candidates::Layout;
    let layout = Layout {
        format: "squashfs",
        block: Some(128 << 10),
        path_order: false,
        far: false,
        all_packed: false,
        no_tails: false,
    };
    Row {
        candidate: Candidate { layout, codec: Some(codec.into()), kernel: None },
        size: Size { bytes, error: 0.01 },
        build: Build { cpu: build, wall: build / 2.0 },
        read: ReadTime { seconds: read, waiting: read / 2.0, ..ReadTime::default() },
        decodes_mib_per_second: 100.0,
        kernel_measured: true,
        losses: Vec::new(),
        on_front: false,
    }
}
