//! Places of a file's bytes in an image: `packfs stat --extents`.

use crate::out::report::Out;
use crate::out::text;
use owo_colors::OwoColorize;
use packfs::sink::Row;
use packfs::{Error, Extent, ExtentFrom, FileType, InodeId, Limit, Opened, Result};
use serde::Serialize;
use std::ops::ControlFlow;

/// Memory that an extent takes, in bytes.
const PART_LEN: u64 = size_of::<Part>() as u64;

/// Prints a table, an extent a line; nothing of anything but a file.
pub fn print(opened: &Opened, id: InodeId, row: &Row, out: &mut Out) -> Result<()> {
    let mut has_heading = false;
    visit(opened, id, row, &mut |extent| {
        if !has_heading {
            has_heading = true;
            out.line(format_args!("{}", heading().bold()))?;
        }
        out.line(line(extent))
    })
}

/// Returns the same for JSON.
pub fn parts(opened: &Opened, id: InodeId, row: &Row) -> Result<Vec<Part>> {
    let (mut parts, limits) = (Vec::new(), opened.limits());
    visit(opened, id, row, &mut |extent| {
        parts.push(Part::from(extent));
        let memory = PART_LEN.saturating_mul(parts.len() as u64);
        limits.check(&format!("{:?}", row.path), Limit::Memory, memory)
    })?;
    Ok(parts)
}

/// Calls `each` for every extent of a file, in its order, until that fails.
fn visit(opened: &Opened, id: InodeId, row: &Row, each: &mut dyn FnMut(Extent) -> Result<()>) -> Result<()> {
    if row.file_type != FileType::File {
        return Ok(());
    }
    let mut failed: Option<Error> = None;
    opened.volume().extents(id, 0..row.len, &mut |extent| match each(extent) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    })?;
    failed.map_or(Ok(()), Err)
}

fn heading() -> String {
    format!("{:>14}  {:>14}  {:>14}  {:>12}  codec", "from", "to", "offset", "stored")
}

fn line(extent: Extent) -> String {
    let (from, to) = (text::count(extent.offset), text::count(extent.offset + extent.len));
    let place = |offset: u64, stored: u64, codec: &str| {
        format!("{from:>14}  {to:>14}  {:>14}  {:>12}  {codec}", format!("{offset:#x}"), text::count(stored))
    };
    match extent.from {
        ExtentFrom::Hole => format!("{from:>14}  {to:>14}  {:>14}  {:>12}  hole", "-", 0),
        ExtentFrom::Stored(offset) => place(offset, extent.len, "none"),
        ExtentFrom::Block { block, start } => {
            let codec = block.algorithm.map_or("none", |algorithm| algorithm.name());
            let line = place(block.offset, block.stored_len.into(), codec);
            // Such a block holds data of other files, or is read in part.
            if start > 0 {
                format!("{line}, from byte {} of the block", text::count(start.into()))
            } else {
                line
            }
        }
    }
}

/// Part of a file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Part {
    /// Offset in the file.
    from: u64,
    /// Length in the file.
    length: u64,
    /// True for a hole, which has none of the keys below.
    #[serde(skip_serializing_if = "Option::is_none")]
    hole: Option<bool>,
    /// Offset in the image; of data on devices, in the concatenation of image and devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    /// Length in the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_bytes: Option<u64>,
    /// Codec, `none` for data stored uncompressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    codec: Option<&'static str>,
    /// Offset of the part in the decoded block.
    #[serde(skip_serializing_if = "Option::is_none")]
    block_start: Option<u32>,
}

impl From<Extent> for Part {
    fn from(extent: Extent) -> Self {
        let part = Part {
            from: extent.offset,
            length: extent.len,
            hole: None,
            offset: None,
            stored_bytes: None,
            codec: None,
            block_start: None,
        };
        match extent.from {
            ExtentFrom::Hole => Part { hole: Some(true), ..part },
            ExtentFrom::Stored(offset) => {
                Part { offset: Some(offset), stored_bytes: Some(extent.len), codec: Some("none"), ..part }
            }
            ExtentFrom::Block { block, start } => Part {
                offset: Some(block.offset),
                stored_bytes: Some(block.stored_len.into()),
                codec: Some(block.algorithm.map_or("none", |algorithm| algorithm.name())),
                block_start: Some(start),
                ..part
            },
        }
    }
}
