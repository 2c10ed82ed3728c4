//! The sections that stand after the data of an image, one after the other.

use packfs_format::Section;

/// Sections after the data.
#[derive(Debug)]
pub(crate) struct TrailingSections {
    /// Those that are there, in order.
    pub(crate) sections: Vec<Section>,
    /// End of the last section.
    pub(crate) end: u64,
}

impl TrailingSections {
    /// None yet, after data that end at `data_end`.
    pub(crate) fn new(data_end: u64) -> Self {
        TrailingSections { sections: Vec::new(), end: data_end }
    }

    /// Puts a section after the last one; returns where it starts.
    pub(crate) fn add(&mut self, owner: &'static str, bytes: Vec<u8>) -> u64 {
        let offset = self.end;
        self.end += bytes.len() as u64;
        if !bytes.is_empty() {
            self.sections.push(Section { owner, offset, bytes });
        }
        offset
    }
}
