//! Options of making an image, as the format, the engine, and the reader of the source get them.

use super::output_format;
use crate::output_place::OutputPlace;
use crate::{OpenOptions, PackOptions};
use packfs_core::{Error, Order, Result, shown_place, url_scheme};
use packfs_format::PackSettings;
use packfs_pack::SizeLimit;
use std::path::Path;

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

    /// Returns the options of an image that is made to be wrapped.
    pub(super) fn of_inner(&self, format: String) -> Self {
        PackOptions {
            format: Some(format),
            // What is inside is compressed by what is around it.
            codec: Some("none".into()),
            block_size: None,
            options: Vec::new(),
            base: None,
            offset: 0,
            max_size: None,
            fit: false,
            sync: false,
            ..self.clone()
        }
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
