//! Positions of chunks on devices, and of extents in chunks.

use super::taken;
use crate::corruption::Corruption;
use crate::disk::{kind, tree};
use crate::fs::Fs;
use packfs_core::{Result, range_at};
use packfs_format::check::Report;

/// Checks that stripes and extents are within their devices and chunks, and do not overlap.
pub(super) fn check(fs: &Fs, report: &mut Report<'_>) -> Result<()> {
    stripes(fs, report);
    extents(fs, report)?;
    sums(fs, report);
    Ok(())
}

/// Checks that each sector has one checksum.
fn sums(fs: &Fs, report: &mut Report<'_>) {
    let Some(sums) = &fs.sums else { return };
    let mut end = 0;
    // Damaged blocks were reported.
    let items = sums.items_of(&fs.store, tree::CHECKSUM_OBJECT, kind::EXTENT_CSUM, 0).flatten();
    for item in items {
        let range = fs.sums_in(&item);
        if range.start < end {
            report.error(item.place(), Corruption::SumPlace { at: range.start });
        }
        end = range.end;
        if report.is_full() {
            break;
        }
    }
}

fn stripes(fs: &Fs, report: &mut Report<'_>) {
    let mut places = Vec::new();
    for chunk in fs.store.chunks.iter() {
        let len = chunk.stripe_len();
        for stripe in &chunk.stripes {
            let place = range_at(stripe.at, len);
            let device = fs.devices.iter().find(|device| device.id == stripe.device);
            match device {
                None => {
                    let fault = format_args!("is on device {}, which is not listed", stripe.device);
                    report.error(format_args!("chunk at {:#x}", chunk.at), fault);
                }
                Some(device) if place.end > device.len => {
                    let fault = format_args!(
                        "ends at {:#x} of device {}, which ends at {:#x}",
                        place.end, device.id, device.len
                    );
                    report.error(format_args!("chunk at {:#x}", chunk.at), fault);
                }
                Some(_) => {}
            }
            places.push((stripe.device, place.start, place.end, chunk.at));
        }
    }
    places.sort_unstable();
    for pair in places.windows(2) {
        if let [(device, _, end, _), (next, start, _, at)] = pair
            && device == next
            && start < end
        {
            let fault = format_args!("overlaps another on device {device} at {start:#x}");
            report.error(format_args!("chunk at {at:#x}"), fault);
        }
    }
}

fn extents(fs: &Fs, report: &mut Report<'_>) -> Result<()> {
    let Some(root) = taken(report, "tree of extents", fs.root(tree::EXTENT))? else { return Ok(()) };
    let node_len = u64::from(fs.store.super_block().node_len);
    let mut end = 0;
    for item in root.tree.all(&fs.store) {
        if report.is_full() {
            break;
        }
        // Damaged blocks were reported.
        let Ok(item) = item else { continue };
        let len = match item.key.kind {
            kind::EXTENT_ITEM => item.key.offset,
            kind::METADATA_ITEM => node_len,
            _ => continue,
        };
        let extent = range_at(item.key.object, len);
        if extent.start < end {
            report.error(item.place(), format_args!("overlaps the extent before, which ends at {end:#x}"));
        }
        if fs.store.chunks.of(extent.start).is_ok_and(|chunk| chunk.range().end < extent.end) {
            report.error(item.place(), "ends after its chunk");
        }
        end = end.max(extent.end);
    }
    Ok(())
}
