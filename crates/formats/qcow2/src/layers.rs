//! An image and its backing files: each has what those before it do not.
//!
//! Owns the chain. Its length is that of what the caller gives: no path of an image is opened, and
//! a chain that leads back to its start needs a file more than any caller has given.

use crate::data::Extending;
use crate::disk::{CORRUPT, DIRTY, MAGIC};
use crate::open::{Geometry, L1};
use crate::tables::{Place, Tables};
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{Error, Image, JoinedImage, Result, escaped, len_of, u32_of};
use packfs_format::{Extent, ExtentFrom};
use std::ops::Range;
use std::sync::Arc;

/// A qcow2 image.
pub(crate) struct Qcow {
    /// Name of the image in messages.
    name: String,
    pub(crate) geometry: Arc<Geometry>,
    pub(crate) tables: Tables,
    /// The table of the state that is read.
    pub(crate) l1: L1,
    /// Length of the disk in that state.
    pub(crate) disk_len: u64,
    /// First byte of the disk that a cluster at the end of the file does not have.
    cut: Option<u64>,
}

impl Qcow {
    /// Opens an image in its current state.
    pub(crate) fn open(image: Arc<dyn Image>) -> Result<Qcow> {
        let geometry = Arc::new(Geometry::read(&*image)?);
        let (name, l1, disk_len) = (image.name(), geometry.l1, geometry.disk_len);
        let tables = Tables::new(image, Arc::clone(&geometry));
        let cut = tables.find_cut(&l1, disk_len)?;
        Ok(Qcow { name, tables, geometry, l1, disk_len, cut })
    }

    /// Returns what the header says of its own state.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let (name, bits) = (&self.name, self.geometry.incompatible);
        let dirty = format!(
            "{name} was not closed cleanly: its reference counts may be wrong, which reading ignores"
        );
        let corrupt =
            format!("{name} is marked corrupt: parts of the disk may be wrong; qemu-img check examines it");
        let rows = [(DIRTY, dirty), (CORRUPT, corrupt)];
        let cut = self.cut.map(|at| format!("{name}: {}", cut_text(at)));
        rows.into_iter().filter(move |(bit, _)| bits & bit != 0).map(|(_, text)| text).chain(cut)
    }
}

/// Tells of a cluster that was cut short.
pub(crate) fn cut_text(at: u64) -> String {
    format!("the file ends within a cluster: the disk reads as zeros from {at:#x} to the end of it")
}

/// A backing file.
enum Below {
    Qcow(Box<Qcow>),
    /// A disk as it is, of this length.
    Raw(u64),
}

/// Backing files, that of the image first.
pub(crate) struct Chain {
    below: Vec<Below>,
    /// Places of extents: in the image itself, or in all images in a row.
    pub(crate) joined: Option<Arc<JoinedImage>>,
}

impl Chain {
    /// Opens the backing files of an image, which the caller gives in order.
    ///
    /// Errors: `Unsupported` if there is one that is not given, or of a format that is not read;
    /// `Usage` if more are given than there are; as [`Qcow::open`].
    pub(crate) fn open(image: Arc<dyn Image>, top: &Geometry, given: Vec<Arc<dyn Image>>) -> Result<Chain> {
        let given_count = given.len();
        let mut below: Vec<Below> = Vec::new();
        let mut images = vec![image];
        for file in given {
            let above = lowest(top, &below);
            let Some(above) = above.filter(|above| above.backing.is_some()) else {
                let found = below.len();
                return Err(Error::usage(format!(
                    "{given_count} backing files are given, but the image has {found}"
                )));
            };
            images.push(Arc::clone(&file));
            let name = file.name();
            below.push(open_below(file, above).map_err(|error| error.at(format!("backing file {name}")))?);
        }
        if let Some(name) = lowest(top, &below).and_then(|last| last.backing.as_deref()) {
            return Err(not_given(name, below.len()));
        }
        let joined = match below.is_empty() {
            true => None,
            false => Some(Arc::new(JoinedImage::new(images)?)),
        };
        Ok(Chain { below, joined })
    }

    /// Returns the warnings of backing files.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let images = self.below.iter().filter_map(|below| match below {
            Below::Qcow(qcow) => Some(qcow.warnings()),
            Below::Raw(_) => None,
        });
        images.flatten()
    }

    /// Maps a range of the disk of `top`, and what it does not have by its backing files.
    ///
    /// Errors: `Corrupt` for a cluster that cannot be there, `Io`.
    pub(crate) fn map(&self, top: &Qcow, range: Range<u64>, out: &mut Extending<'_>) -> Result<bool> {
        self.map_qcow(top, 0, range, out)
    }

    /// The start of an image in the row of all.
    fn base(&self, index: usize) -> u64 {
        self.joined.as_ref().and_then(|joined| joined.start_of(index)).unwrap_or(0)
    }

    fn map_qcow(
        &self,
        qcow: &Qcow,
        index: usize,
        range: Range<u64>,
        out: &mut Extending<'_>,
    ) -> Result<bool> {
        let base = self.base(index);
        let mut goes_on = true;
        qcow.tables.each(&qcow.l1, range, &mut |part, place| {
            goes_on = match place {
                Place::Unallocated => self.map_below(index, part, out)?,
                Place::Zero => out.hole(part),
                Place::Stored(at) => out.stored(part, base.saturating_add(at)),
                Place::Compressed { at, len, start } => {
                    let block = compressed(&qcow.geometry, base.saturating_add(at), len);
                    out.push(Extent {
                        offset: part.start,
                        len: len_of(&part),
                        from: ExtentFrom::Block { block, start },
                    })
                }
                Place::Fault(fault) => return Err(out.fail(fault)),
            };
            Ok(goes_on)
        })?;
        Ok(goes_on)
    }

    /// Maps a range that the image with this index does not have. The recursion is as deep as the
    /// caller gave backing files.
    fn map_below(&self, index: usize, range: Range<u64>, out: &mut Extending<'_>) -> Result<bool> {
        let below = self.below.get(index);
        let len = match below {
            None => 0,
            Some(Below::Raw(len)) => *len,
            Some(Below::Qcow(qcow)) => qcow.disk_len,
        };
        // A backing file may be shorter than the disk.
        let part = range.start..range.end.min(len);
        let rest = range.start.max(len)..range.end;
        let next = index.saturating_add(1);
        let goes_on = match below {
            _ if part.is_empty() => true,
            Some(Below::Raw(_)) => {
                let at = self.base(next).saturating_add(part.start);
                out.stored(part, at)
            }
            Some(Below::Qcow(qcow)) => self.map_qcow(qcow, next, part, out)?,
            None => true,
        };
        Ok(goes_on && (rest.is_empty() || out.hole(rest)))
    }
}

/// The last image of a chain; `None` if that is a raw disk.
fn lowest<'a>(top: &'a Geometry, below: &'a [Below]) -> Option<&'a Geometry> {
    match below.last() {
        None => Some(top),
        Some(Below::Qcow(qcow)) => Some(&qcow.geometry),
        Some(Below::Raw(_)) => None,
    }
}

fn compressed(geometry: &Geometry, at: u64, stored_len: u32) -> BlockRef {
    BlockRef {
        offset: at,
        stored_len,
        decoded_len: u32_of(geometry.cluster_len()),
        // Sectors are stored whole, so that bytes of others follow the end of the stream.
        decodes_to: DecodedLen::Prefix,
        zero_padded: false,
        algorithm: Some(geometry.algorithm),
    }
}

fn open_below(file: Arc<dyn Image>, above: &Geometry) -> Result<Below> {
    let is_qcow = match above.extensions.backing_format.as_deref() {
        Some("raw") => false,
        Some("qcow2") => true,
        Some(other) => {
            let what = format!("a backing file of the format {other:?}, raw and qcow2 are supported");
            return Err(Error::unsupported("qcow2 image", what)
                .hint("qemu-img convert -O qcow2 IMAGE whole.qcow2 makes an image without backing files"));
        }
        None => {
            let mut magic = [0; MAGIC.len()];
            file.read_at(0, &mut magic)? == magic.len() && magic == MAGIC
        }
    };
    Ok(match is_qcow {
        true => Below::Qcow(Box::new(Qcow::open(file)?)),
        false => Below::Raw(file.len()),
    })
}

fn not_given(name: &[u8], given: usize) -> Error {
    let name = escaped(name);
    let what = format!("what it does not hold lies in its backing file \"{name}\", which is not given");
    let hint = match given {
        0 => "--allow-backing FILE reads it",
        _ => "--allow-backing FILE reads it; give one for each image of the chain, in order",
    };
    Error::unsupported("qcow2 image", what)
        .hint(hint)
        .hint("qemu-img convert -O qcow2 IMAGE whole.qcow2 makes an image without backing files")
}
