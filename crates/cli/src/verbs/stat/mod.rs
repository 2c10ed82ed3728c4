//! `packfs stat`: all that an image says of single files.

mod extents;

use super::ls;
use crate::args::ImageInput;
use crate::out::json;
use crate::out::report::Out;
use crate::out::{Outcome, text};
use packfs::sink::Row;
use packfs::{ExtentFrom, ImagePath, InodeId, InodeKind, Meter, Opened, Result, Xattrs, escaped};
use serde::Serialize;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

/// Show the metadata of single files
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(flatten)]
    input: ImageInput,

    /// Files of any type, as paths from the root of the image
    ///
    /// A symbolic link at the end of a path is not followed.
    #[arg(value_name = "PATHS", required = true)]
    paths: Vec<OsString>,

    /// Follow symbolic links at the end of paths
    #[arg(short = 'L', long)]
    dereference: bool,

    /// List the extents of each file
    ///
    /// Range in the file, offset and length in the image, and codec.
    #[arg(long)]
    extents: bool,

    /// Print an array of JSON objects
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  packfs stat root.sqfs usr/bin/env
  packfs stat root.sqfs /                   the root directory
  packfs stat --extents root.sqfs usr/bin/env
  packfs stat --json root.sqfs dev/null | jq '.[0].device'";

/// Storage of the bytes of a file.
#[derive(Clone, Copy, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Stored {
    /// Length of its blocks in the image; a block that is shared with other files counts in full.
    #[serde(rename = "stored_bytes")]
    stored_len: u64,
    /// Blocks and runs of stored bytes that hold a file's data.
    blocks: u64,
    /// Length of its holes.
    #[serde(rename = "hole_bytes")]
    hole_len: u64,
}

struct Status {
    id: InodeId,
    row: Row,
    xattrs: Xattrs,
    stored: Option<Stored>,
}

impl Opts {
    /// Shows.
    pub fn run(self) -> Outcome {
        let opened = self.input.open(1)?;
        let mut all = Vec::new();
        for typed in &self.paths {
            let path = ImagePath::parse(typed.as_bytes())?;
            let id = if self.dereference { opened.resolve(&path)? } else { opened.find(&path)? };
            all.push(status(&opened, path, id)?);
        }
        if self.json {
            let mut array = json::Array::document();
            for status in &all {
                let extents =
                    if self.extents { Some(extents::parts(&opened, status.id, &status.row)?) } else { None };
                array.push(&Document::new(status, extents))?;
            }
            array.finish()?;
        } else {
            let mut out = Out::stdout();
            for (index, status) in all.iter().enumerate() {
                if index > 0 {
                    out.line("")?;
                }
                print(status, &mut out)?;
                if self.extents {
                    extents::print(&opened, status.id, &status.row, &mut out)?;
                }
            }
            out.finish()?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn status(opened: &Opened, path: ImagePath, id: InodeId) -> Result<Status> {
    let volume = opened.volume();
    let mut meter = Meter::new(opened.limits(), format!("{path:?}"));
    let inode = volume.inode(id)?;
    let target = match inode.kind {
        InodeKind::Symlink => Some(volume.read_link(id)?),
        _ => None,
    };
    let stored = match inode.kind {
        InodeKind::File { len } => Some(stored(opened, id, len)?),
        _ => None,
    };
    meter.target(target.as_ref().map_or(0, Vec::len))?;
    let xattrs = volume.xattrs(id)?;
    meter.xattrs(&xattrs)?;
    Ok(Status { id, row: Row::new(path, id, &inode, target), xattrs, stored })
}

fn stored(opened: &Opened, id: InodeId, len: u64) -> Result<Stored> {
    let mut stored = Stored::default();
    opened.volume().extents(id, 0..len, &mut |extent| {
        match extent.from {
            ExtentFrom::Hole => stored.hole_len = stored.hole_len.saturating_add(extent.len),
            ExtentFrom::Stored(_) => {
                stored.blocks += 1;
                stored.stored_len = stored.stored_len.saturating_add(extent.len);
            }
            ExtentFrom::Block { block, .. } => {
                stored.blocks += 1;
                stored.stored_len = stored.stored_len.saturating_add(u64::from(block.stored_len));
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(stored)
}

fn print(status: &Status, out: &mut Out) -> Result<()> {
    let row = &status.row;
    out.line(format_args!("path:    {}", row.path))?;
    if let Some(target) = &row.target {
        out.line(format_args!("target:  {}", escaped(target)))?;
    }
    out.line(format_args!("type:    {}", row.file_type.word()))?;
    if let Some(device) = row.device {
        out.line(format_args!("device:  {}, {}", device.major, device.minor))?;
    }
    out.line(format_args!("size:    {}", text::counted(row.len, "byte")))?;
    out.line(format_args!("mode:    {:04o} {}", row.meta.mode, row.mode_text()))?;
    out.line(format_args!("owner:   {}/{}", row.meta.owner.uid, row.meta.owner.gid))?;
    out.line(format_args!("time:    {}", text::long_time(row.meta.mtime)))?;
    out.line(format_args!("links:   {}", row.links))?;
    out.line(format_args!("inode:   {}", row.number))?;
    if let Some(stored) = status.stored {
        let blocks = text::counted(stored.blocks, "block");
        out.line(format_args!("stored:  {} in {blocks}", text::counted(stored.stored_len, "byte")))?;
        if stored.hole_len > 0 {
            out.line(format_args!("holes:   {}", text::counted(stored.hole_len, "byte")))?;
        }
    }
    for (name, value) in &status.xattrs {
        out.line(format_args!("xattr:   {} = {}", escaped(name), xattr_text(value)))?;
    }
    Ok(())
}

/// A value as text in quotes, or in hexadecimal if it is no text.
fn xattr_text(value: &[u8]) -> String {
    let (value, rest) = text::beginning(value);
    match std::str::from_utf8(value) {
        Ok(text) if !text.contains(char::is_control) => format!("\"{}\"{rest}", escaped(value)),
        _ => format!("0x{}{rest}", packfs::to_hex(value)),
    }
}

/// Entry of `stat --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    #[serde(flatten)]
    entry: ls::Entry<'a>,
    /// Extended attributes.
    xattrs: Vec<Xattr<'a>>,
    #[serde(flatten)]
    stored: Option<Stored>,
    /// With `--extents`: the parts of a file in their order, empty for anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    extents: Option<Vec<extents::Part>>,
}

/// An extended attribute.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Xattr<'a> {
    #[serde(flatten)]
    name: json::Bytes<'a, json::Name>,
    #[serde(flatten)]
    value: json::Bytes<'a, json::XattrValue>,
}

impl<'a> Document<'a> {
    fn new(status: &'a Status, extents: Option<Vec<extents::Part>>) -> Self {
        let xattrs = status.xattrs.iter();
        Document {
            entry: ls::Entry::new(&status.row),
            xattrs: xattrs
                .map(|(name, value)| Xattr { name: json::Bytes::new(name), value: json::Bytes::new(value) })
                .collect(),
            stored: status.stored,
            extents,
        }
    }
}
