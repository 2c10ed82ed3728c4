//! The two ways to store data, as the stages of packing see them.

use crate::PackOptions;
use crate::base::{Kept, Reuse};
use crate::by_class::Classes;
use crate::context::{Context, Kind};
use crate::data_row::DataRow;
use crate::report::PackReport;
use crate::twins::Twins;
use crate::witness::Testimony;
use packfs_core::{Progress, Result};
use packfs_format::{Placed, Plan};
use std::ops::Range;
use std::path::Path;

/// A way to store data: blocks or clusters.
pub(crate) trait Engine: Kind {
    /// Shared blocks of the base that stay.
    type Kept: Kept;
    /// Parts of files that others hold, too.
    type Parts;

    /// Changes a plan by what the sources of the files tell of their holes.
    ///
    /// Errors: `Failed` for a file that the format named `format` cannot hold.
    fn settle(_context: &Context<'_, Self>, _format: &str) -> Result<Option<Plan<Self>>> {
        Ok(None)
    }

    /// Finds what of the base's shared blocks can stay.
    fn find_kept(
        context: &Context<'_, Self>,
        reuse: &Reuse<'_, Self::Kept>,
        options: &PackOptions,
        progress: &dyn Progress,
    ) -> Result<Self::Kept>;

    /// Compares parts of files, before any is packed.
    fn find_parts(
        context: &Context<'_, Self>,
        twins: &Twins,
        options: &PackOptions,
        progress: &dyn Progress,
        output: &Path,
    ) -> Result<Self::Parts>;

    /// Changes a plan by what was found.
    fn amend(_parts: &Self::Parts, _plan: &mut Plan<Self>) {}

    /// Reads, compresses and writes the data of every file of the plan.
    fn place(job: &Job<'_, Self>, row: DataRow<'_>, testimony: &mut Testimony) -> Result<Stored<Self>>;

    /// Returns the room within the data that the format is to fill.
    fn leads(_plan: &Self::Plan, _placed: &Placed<Self>) -> Vec<Range<u64>> {
        Vec::new()
    }

    /// Adds the figures of this engine to a report.
    fn tell(placed: &Placed<Self>, report: &mut PackReport);
}

/// The input of placing data.
pub(crate) struct Job<'a, E: Engine> {
    pub context: &'a Context<'a, E>,
    pub reuse: Option<&'a Reuse<'a, E::Kept>>,
    pub twins: &'a Twins,
    pub parts: &'a E::Parts,
    pub options: &'a PackOptions,
    pub progress: &'a dyn Progress,
    /// Where the image will be; what must wait is kept beside it.
    pub output: &'a Path,
}

/// Data that was placed.
pub(crate) struct Stored<E: Engine> {
    pub placed: Placed<E>,
    /// Files that could not be read, if that is allowed: why.
    pub skipped: Vec<String>,
    pub classes: Classes,
}
