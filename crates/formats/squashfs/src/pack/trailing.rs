//! The sections after the data of an image.

use packfs_format::Section;

#[derive(Debug)]
pub(crate) struct TrailingSections {
    pub(crate) sections: Vec<Section>,
    pub(crate) end: u64,
}

impl TrailingSections {
    pub(crate) fn new(data_end: u64) -> Self {
        TrailingSections { sections: Vec::new(), end: data_end }
    }

    /// Appends a section; returns its start.
    pub(crate) fn add(&mut self, owner: &'static str, bytes: Vec<u8>) -> u64 {
        let offset = self.end;
        self.end += bytes.len() as u64;
        if !bytes.is_empty() {
            self.sections.push(Section { owner, offset, bytes });
        }
        offset
    }
}
