//! The two ways to store data, as the stages of packing see them.

use crate::PackOptions;
use crate::base::{Kept, Reuse};
use crate::by_class::Classes;
use crate::context::{Context, Kind};
use crate::data_row::DataRow;
use crate::digest_log::DigestLog;
use crate::duplicates::Duplicates;
use crate::report::{PackReport, WalkReads};
use packfs_core::{Progress, Result};
use packfs_format::{Placed, Plan};
use std::ops::Range;
use std::path::Path;

pub(crate) trait Engine: Kind {
    /// Kept shared blocks of the base.
    type Kept: Kept;
    type Parts;

    /// Adapts a plan to the holes that sources report.
    ///
    /// Errors: `Failed` for a file that the format named `format` cannot hold.
    fn settle(_context: &Context<'_, Self>, _format: &str) -> Result<Option<Plan<Self>>> {
        Ok(None)
    }

    /// Selects the base's shared blocks that are kept.
    fn find_kept(
        context: &Context<'_, Self>,
        reuse: &Reuse<'_, Self::Kept>,
        options: &PackOptions,
        progress: &dyn Progress,
    ) -> Result<Self::Kept>;

    fn find_parts(
        context: &Context<'_, Self>,
        duplicates: &Duplicates,
        options: &PackOptions,
        progress: &dyn Progress,
        output: &Path,
    ) -> Result<Self::Parts>;

    fn amend(_parts: &Self::Parts, _plan: &mut Plan<Self>) {}

    fn place(job: &Job<'_, Self>, row: DataRow<'_>, digests: &mut DigestLog) -> Result<Stored<Self>>;

    /// Returns the ranges within the data that the format fills.
    fn leads(_plan: &Self::Plan, _placed: &Placed<Self>) -> Vec<Range<u64>> {
        Vec::new()
    }

    /// Adds the figures of this engine to a report.
    fn add_to_report(placed: &Placed<Self>, report: &mut PackReport);

    /// Returns the number of bytes of all files that are holes.
    fn hole_bytes(context: &Context<'_, Self>, placed: &Placed<Self>) -> u64;

    /// Returns the cost of a walk along the tree, if the order of files matters for it.
    fn walk(_context: &Context<'_, Self>, _placed: &Placed<Self>) -> WalkReads {
        WalkReads::default()
    }
}

pub(crate) struct Job<'a, E: Engine> {
    pub context: &'a Context<'a, E>,
    pub reuse: Option<&'a Reuse<'a, E::Kept>>,
    pub duplicates: &'a Duplicates,
    pub parts: &'a E::Parts,
    pub options: &'a PackOptions,
    pub progress: &'a dyn Progress,
    /// Path of the image; temporary data is spooled beside it.
    pub output: &'a Path,
}

pub(crate) struct Stored<E: Engine> {
    pub placed: Placed<E>,
    /// Reasons of files that could not be read, if that is allowed.
    pub skipped: Vec<String>,
    pub classes: Classes,
}
