//! Options of making an image.

use super::output_format;
use crate::OpenOptions;
use crate::output_place::OutputPlace;
use packfs_core::{Error, Goal, Limits, Result, shown_place, url_scheme};
use packfs_format::PackSettings;
use packfs_pack::{Effort, Gain, Order, SizeLimit};
use packfs_source::Shape;
use std::path::{Path, PathBuf};

/// Time at which an image says that it was made. Never the time of packing unless that is chosen:
/// the same source gives the same bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MadeAt {
    /// The time of the newest file in it, after shaping.
    #[default]
    Newest,
    /// The time of packing.
    Now,
    /// Seconds since 1970.
    Seconds(i64),
}

/// Proof that a file of the source is one of the base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BaseCheck {
    /// Its contents, compared.
    #[default]
    Contents,
    /// Its path, length and time; it is not read.
    Times,
}

/// Options of making an image, by the names that `packfs pack` has for them. `None` leaves the
/// choice to the format, or to the image that is packed again.
#[derive(Clone, Debug)]
pub struct PackOptions {
    /// Name of the format; without it the output's extension tells, which is refused if no format
    /// has it; without an extension, or with one that any image may have (`img`, `image`, `bin`,
    /// `raw`), it is SquashFS.
    pub format: Option<String>,
    /// Codec as `NAME[:LEVEL][,KEY=VALUE...]`.
    pub codec: Option<String>,
    /// Block size in bytes.
    pub block_size: Option<u32>,
    /// Goal that decides where no option does.
    pub optimize: Goal,
    /// Options that only the format knows, by name and value; [`crate::FormatInfo::options`] lists
    /// them.
    pub options: Vec<(String, String)>,
    /// Time at which the image says that it was made.
    pub made_at: MadeAt,
    /// Filters and changes on the way from the source. A tree that is already loaded is packed as
    /// it is.
    pub shape: Shape,
    /// Way to open a source that is an image. Jobs and limits are those of the fields below.
    pub source: OpenOptions,
    /// Limits of a source that is an image, a tar or a manifest, and of the base. A directory may
    /// hold anything.
    pub limits: Limits,
    /// Order of small files; `None`: by the goal.
    pub order: Option<Order>,
    /// File with a path and a priority a line, in whose order contents are placed instead.
    pub order_file: Option<PathBuf>,
    /// File with a path a line: what is used first. Its data and metadata are placed in front, in
    /// that order, and apart from all others; the order is for the rest.
    pub trace: Option<PathBuf>,
    /// Share that compressing has to save, or data is stored as it is.
    pub min_gain: Gain,
    /// Work that a block is worth.
    pub effort: Effort,
    /// Set for an image that is to be merged with others: an EROFS image ends its packed inode at a
    /// whole block, so that those of others can follow it.
    pub for_merging: bool,
    /// Earlier image whose compressed blocks are copied where the source still holds the same
    /// bytes. It must have the format, codec, level and block size of the new one, and may be the
    /// image that is replaced.
    pub base: Option<PathBuf>,
    /// Proof that a file is one of the base.
    pub base_check: BaseCheck,
    /// Threads that compress; 0: one for each processor. The image is the same for any number.
    pub jobs: usize,
    /// Memory limit in bytes, instead of that of this process's control groups. Short memory costs
    /// threads, never a different image.
    pub memory: Option<u64>,
    /// Offset of the image in the output, in bytes; the bytes of an existing file before it are
    /// kept.
    pub offset: u64,
    /// Largest length of the image in bytes, padding included. A longer one is an error of kind
    /// `TooLarge` that tells its length, and nothing is overwritten.
    pub max_size: Option<u64>,
    /// Set to try denser codecs, higher levels and larger blocks, as far as they are left open,
    /// until the image fits into `max_size`, or on the block device that is the output. Each try
    /// packs anew.
    pub fit: bool,
    /// Set to continue after files and directories that cannot be read, and report them.
    pub keep_going: bool,
    /// Set to lose what the format cannot hold.
    pub lossy: bool,
    /// Reads the image back before it gets its name, and compares it with what was packed: names
    /// and metadata as the format can hold them, contents by hashes taken when they were read.
    /// `None`: if the files are shorter than 1 GiB together.
    pub verify: Option<bool>,
    /// Set, as by default, to have the image on the disk before it gets its name.
    pub sync: bool,
}

impl Default for PackOptions {
    fn default() -> Self {
        PackOptions {
            format: None,
            codec: None,
            block_size: None,
            optimize: Goal::default(),
            options: Vec::new(),
            made_at: MadeAt::default(),
            shape: Shape::default(),
            source: OpenOptions::default(),
            limits: Limits::default(),
            order: None,
            order_file: None,
            trace: None,
            min_gain: Gain::default(),
            effort: Effort::default(),
            for_merging: false,
            base: None,
            base_check: BaseCheck::default(),
            jobs: 0,
            memory: None,
            offset: 0,
            max_size: None,
            fit: false,
            keep_going: false,
            lossy: false,
            verify: None,
            sync: true,
        }
    }
}

impl PackOptions {
    /// Checks what is for the format of an image, so that wrong options are told before a source is
    /// read, which may take long. [`crate::Pack::run`] does so, too, unless its source was loaded
    /// before.
    ///
    /// Errors: `Usage`, `Unsupported`.
    pub fn check(&self, output: impl AsRef<Path>) -> Result<()> {
        let format = output_format::choose(self.format.as_deref(), output.as_ref(), None)?;
        format.packer(&self.settings()).map(|_| ())
    }

    /// Returns what the format is told; the time is known once the source is.
    pub(crate) fn settings(&self) -> PackSettings {
        PackSettings {
            codec: self.codec.clone(),
            block_size: self.block_size,
            optimize: self.optimize,
            made_at: 0,
            options: self.options.clone(),
        }
    }

    /// Returns what the engine is told.
    pub(super) fn engine(&self) -> packfs_pack::PackOptions {
        packfs_pack::PackOptions {
            jobs: self.jobs,
            memory: self.memory,
            offset: self.offset,
            size_limit: SizeLimit { max_size: self.max_size, ..SizeLimit::default() },
            keep_going: self.keep_going,
            lossy: self.lossy,
            sync: self.sync,
            order: self.order.unwrap_or(Order::for_goal(self.optimize)),
            min_gain: self.min_gain,
            effort: self.effort,
            fills_stream: self.for_merging,
            ..packfs_pack::PackOptions::default()
        }
    }

    /// Returns how a source that is an image is opened.
    pub(super) fn opening(&self) -> OpenOptions {
        self.source.clone().jobs(self.jobs).limits(self.limits)
    }

    /// Returns the place of an output.
    ///
    /// Errors: as [`OutputPlace::open`]; `Usage` for an offset in an object.
    pub(super) fn place(&self, output: &Path) -> Result<OutputPlace> {
        if self.offset > 0 && url_scheme(output).is_some() {
            let shown = shown_place(output);
            return Err(Error::usage(format!(
                "cannot write at an offset of {shown}: objects are written whole"
            )));
        }
        OutputPlace::open(output, &self.opening())
    }

    /// Returns how an image is opened that fills its file.
    pub(super) fn plainly_opening(&self) -> OpenOptions {
        OpenOptions::new().jobs(self.jobs).limits(self.limits)
    }
}
