//! The image while it is written: data is appended in order, sections are written at their offsets.

use crate::copy;
use crate::destination::Destination;
use crate::size_limit::{self, Place};
use crate::verify::WrittenFile;
use packfs_core::{Progress, Result, ResultExt};
use packfs_format::Section;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes gathered before they are written.
const BUFFER_LEN: usize = 1 << 20;

/// Shorter runs of zeros are written like other bytes.
const HOLE_LEN_MIN: u64 = 64 << 10;
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Output of an image: a file renamed when it is complete, a block device, or a pipe.
pub struct Output {
    file: File,
    destination: Destination,
    base: u64,
    /// Position of the next byte, from the start of the image; unwritten bytes before it are in
    /// `buffer`.
    position: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Most bytes of the image; data beyond is not written.
    len_max: Option<u64>,
    stops_early: bool,
}

impl Output {
    /// File data starts `position` bytes after the start of the image.
    pub(crate) fn create(path: &Path, place: &Place, position: u64, progress: &dyn Progress) -> Result<Self> {
        let (mut destination, file) = Destination::open(path)?;
        let file = destination.stage(file, place, progress)?;
        let Place { base, size_limit, .. } = *place;
        destination.keep_beginning(&file, base)?;
        let buffer = Vec::with_capacity(BUFFER_LEN);
        let len_max = match destination.len() {
            Some(device_len) => Some(place.len_max_on(device_len)),
            None => size_limit.max_size,
        };
        let stops_early = size_limit.stops_early || destination.is_in_place();
        Ok(Output { file, destination, base, position, end: position, buffer, len_max, stops_early })
    }

    /// Creates the output for `path`, of which sections are written first and data later; those
    /// from `position` on come in order.
    ///
    /// Errors: `Usage` for what is no file, device or pipe, `Io`.
    pub fn of_parts(path: &Path, position: u64, progress: &dyn Progress) -> Result<Self> {
        Output::create(path, &Place::default(), position, progress)
    }

    /// Copies bytes of another file to `offset`, without reading them where the system can: file
    /// systems that share blocks do so if both offsets have the same remainder by their block.
    /// Returns the number of bytes copied; the rest has to be written.
    ///
    /// Errors: `Io` if the disk is full or fails, and those of [`Output::write_at`].
    pub fn copy_range(&self, offset: u64, from: &File, from_offset: u64, len: u64) -> Result<u64> {
        if self.len_max.is_some() || self.destination.len().is_some() {
            return Ok(0);
        }
        copy::range(from, from_offset, &self.file, self.base + offset, len)
            .or_io(|| format!("cannot write {}", self.destination.name()))
    }

    /// Returns true if bytes that are not written are those of the old contents.
    pub fn is_in_place(&self) -> bool {
        self.destination.is_in_place()
    }

    /// Returns the name of the destination, for messages.
    pub fn name(&self) -> String {
        self.destination.name()
    }

    pub(crate) fn room(&self) -> Option<u64> {
        self.destination.len().map(|len| len.saturating_sub(self.base))
    }

    /// Relative to the start of the image.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER_LEN {
            self.flush()?;
        }
        if bytes.len() >= BUFFER_LEN {
            self.write_at(self.position, bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        self.position += bytes.len() as u64;
        self.end = self.end.max(self.position);
        Ok(())
    }

    /// Long runs become holes unless old contents would show through.
    pub(crate) fn append_zeros(&mut self, len: u64) -> Result<()> {
        let mut left = len;
        if len >= HOLE_LEN_MIN && !self.destination.is_in_place() {
            self.flush()?;
            self.position += len;
            self.end = self.end.max(self.position);
            left = 0;
        }
        while left > 0 {
            let part_len = left.min(ZEROS.len() as u64);
            self.append(&ZEROS[..part_len as usize])?;
            left -= part_len;
        }
        Ok(())
    }

    /// Writes the buffered bytes.
    pub fn flush(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        self.write_at(self.position - buffer.len() as u64, &buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    /// Writes a section of the format.
    pub fn write_section(&mut self, section: &Section) -> Result<()> {
        if section.offset == self.position {
            return self.append(&section.bytes);
        }
        self.flush()?;
        self.write_at(section.offset, &section.bytes)?;
        self.end = self.end.max(section.offset + section.bytes.len() as u64);
        Ok(())
    }

    /// Writes bytes at an offset, past what was appended.
    ///
    /// Errors: `Io`; `TooLarge` for bytes beyond the end of a device.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let start = self.base + offset;
        let end = offset + bytes.len() as u64;
        if self.len_max.is_some_and(|len_max| end > len_max) {
            return if self.stops_early { self.check_len(end, false) } else { Ok(()) };
        }
        self.file.write_all_at(bytes, start).or_io(|| format!("cannot write {}", self.destination.name()))
    }

    fn check_len(&self, len: u64, is_whole: bool) -> Result<()> {
        if self.len_max == self.room() {
            self.destination.check_device(self.base + len)?;
        }
        size_limit::check(len, self.len_max, &self.destination.name(), is_whole)
    }

    /// Extends the image to at least `len` bytes.
    pub fn reach(&mut self, len: u64) {
        self.end = self.end.max(len);
    }

    /// Pads the image with zeros to a multiple of `padding`, and returns its length. Nothing is
    /// appended afterwards.
    pub fn end(&mut self, padding: u64) -> Result<u64> {
        self.flush()?;
        let len = self.end.next_multiple_of(padding.max(1));
        self.check_len(len, true)?;
        self.write_at(self.end, &vec![0; (len - self.end) as usize])?;
        self.end = len;
        // A hole at the end leaves the file too short.
        self.destination.lengthen(&self.file, self.base + len)?;
        Ok(len)
    }

    /// Overwrites a part of the completed image.
    pub fn overwrite(&mut self, section: &Section) -> Result<()> {
        self.write_at(section.offset, &section.bytes)
    }

    /// Returns the completed image for reading.
    pub fn written(&self) -> WrittenFile<'_> {
        WrittenFile { file: &self.file, name: self.name(), start: self.base, len: self.end }
    }

    /// Clears the front of an image that was written in place and failed verification.
    pub(crate) fn spoil(&self) {
        self.destination.spoil(&self.file, self.base);
    }

    /// Moves the completed image to its destination.
    pub fn finish(mut self, sync: bool) -> Result<()> {
        self.destination.finish(&self.file, self.base, self.end, sync)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::Image;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn created(path: &Path, base: u64, position: u64) -> Result<Output> {
        Output::create(path, &Place { base, ..Place::default() }, position, &packfs_core::Silent)
    }

    #[test]
    fn the_file_appears_only_when_it_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.img");
        let mut out = created(&path, 0, 4).unwrap();
        out.append(b"data").unwrap();
        assert!(!path.exists());
        out.write_section(&Section { owner: "superblock", offset: 0, bytes: b"head".to_vec() }).unwrap();
        assert_eq!(out.end(16).unwrap(), 16);
        out.finish(true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"headdata\0\0\0\0\0\0\0\0");
        assert_eq!(names(folder.path()), ["a.img"]);
    }

    #[test]
    fn written_data_can_be_read_and_replaced_after_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.img");
        let mut out = created(&path, 3, 0).unwrap();
        out.append(b"image").unwrap();
        assert_eq!(out.end(8).unwrap(), 8);
        let mut bytes = [1; 9];
        assert_eq!(out.written().read_at(1, &mut bytes).unwrap(), 7);
        assert_eq!(&bytes, b"mage\0\0\0\x01\x01");
        assert_eq!(out.written().read_at(9, &mut bytes).unwrap(), 0);
        out.overwrite(&Section { owner: "superblock", offset: 1, bytes: b"MA".to_vec() }).unwrap();
        out.finish(false).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"\0\0\0iMAge\0\0\0");
    }

    #[test]
    fn an_abandoned_file_leaves_the_old_one_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.img");
        std::fs::write(&path, "old").unwrap();
        let mut out = created(&path, 0, 0).unwrap();
        out.append(&[1; 3 << 20]).unwrap();
        drop(out);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.img"]);
    }

    #[test]
    fn keeps_bytes_before_the_image() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.img");
        std::fs::write(&path, "runtime, then an old image").unwrap();
        let mut out = created(&path, 7, 0).unwrap();
        out.append(b"image").unwrap();
        out.end(1).unwrap();
        out.finish(false).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"runtimeimage");
    }

    #[test]
    fn a_pipe_gets_the_whole_image_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || std::fs::read(path).unwrap()
        });
        let mut out = created(&path, 2, 4).unwrap();
        out.append(b"data").unwrap();
        out.write_section(&Section { owner: "superblock", offset: 0, bytes: b"head".to_vec() }).unwrap();
        assert_eq!(out.end(16).unwrap(), 16);
        out.finish(true).unwrap();
        assert_eq!(reader.join().unwrap(), b"\0\0headdata\0\0\0\0\0\0\0\0");
        assert_eq!(names(folder.path()), ["pipe"]);
    }

    #[test]
    fn refuses_to_write_into_a_folder_or_a_device_like_null() {
        let folder = tempfile::tempdir().unwrap();
        assert!(created(folder.path(), 0, 0).is_err());
        assert!(created(Path::new("/dev/null"), 0, 0).is_err());
        assert!(created(&folder.path().join("missing/a.img"), 0, 0).is_err());
    }
}
