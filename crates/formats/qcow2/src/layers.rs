//! An image and its backing files: each provides the data that those before it lack.
//!
//! Owns the chain. The caller determines its length: no path of an image is opened, and a cyclic
//! chain needs one more file than any caller gives.

use crate::disk::{CORRUPT, DIRTY};
use crate::open::{Geometry, L1};
use crate::tables::{Place, Tables};
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{Error, Image, JoinedImage, Result, escaped, len_of, u32_of};
use packfs_format::{Extent, ExtentFrom, Extents, too_many_given, units::*};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

pub(crate) struct Qcow {
    name: String,
    pub(crate) geometry: Arc<Geometry>,
    pub(crate) tables: Tables,
    /// The table of the opened state.
    pub(crate) l1: L1,
    pub(crate) disk_len: u64,
    /// First byte of the disk in a truncated cluster at the end of the file.
    cut: Option<u64>,
}

impl Qcow {
    pub(crate) fn open(image: Arc<dyn Image>) -> Result<Qcow> {
        let geometry = Arc::new(Geometry::read(&*image)?);
        let name = image.name();
        let l1 = geometry.l1;
        let disk_len = geometry.disk_len;
        let tables = Tables::new(image, Arc::clone(&geometry));
        let cut = tables.find_cut(&l1, disk_len)?;
        Ok(Qcow { name, tables, geometry, l1, disk_len, cut })
    }

    /// Warnings about the state in the header.
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

/// Warning about a truncated cluster.
pub(crate) fn cut_text(at: u64) -> String {
    format!("the file ends within a cluster: the disk reads as zeros from {at:#x} to the end of it")
}

enum Below {
    Qcow(Box<Qcow>),
    /// A raw disk of this length.
    Raw(u64),
}

/// Backing files, starting with that of the image.
pub(crate) struct Chain {
    below: Vec<Below>,
    /// Concatenated images; extents are in the image itself, or in this.
    pub(crate) joined: Option<Arc<JoinedImage>>,
}

impl Chain {
    /// Opens the backing files of an image, which the caller gives in order.
    ///
    /// Errors: `Unsupported` if one is not given, or has an unknown format; `Usage` if too many are
    /// given; as [`Qcow::open`].
    pub(crate) fn open(image: Arc<dyn Image>, top: &Geometry, given: Vec<Arc<dyn Image>>) -> Result<Chain> {
        let given_count = given.len();
        let mut below: Vec<Below> = Vec::new();
        let mut images = vec![image];
        for file in given {
            let above = lowest(top, &below);
            let Some(above) = above.filter(|above| above.backing.is_some()) else {
                return Err(too_many_given(given_count, below.len()));
            };
            images.push(Arc::clone(&file));
            let name = file.name();
            below.push(open_below(file, above).map_err(|error| error.at(format!("backing file {name}")))?);
        }
        if let Some(name) = lowest(top, &below).and_then(|last| last.backing.as_deref()) {
            return Err(not_given(name, below.len()));
        }
        let joined = if below.is_empty() { None } else { Some(Arc::new(JoinedImage::new(images)?)) };
        Ok(Chain { below, joined })
    }

    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let images = self.below.iter().filter_map(|below| match below {
            Below::Qcow(qcow) => Some(qcow.warnings()),
            Below::Raw(_) => None,
        });
        images.flatten()
    }

    /// Maps a range of the disk of `top`, using backing files for missing data.
    ///
    /// Errors: `Corrupt` for an invalid cluster, `Io`.
    pub(crate) fn map(
        &self,
        top: &Qcow,
        range: Range<u64>,
        out: &mut Extents<'_>,
    ) -> Result<ControlFlow<()>> {
        self.map_qcow(top, 0, range, out)
    }

    /// Start of an image in the concatenated ones.
    fn base(&self, index: usize) -> u64 {
        self.joined.as_ref().and_then(|joined| joined.start_of(index)).unwrap_or(0)
    }

    fn map_qcow(
        &self,
        qcow: &Qcow,
        index: usize,
        range: Range<u64>,
        out: &mut Extents<'_>,
    ) -> Result<ControlFlow<()>> {
        let base = self.base(index);
        let mut flow = ControlFlow::Continue(());
        qcow.tables.each(&qcow.l1, range, &mut |part, place| {
            flow = match place {
                Place::Unallocated => self.map_below(index, part, out)?,
                Place::Zero => out.hole(part),
                Place::Stored(at) => out.stored(part, base.plus(at)),
                Place::Compressed { at, len, start } => {
                    let block = compressed(&qcow.geometry, base.plus(at), len);
                    out.push(Extent {
                        offset: part.start,
                        len: len_of(&part),
                        from: ExtentFrom::Block { block, start },
                    })
                }
                Place::Fault(fault) => return Err(fault.into()),
            };
            Ok(flow.is_continue())
        })?;
        Ok(flow)
    }

    /// Maps a range that the image with this index lacks. The recursion is as deep as the number of
    /// given backing files.
    fn map_below(&self, index: usize, range: Range<u64>, out: &mut Extents<'_>) -> Result<ControlFlow<()>> {
        let below = self.below.get(index);
        let len = match below {
            None => 0,
            Some(Below::Raw(len)) => *len,
            Some(Below::Qcow(qcow)) => qcow.disk_len,
        };
        // A backing file may be shorter than the disk.
        let part = range.start..range.end.min(len);
        let rest = range.start.max(len)..range.end;
        let next = index.plus(1);
        let flow = match below {
            _ if part.is_empty() => ControlFlow::Continue(()),
            Some(Below::Raw(_)) => {
                let at = self.base(next).plus(part.start);
                out.stored(part, at)
            }
            Some(Below::Qcow(qcow)) => self.map_qcow(qcow, next, part, out)?,
            None => ControlFlow::Continue(()),
        };
        Ok(if flow.is_break() || rest.is_empty() { flow } else { out.hole(rest) })
    }
}

/// Returns the last image of a chain; `None` for a raw disk.
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
        // Whole sectors are stored, so bytes of other clusters follow the end of the stream.
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
        None => crate::MAGIC.is_in(&*file)?,
    };
    Ok(if is_qcow { Below::Qcow(Box::new(Qcow::open(file)?)) } else { Below::Raw(file.len()) })
}

fn not_given(name: &[u8], given: usize) -> Error {
    packfs_format::not_given("qcow2 image", "backing file", &escaped(name).to_string(), given)
        .hint("qemu-img convert -O qcow2 IMAGE whole.qcow2 makes an image without backing files")
}
