//! Places of a file's bytes in an image: `packfs stat --extents`.

use crate::out::json::{Value, json};
use crate::out::report::Out;
use crate::out::text;
use owo_colors::OwoColorize;
use packfs::sink::Row;
use packfs::{Error, Extent, ExtentFrom, FileType, InodeId, Limit, Opened, Result};
use std::ops::ControlFlow;

/// Memory that an extent takes as JSON, in bytes, estimated.
const JSON_LEN: u64 = 512;

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

/// The same as an array of objects.
pub fn json(opened: &Opened, id: InodeId, row: &Row) -> Result<Value> {
    let (mut objects, limits) = (Vec::new(), opened.limits());
    visit(opened, id, row, &mut |extent| {
        objects.push(object(extent));
        let memory = JSON_LEN.saturating_mul(objects.len() as u64);
        limits.check(&format!("{:?}", row.path), Limit::Memory, memory)
    })?;
    Ok(Value::Array(objects))
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

fn object(extent: Extent) -> Value {
    let (from, length) = (extent.offset, extent.len);
    match extent.from {
        ExtentFrom::Hole => json!({"from": from, "length": length, "hole": true}),
        ExtentFrom::Stored(offset) => {
            json!({"from": from, "length": length, "offset": offset, "stored_bytes": length, "codec": "none"})
        }
        ExtentFrom::Block { block, start } => json!({
            "from": from,
            "length": length,
            "offset": block.offset,
            "stored_bytes": block.stored_len,
            "codec": block.algorithm.map_or("none", |algorithm| algorithm.name()),
            "block_start": start,
        }),
    }
}
