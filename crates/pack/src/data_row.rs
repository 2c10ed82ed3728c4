//! Destination of file data: the image, or files of their own, whose positions form one sequence.
//!
//! If there are several files, each ends with a unit without data, so that nothing in one of them
//! seems to continue in the next.

use crate::output::Output;
use packfs_core::{Error, Result};
use packfs_format::{DataFile, PlacedFile};
use xxhash_rust::xxh3::Xxh3;

pub(crate) struct DataRow<'a> {
    files: &'a mut [Output],
    lens_max: Vec<Option<u64>>,
    current: usize,
    start: u64,
    hash: Xxh3,
    done: Vec<PlacedFile>,
    block_len: u64,
    unit: u64,
}

impl<'a> DataRow<'a> {
    pub(crate) fn in_image(image: &'a mut Output) -> Self {
        DataRow::new(std::slice::from_mut(image), Vec::new(), 1, 1)
    }

    pub(crate) fn in_files(
        files: &'a mut [Output],
        data_files: &[DataFile],
        block_len: u32,
        padding: u64,
    ) -> Self {
        let block_len = u64::from(block_len);
        DataRow::new(
            files,
            data_files.iter().map(|file| file.len_max).collect(),
            block_len,
            padding.max(block_len),
        )
    }

    fn new(files: &'a mut [Output], lens_max: Vec<Option<u64>>, block_len: u64, unit: u64) -> Self {
        DataRow {
            files,
            lens_max,
            current: 0,
            start: 0,
            hash: Xxh3::new(),
            done: Vec::new(),
            block_len,
            unit,
        }
    }

    pub(crate) fn position(&self) -> u64 {
        self.start + self.files[self.current].position()
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if !self.lens_max.is_empty() {
            self.hash.update(bytes);
        }
        self.files[self.current].append(bytes)
    }

    /// Appends `len` zeros; they are hashed by their length.
    pub(crate) fn append_zeros(&mut self, len: u64) -> Result<()> {
        if !self.lens_max.is_empty() {
            self.hash.update(&len.to_le_bytes());
        }
        self.files[self.current].append_zeros(len)
    }

    fn is_of_several(&self) -> bool {
        self.lens_max.len() > 1
    }

    /// Ensures that the next data, of at most `len` bytes, is in file `number` or a later one with
    /// room for it, unless that is the last.
    pub(crate) fn begin(&mut self, number: u16, len: u64) -> Result<()> {
        while self.current + 1 < self.files.len()
            && (self.current < usize::from(number) || !self.has_room(len))
        {
            self.next()?;
        }
        Ok(())
    }

    fn len_max(&self) -> Option<u64> {
        let wished = self.lens_max.get(self.current).copied().flatten();
        wished.into_iter().chain(self.files[self.current].room()).min()
    }

    fn has_room(&self, len: u64) -> bool {
        // Padding of the last block, shared zeros, and the unit without data.
        let spare = 2 * self.block_len + if self.is_of_several() { self.unit } else { 0 };
        let used = self.files[self.current].position();
        self.len_max().is_none_or(|len_max| {
            used.checked_add(len)
                .and_then(|end| end.checked_add(spare))
                .is_some_and(|end| end.next_multiple_of(self.unit) <= len_max)
        })
    }

    fn next(&mut self) -> Result<()> {
        let len = self.end_file()?;
        self.files[self.current].append(&vec![0; (len - self.files[self.current].position()) as usize])?;
        self.start += len;
        self.current += 1;
        Ok(())
    }

    /// Ends with a block without data if several files exist.
    fn end_file(&mut self) -> Result<u64> {
        if self.is_of_several() {
            self.append(&vec![0; self.block_len as usize])?;
        }
        let len = self.files[self.current].position();
        let hash = std::mem::take(&mut self.hash).digest128();
        let len_padded = len.next_multiple_of(self.unit);
        if let Some(len_max) = self.len_max().filter(|&len_max| len_padded > len_max) {
            let name = self.files[self.current].name();
            let message =
                format!("cannot write {name}: {len_padded} bytes of data, at most {len_max} are allowed");
            return Err(Error::failed(message).hint("add devices, or use larger ones"));
        }
        // Padding before another file belongs to this one.
        let is_last = self.current + 1 == self.files.len();
        let end = self.start + if is_last { len } else { len_padded };
        self.done.push(PlacedFile { start: self.start, end, hash });
        Ok(len_padded)
    }

    /// Returns the data's files, unless it is in the image.
    pub(crate) fn finish(&mut self) -> Result<Vec<PlacedFile>> {
        if self.lens_max.is_empty() {
            return Ok(Vec::new());
        }
        while self.current + 1 < self.files.len() {
            self.next()?;
        }
        self.end_file()?;
        Ok(std::mem::take(&mut self.done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size_limit::Place;

    /// Writes lengths to files with these limits; returns positions and files.
    fn written(lens_max: &[Option<u64>], lens: &[(u16, u64)]) -> Result<(Vec<u64>, Vec<PlacedFile>)> {
        let folder = tempfile::tempdir().unwrap();
        let data_files: Vec<DataFile> = (0..)
            .zip(lens_max)
            .map(|(number, &len_max)| DataFile { path: folder.path().join(number.to_string()), len_max })
            .collect();
        let mut files: Vec<Output> = data_files
            .iter()
            .map(|wish| Output::create(&wish.path, &Place::default(), 0, &packfs_core::Silent).unwrap())
            .collect();
        let mut row = DataRow::in_files(&mut files, &data_files, 16, 64);
        let mut places = Vec::new();
        for &(number, len) in lens {
            row.begin(number, len)?;
            places.push(row.position());
            row.append(&vec![1; len as usize])?;
        }
        Ok((places, row.finish()?))
    }

    #[test]
    fn one_file_takes_everything_as_an_image_does() {
        let (places, files) = written(&[None], &[(0, 32), (0, 160)]).unwrap();
        assert_eq!(places, [0, 32]);
        assert_eq!((files[0].start, files[0].end), (0, 192));
    }

    #[test]
    fn data_without_room_or_for_a_later_file_goes_to_the_next_one() {
        let (places, files) =
            written(&[Some(256), None, None], &[(0, 32), (0, 64), (0, 80), (2, 16)]).unwrap();
        // 256 bytes hold 96, a unit without data and padding, but not 80 more.
        assert_eq!(places, [0, 32, 128, 256]);
        let ranges: Vec<(u64, u64)> = files.iter().map(|file| (file.start, file.end)).collect();
        assert_eq!(ranges, [(0, 128), (128, 256), (256, 288)]);
        assert_ne!(files[0].hash, files[1].hash);
    }

    #[test]
    fn files_that_nothing_goes_to_are_there_too() {
        let (_, files) = written(&[None, None], &[]).unwrap();
        let ranges: Vec<(u64, u64)> = files.iter().map(|file| (file.start, file.end)).collect();
        assert_eq!(ranges, [(0, 64), (64, 80)]);
    }

    #[test]
    fn refuses_data_that_fits_into_no_file() {
        // The last file is only limited by its real length: data may fit once it is compressed.
        assert!(written(&[Some(256), Some(256)], &[(0, 32), (0, 192)]).is_ok());
        let error = written(&[Some(256), Some(256)], &[(0, 32), (0, 300)]).unwrap_err();
        assert!(error.to_string().contains("320 bytes of data, at most 256 are allowed"), "{error}");
    }
}
