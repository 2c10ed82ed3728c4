//! The sections that stand behind the data of an image, one behind the other.

use packfs_format::Section;

/// Sections behind the data.
#[derive(Debug)]
pub(crate) struct Behind {
    /// Those that are there, in order.
    pub(crate) sections: Vec<Section>,
    /// End of the last section.
    pub(crate) end: u64,
}

impl Behind {
    /// None yet, behind data that end at `data_end`.
    pub(crate) fn new(data_end: u64) -> Self {
        Behind { sections: Vec::new(), end: data_end }
    }

    /// Puts a section behind the last one; returns where it starts.
    pub(crate) fn add(&mut self, owner: &'static str, bytes: Vec<u8>) -> u64 {
        let offset = self.end;
        self.end += bytes.len() as u64;
        if !bytes.is_empty() {
            self.sections.push(Section { owner, offset, bytes });
        }
        offset
    }
}
