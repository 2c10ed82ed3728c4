//! Lists of paths that say in which order files are placed.

use super::PackOptions;
use packfs_core::{ImagePath, Progress, Result, Tree};
use packfs_source::{OrderFile, Trace};

/// Lists that the options name, read before the source is, which may take long.
pub(super) struct Lists {
    order: Option<OrderFile>,
    trace: Option<Trace>,
}

impl Lists {
    /// Reads them.
    ///
    /// Errors: `Io`, `Corrupt`.
    pub(super) fn read(options: &PackOptions) -> Result<Self> {
        Ok(Lists {
            order: options.order_file.as_deref().map(OrderFile::read).transpose()?,
            trace: options.trace.as_deref().map(Trace::read).transpose()?,
        })
    }

    /// Tells the engine what they say of a tree.
    pub(super) fn apply(&self, tree: &Tree, options: &mut packfs_pack::PackOptions, progress: &dyn Progress) {
        // The other parts of a merged image have the other paths.
        let is_whole = !options.fills_stream;
        if let Some(order) = &self.order {
            let (priorities, missing) = order.priorities(tree);
            if is_whole {
                warn_of_missing("order file", &missing, progress);
            }
            options.priorities = Some(priorities);
        }
        if let Some(trace) = &self.trace {
            let (nodes, missing) = trace.nodes(tree);
            if is_whole {
                warn_of_missing("trace", &missing, progress);
            }
            options.first_used = nodes;
        }
    }
}

/// Warns of what a list of paths names that is not there.
fn warn_of_missing(list: &str, missing: &[ImagePath], progress: &dyn Progress) {
    if let Some(first) = missing.first() {
        let more = match missing.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        progress.warn(&format!("the {list} names paths that are not packed: {first:?}{more}"));
    }
}
