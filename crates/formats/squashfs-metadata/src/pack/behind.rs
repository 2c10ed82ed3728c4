//! The sections that stand behind the data of an image, one behind the other.

use packfs_format::Section;

/// Sections behind the data.
#[derive(Debug)]
pub struct Behind {
    /// Those that are there, in order.
    pub sections: Vec<Section>,
    /// Where the last one ends.
    pub end: u64,
}

impl Behind {
    /// None yet, behind data that end at `data_end`.
    pub fn new(data_end: u64) -> Self {
        Behind { sections: Vec::new(), end: data_end }
    }

    /// Puts a section behind the last one; returns where it starts.
    pub fn add(&mut self, owner: &'static str, bytes: Vec<u8>) -> u64 {
        let offset = self.end;
        self.end += bytes.len() as u64;
        if !bytes.is_empty() {
            self.sections.push(Section { owner, offset, bytes });
        }
        offset
    }
}
