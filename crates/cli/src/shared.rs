//! Options that several verbs have, and what they mean.

use crate::progress::Bars;
use crate::text;
use packfs::sink::Pattern;
use packfs::{OpenOptions, Opened, Result};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The image that is read.
#[derive(clap::Args)]
pub struct ImageInput {
    /// The image: a file or a block device
    #[arg(value_name = "IMAGE")]
    pub image: PathBuf,

    /// Where the image begins in the file: 4096, 128K, 1M, 0x1000
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = text::parse_size)]
    pub offset: u64,

    /// A file or block device that holds further data of the image; once for each, in the order in which it lists them
    #[arg(long, value_name = "FILE")]
    pub device: Vec<PathBuf>,
}

impl ImageInput {
    /// Opens the image, to be decoded on so many threads (0: all processors).
    pub fn open(&self, jobs: usize) -> Result<Opened> {
        let options = OpenOptions::new().offset(self.offset).jobs(jobs);
        self.device.iter().fold(options, OpenOptions::device).open(&self.image)
    }
}

/// How long work is done and shown.
#[derive(clap::Args)]
pub struct Work {
    /// Threads to work on; all processors if not given
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,

    /// No progress, no summary; warnings and errors only
    #[arg(short, long)]
    pub quiet: bool,
}

impl Work {
    /// Number of threads; 0: one a processor.
    pub fn jobs(&self) -> usize {
        self.jobs.map_or(0, usize::from)
    }

    /// Progress bars, if they are wanted.
    pub fn bars(&self, json: bool) -> Bars {
        Bars::new(!self.quiet && !json)
    }
}

/// Paths and globs as typed.
pub fn patterns(typed: &[OsString]) -> Result<Vec<Pattern>> {
    typed.iter().map(|text| Pattern::parse(text.as_bytes())).collect()
}
