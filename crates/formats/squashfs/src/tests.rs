//! Parts of images that tests of all generations build by hand.

use packfs_format::Volume;
use packfs_testkit::LabelledImage;

/// A stored metadata block under construction.
#[derive(Default)]
pub(crate) struct Metadata {
    pub(crate) bytes: Vec<u8>,
    labels: Vec<(&'static str, usize)>,
}

impl Metadata {
    /// Adds a structure and returns its offset in the block.
    pub(crate) fn put(&mut self, label: &'static str, bytes: &[u8]) -> usize {
        let at = self.bytes.len();
        self.labels.push((label, at));
        self.bytes.extend_from_slice(bytes);
        at
    }

    /// Adds the block to an image; its header gets `label`, its structures keep theirs.
    pub(crate) fn put_into(self, image: &mut LabelledImage<impl Volume>, label: &str, header: &[u8]) -> u64 {
        let at = image.put(label, header);
        for (label, within) in self.labels {
            image.label(label, at as usize + header.len() + within);
        }
        image.bytes.extend_from_slice(&self.bytes);
        at
    }
}
