//! Limits of the total file data of an image, against decompression bombs: blocks shared by very
//! many files, very long runs of one byte.

use crate::Wanted;
use crate::engine::ReadEngine;
use packfs_core::{ErrorKind, Result};
use packfs_format::{ExtentFrom, image_words, units::*};
use std::ops::ControlFlow;

impl ReadEngine {
    pub(crate) fn subject(&self) -> String {
        image_words(&*self.volume)
    }

    /// Refuses files whose total data, without holes, exceeds the limit for an image of this
    /// length.
    ///
    /// Lengths are summed first. Only if these exceed the limit, extents are looked up to subtract
    /// holes.
    ///
    /// Errors: `Limit`, `Io`, `Cancelled`. Extents count up to the first damaged or external one;
    /// the reader of the file reports the error.
    pub fn check_data(&self, files: &[Wanted]) -> Result<()> {
        let limits = &self.options.limits;
        let allowed = limits.data_len_max(self.input_len());
        let apparent = files.iter().fold(0, |len, file| end_of(len, file.len));
        if apparent <= allowed {
            return Ok(());
        }
        let mut data_len = 0_u64;
        for file in files {
            let found = self.volume.extents(file.id, 0..file.len, &mut |extent| {
                if !matches!(extent.from, ExtentFrom::Hole) {
                    data_len = end_of(data_len, extent.len);
                }
                // Objects outside the image are found on the way.
                if data_len > allowed && data_len > limits.data_len_max(self.input_len()) {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            });
            if data_len > allowed {
                limits.check_data(&self.subject(), data_len, self.input_len())?;
            }
            match found.map_err(|error| (error.kind(), error)) {
                Err((ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Failed, _)) | Ok(()) => {}
                Err((_, error)) => return Err(error),
            }
        }
        Ok(())
    }

    fn input_len(&self) -> u64 {
        let len = self.counted.as_ref().map_or_else(|| self.image().len(), |counted| counted.all_len());
        end_of(len, self.volume.objects().map_or(0, |objects| objects.objects_len()))
    }
}
