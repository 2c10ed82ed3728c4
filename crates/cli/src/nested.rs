//! Which of several images within each other is meant.

use packfs::OpenOptions;

/// Options of every verb that opens an image.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct NestedArgs {
    /// The image to look at where a container holds several, such as the partitions of a disk: p2, or 2
    #[arg(long, value_name = "NAME")]
    part: Option<String>,

    /// Look at the container itself (a cloop, a table of partitions), not at the image in it
    #[arg(long, conflicts_with = "part")]
    outer: bool,
}

impl NestedArgs {
    /// Whether nothing was asked for.
    pub fn is_default(&self) -> bool {
        self.part.is_none() && !self.outer
    }

    /// Opens what was asked for.
    pub fn apply(&self, options: OpenOptions) -> OpenOptions {
        match &self.part {
            Some(name) => options.part(name),
            None if self.outer => options.outermost(),
            None => options,
        }
    }
}
