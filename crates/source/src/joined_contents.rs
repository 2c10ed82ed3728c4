//! Contents of several sources as those of one.

use packfs_core::{ContentId, ContentReader, Contents, Error, Result};
use std::sync::Arc;

/// Contents of several sources, by the first id of each.
#[derive(Default)]
pub struct JoinedContents(Vec<(u64, Arc<dyn Contents>)>);

impl JoinedContents {
    /// Adds a source whose ids are offset by `first`, which must exceed all ids of earlier sources.
    pub fn push(&mut self, first: u64, contents: Arc<dyn Contents>) {
        self.0.push((first, contents));
    }
}

impl Contents for JoinedContents {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        let found = self.0.iter().rev().find(|(first, _)| *first <= id.0);
        let (first, contents) = found.ok_or_else(|| Error::failed(format!("no file with id {}", id.0)))?;
        contents.open(ContentId(id.0 - first))
    }

    fn check_unchanged(&self) -> Result<()> {
        self.0.iter().try_for_each(|(_, contents)| contents.check_unchanged())
    }
}
