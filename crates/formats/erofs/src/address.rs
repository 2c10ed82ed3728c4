//! The address space of an image: its first file, the further devices after it, and the decoded
//! metabox after those.
//!
//! Owns the translation of block numbers to addresses. Invariant: a returned range is within one
//! file. Every file starts at a multiple of the largest block, so that offsets within a block do
//! not change.

use crate::corruption::{Allowed, Place};
use crate::open::Geometry;
use packfs_core::{Error, Fetched, Image, Result, usize_of};
use packfs_format::units::*;
use std::ops::Range;
use std::sync::Arc;

/// Alignment of files: the largest block.
const ALIGN: u64 = 1 << 16;

struct Part {
    start: u64,
    image: Arc<dyn Image>,
}

/// The first file, followed by the further devices.
pub(crate) struct Joined {
    parts: Vec<Part>,
    end: u64,
}

impl Joined {
    /// Errors: `Usage` if the image lists another number of devices than are given.
    pub(crate) fn new(
        geometry: &Geometry,
        image: Arc<dyn Image>,
        devices: Vec<Arc<dyn Image>>,
    ) -> Result<Joined> {
        if !devices.is_empty() && devices.len() != geometry.devices.len() {
            let (given, listed) = (devices.len(), geometry.devices.len());
            let text = format!("{given} further devices are given, but the image lists {listed}");
            return Err(
                Error::usage(text).hint("give all of them, in the order in which the image lists them")
            );
        }
        let mut joined = Joined { parts: Vec::new(), end: 0 };
        for image in std::iter::once(image).chain(devices) {
            let end = joined.end.checked_next_multiple_of(ALIGN);
            let start = end.ok_or_else(|| Error::usage("the devices together are longer than any image"))?;
            joined.end = start
                .checked_add(image.len())
                .filter(|&end| end <= i64::MAX as u64)
                .ok_or_else(|| Error::usage("the devices together are longer than any image"))?;
            joined.parts.push(Part { start, image });
        }
        Ok(joined)
    }

    pub(crate) fn end(&self) -> u64 {
        self.end.next_multiple_of(ALIGN)
    }

    /// True if the listed devices are given as separate files.
    pub(crate) fn has_devices(&self) -> bool {
        self.parts.len() > 1
    }

    /// Reads across all files; gaps between them read as zeros.
    pub(crate) fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if let [only] = &*self.parts {
            return only.image.read_at(offset, buf);
        }
        let len = usize_of(left(self.end, offset)).min(buf.len());
        let Some(buf) = buf.get_mut(..len) else { return Ok(0) };
        buf.fill(0);
        for part in &self.parts {
            let from = left(offset, part.start);
            let Some(rest) = buf.get_mut(usize_of(left(part.start, offset))..) else { continue };
            let len = usize_of(left(part.image.len(), from)).min(rest.len());
            let (own, _) = rest.split_at_mut(len);
            if !own.is_empty() {
                part.image.read_exact_at(from, own)?;
            }
        }
        Ok(len)
    }

    pub(crate) fn will_read(&self, ranges: &[Range<u64>]) {
        for part in &self.parts {
            let own = |at: u64| left(at, part.start).min(part.image.len());
            let own: Vec<_> = ranges.iter().map(|range| own(range.start)..own(range.end)).collect();
            part.image.will_read(&own);
        }
    }

    pub(crate) fn fetched(&self) -> Option<Fetched> {
        self.parts.first().and_then(|part| part.image.fetched())
    }

    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.image.check_unchanged())
    }

    pub(crate) fn name(&self) -> String {
        self.parts.first().map(|part| part.image.name()).unwrap_or_default()
    }

    /// Returns the address of `len` bytes on a device: device 0 is the address space of the image
    /// itself, others are rows of the device table.
    ///
    /// Errors: `Corrupt` for an unknown device or range; `Failed` if the device is not given.
    pub(crate) fn locate(
        &self,
        geometry: &Geometry,
        device: u16,
        address: u64,
        len: u64,
        place: Place,
    ) -> Result<u64> {
        let count = geometry.devices.len() as u64;
        // Enough bits for the largest number.
        let mask = count.plus(1).next_power_of_two().minus(1);
        let device = u64::from(device) & mask;
        if device > count {
            return Err(place.figure("device", device, Allowed::AtMost(count)));
        }
        let (index, address) = match (device, self.has_devices()) {
            (0, false) => (0, Some(address)),
            (0, true) => unified(geometry, address),
            (_, true) => (usize_of(device), Some(address)),
            // One file contains all devices, each where the table maps it.
            (_, false) => {
                let row = usize_of(device).checked_sub(1).and_then(|row| geometry.devices.get(row));
                let uniaddr = row.map_or(0, |row| row.uniaddr);
                if uniaddr == 0 {
                    return Err(not_given(place, device));
                }
                (0, geometry.bytes_of(uniaddr).and_then(|start| start.checked_add(address)))
            }
        };
        let part = self.parts.get(index).filter(|part| {
            address.and_then(|address| address.checked_add(len)).is_some_and(|end| end <= part.image.len())
        });
        match (part, address) {
            (Some(part), Some(address)) => Ok(part.start.plus(address)),
            _ if !self.has_devices() && !geometry.devices.is_empty() => Err(not_given(place, device.max(1))),
            _ => {
                let end = self.parts.get(index).map_or(0, |part| part.image.len());
                let start = address.unwrap_or(u64::MAX);
                Err(place.outside("the image", start, len, end))
            }
        }
    }
}

/// Returns the device of an address of the whole space, and the address on it.
fn unified(geometry: &Geometry, address: u64) -> (usize, Option<u64>) {
    for (part, device) in (1..).zip(&geometry.devices).filter(|(_, device)| device.uniaddr != 0) {
        let start = geometry.bytes_of(device.uniaddr);
        let within = start.and_then(|start| address.checked_sub(start));
        if within.is_some() && within < geometry.bytes_of(device.blocks) {
            return (part, within);
        }
    }
    (0, Some(address))
}

fn not_given(place: Place, device: u64) -> Error {
    let text = format!("{place}: its data is on device {device} of the image, which is not given");
    Error::failed(text).hint("give the files that the image lists as its devices, in that order (--device)")
}
