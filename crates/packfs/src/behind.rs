//! Images in files of another kind: behind a program, as in an AppImage, and in Singularity images
//! (SIF). If there is one, it opens as if it filled the file.
//!
//! Owns their places. Only images that begin where the file says count: nothing is searched for.

use crate::Layer;
use packfs_core::{Image, Result, SliceImage};
use std::sync::Arc;

/// Images that are looked at.
const IMAGES_MAX: usize = 16;
/// Images behind a program begin at its end, or at the next multiple of this.
const PADDING: u64 = 4096;

/// A file with images in it.
pub(crate) struct Behind {
    /// Kind of the file, with its article, and as layers have it.
    what: &'static str,
    layer: &'static str,
    images: Vec<Place>,
}

/// An image, from its first byte to its last, if that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    offset: u64,
    len: Option<u64>,
    format: &'static str,
    /// Set for the one that its file marks as the system.
    is_primary: bool,
}

impl Place {
    fn slice(&self, image: &Arc<dyn Image>) -> Result<Arc<dyn Image>> {
        Ok(Arc::new(SliceImage::new(Arc::clone(image), self.offset, self.len)?))
    }
}

impl Behind {
    /// Looks for the images of a file; `None` if it is of another kind.
    pub(crate) fn of(image: &Arc<dyn Image>) -> Option<Behind> {
        let mut head = [0; 64];
        let len = image.read_at(0, &mut head).ok()?;
        let head = head.get(..len)?;
        if head.get(32..41) == Some(b"SIF_MAGIC") {
            let images = sif(image);
            return Some(Behind { what: "a Singularity image (SIF)", layer: "sif", images });
        }
        let is_elf = head.starts_with(b"\x7fELF");
        let (what, layer) = match head.get(8..10) {
            Some(b"AI") => ("an AppImage", "appimage"),
            _ => ("a program (ELF)", "elf"),
        };
        is_elf.then(|| Behind { what, layer, images: in_a_row(image, program_end(&**image)) })
    }

    /// The only image, or the one that is marked.
    fn only(&self) -> Option<&Place> {
        match &self.images[..] {
            [only] => Some(only),
            several => several.iter().find(|place| place.is_primary),
        }
    }

    /// True if the file opens as the image in it.
    #[cfg(feature = "pack")]
    pub(crate) fn is_readable(&self) -> bool {
        self.only().is_some()
    }

    /// Returns the kind of the file, with the images in it.
    pub(crate) fn words(&self) -> String {
        match &self.images[..] {
            [] => self.what.into(),
            images => format!("{} with {}", self.what, listed(images)),
        }
    }

    /// Returns the offset of the first image.
    pub(crate) fn first_offset(&self) -> Option<u64> {
        self.images.first().map(|place| place.offset)
    }

    /// True if it is a program like others.
    pub(crate) fn is_alone(&self) -> bool {
        self.images.is_empty() && self.layer == "elf"
    }
}

/// Places in words, with the option that leads to them.
fn listed(images: &[Place]) -> String {
    let words = images.iter().map(|place| format!("{} (--offset {})", place.format, place.offset));
    words.collect::<Vec<_>>().join(", ")
}

/// An image, its layer and a notice of where it is if it lies in a file that is none itself.
pub(crate) type Found = (Arc<dyn Image>, Option<(Layer, String)>);

/// The image in a file that is none itself, its layer, and a notice of where it is; else the
/// file.
///
/// Errors: `Io`.
pub(crate) fn behind(file: Arc<dyn Image>) -> Result<Found> {
    let found = Behind::of(&file);
    let Some(only) = found.as_ref().and_then(Behind::only) else { return Ok((file, None)) };
    if packfs_formats::probe(&*file)?.is_some() {
        return Ok((file, None));
    }
    let found_at = format!("the {} image at offset {}", only.format, only.offset);
    let (what, layer) = found.as_ref().map_or(("", ""), |found| (found.what, found.layer));
    let mut notice = format!("{} is {what}: {found_at} is read", file.name());
    let others = found.iter().flat_map(|found| &found.images).filter(|place| *place != only);
    let others: Vec<Place> = others.cloned().collect();
    if !others.is_empty() {
        notice += &format!("; others are {}", listed(&others));
    }
    let layer = Layer { format: layer, file: found_at };
    Ok((only.slice(&file)?, Some((layer, notice))))
}

/// Returns the image that begins at `offset`, if one of a known format does.
fn place(image: &Arc<dyn Image>, offset: u64, len: Option<u64>, is_primary: bool) -> Option<Place> {
    let slice = SliceImage::new(Arc::clone(image), offset, len).ok().filter(|_| offset > 0)?;
    let format = packfs_formats::probe(&slice).ok()??.name();
    Some(Place { offset, len, format, is_primary })
}

/// Images one after the other.
fn in_a_row(image: &Arc<dyn Image>, mut end: u64) -> Vec<Place> {
    let mut images = Vec::new();
    while images.len() < IMAGES_MAX {
        let padded = end.checked_next_multiple_of(PADDING).unwrap_or(end);
        let found = [end, padded].into_iter().find_map(|offset| place(image, offset, None, false));
        let Some(found) = found else { break };
        let len = image_len(image, &found);
        end = found.offset.saturating_add(len.unwrap_or(0));
        images.push(found);
        // Nothing can be told of what follows an image without a length.
        if len.is_none() {
            break;
        }
    }
    images
}

fn image_len(image: &Arc<dyn Image>, place: &Place) -> Option<u64> {
    let format = packfs_formats::by_name(place.format)?;
    format.open(place.slice(image).ok()?).ok()?.image_len().filter(|len| *len > 0)
}

/// End of a program: of its table of sections, the last part of most, and of its segments; 0 if
/// nothing tells it. Source: `elf.h`.
fn program_end(image: &dyn Image) -> u64 {
    let Some(head) = read::<64>(image, 0) else { return 0 };
    let (is_long, is_big) = (head[4] == 2, head[5] == 2);
    let number = |bytes: &[u8], at: usize, len: usize| {
        let bytes = bytes[at..at + len].iter();
        let digits = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
        if is_big { bytes.fold(0, digits) } else { bytes.rev().fold(0, digits) }
    };
    let field = |(at, len): (usize, usize)| number(&head, at, len);
    // Offset of a table, length of its rows, and their number: of sections, and of segments.
    let (sections, segments) = if is_long {
        ([(40, 8), (58, 2), (60, 2)], [(32, 8), (54, 2), (56, 2)])
    } else {
        ([(32, 4), (46, 2), (48, 2)], [(28, 4), (42, 2), (44, 2)])
    };
    let [at, row_len, rows] = sections.map(field);
    let mut end = at.saturating_add(row_len * rows);
    let [at, row_len, rows] = segments.map(field);
    for row in 0..rows.min(IMAGES_MAX as u64) {
        let Some(segment) = read::<56>(image, at.saturating_add(row * row_len)) else { break };
        let (offset, len) = if is_long { ((8, 8), (32, 8)) } else { ((4, 4), (16, 4)) };
        let [offset, len] = [offset, len].map(|(at, len)| number(&segment, at, len));
        end = end.max(offset.saturating_add(len));
    }
    end
}

/// Length of the header of a SIF, and of a descriptor in it. Source: package `sif` of
/// `github.com/sylabs/sif`.
const SIF_HEADER_LEN: usize = 128;
const DESCRIPTOR_LEN: u64 = 585;
const DATA_PARTITION: u64 = 0x4004;
const PRIMARY_SYSTEM: u64 = 2;

/// Partitions that hold images of known formats.
fn sif(image: &Arc<dyn Image>) -> Vec<Place> {
    let Some(header) = read::<SIF_HEADER_LEN>(&**image, 0) else { return Vec::new() };
    let (count, at) = (little(&header, 88, 8), little(&header, 96, 8));
    let mut images = Vec::new();
    for row in 0..count.min(1024) {
        let at = at.saturating_add(row * DESCRIPTOR_LEN);
        let Some(descriptor) = read::<{ DESCRIPTOR_LEN as usize }>(&**image, at) else { break };
        let is_partition = little(&descriptor, 0, 4) == DATA_PARTITION && descriptor[4] == 1;
        let (offset, len) = (little(&descriptor, 17, 8), little(&descriptor, 25, 8));
        let is_primary = little(&descriptor, 205, 4) == PRIMARY_SYSTEM;
        if is_partition && images.len() < IMAGES_MAX {
            images.extend(place(image, offset, Some(len), is_primary));
        }
    }
    images
}

fn little(bytes: &[u8], at: usize, len: usize) -> u64 {
    bytes[at..at + len].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// Bytes of a file; `None` if they are not all there.
fn read<const N: usize>(image: &dyn Image, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (image.read_at(at, &mut bytes).ok()? == N).then_some(bytes)
}
