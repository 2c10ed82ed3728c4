//! `packfs ls`: what is in an image.

use crate::args::{ImageInput, patterns};
use crate::out::json::{self, Array};
use crate::out::report::{self, Out, cannot_write};
use crate::out::{Outcome, text};
use packfs::sink::{self, ListOptions, Row, RowFormat};
use packfs::{ImagePath, ResultExt, Timestamp};
use serde::Serialize;
use std::ffi::OsString;
use std::process::ExitCode;

/// List the contents of an image
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(flatten)]
    input: ImageInput,

    /// Paths to list, from the root of the image
    ///
    /// * ? [a-z] match within a name, ** matches any number of directories.
    #[arg(value_name = "PATHS")]
    paths: Vec<OsString>,

    /// Show mode, links, owner, size and time
    #[arg(short, long)]
    long: bool,

    /// List directories recursively
    #[arg(short = 'R', long)]
    recursive: bool,

    /// List directories themselves, not their contents
    #[arg(short, long)]
    directory: bool,

    /// Do not escape control characters in names
    #[arg(long)]
    raw: bool,

    /// End names with NUL, for xargs -0; implies --raw
    #[arg(short = '0', long)]
    null: bool,

    /// Print an array of JSON objects
    #[arg(long, conflicts_with_all = ["raw", "null", "long"])]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  packfs ls root.sqfs                        the root directory
  packfs ls -lR root.sqfs                    everything, in long form
  packfs ls -l root.sqfs usr/bin '**/*.so'   a directory, and shared libraries
  packfs ls -R -0 root.sqfs | xargs -0n1     names with any bytes, for scripts
  packfs ls -R --json root.sqfs | jq '.[] | select(.size > 1000000) | .path'";

impl Opts {
    /// Lists.
    pub fn run(self) -> Outcome {
        let opened = self.input.open(1)?;
        let options = ListOptions {
            paths: patterns(&self.paths)?,
            recursive: self.recursive,
            directory_itself: self.directory,
            limits: opened.limits(),
        };
        let volume = opened.volume();
        if self.json {
            let mut array = Array::document();
            let listed = sink::list(&**volume, &options, &report::PrintWarnings, &mut |row| {
                array.push(&Entry::new(&row))
            });
            array.finish()?;
            listed?;
        } else {
            let format = self.format(&options);
            let mut out = Out::stdout();
            let listed = sink::list(&**volume, &options, &report::PrintWarnings, &mut |row| {
                format.write(&row, out.writer()).or_io(cannot_write)
            });
            // What was listed before an error is printed before the error is.
            out.finish()?;
            listed?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn format(&self, options: &ListOptions) -> RowFormat {
        RowFormat {
            long: self.long,
            // A name alone would not tell which of several directories it is in.
            full_path: self.recursive || self.directory || !options.paths.is_empty(),
            raw: self.raw,
            nul: self.null,
            offset_at: Some(offset_at),
        }
    }
}

/// Returns the local offset from UTC at a time, in seconds to the east.
fn offset_at(time: Timestamp) -> i32 {
    text::zoned(time).map_or(0, |zoned| zoned.offset().seconds())
}

/// Entry of `ls --json`, and part of one of `stat --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Entry<'a> {
    #[serde(flatten)]
    path: &'a ImagePath,
    /// `file`, `directory`, `symlink`, `block_device`, `char_device`, `fifo` or `socket`.
    r#type: &'static str,
    /// Permissions in octal digits, such as `0755`.
    mode: String,
    /// Owner.
    uid: u32,
    /// Group.
    gid: u32,
    /// Length of a file or of a symlink's target, else 0.
    size: u64,
    /// Time of the last modification, in seconds since 1970.
    mtime: i64,
    /// Nanoseconds after `mtime`.
    mtime_nanos: u32,
    /// Link count as stored.
    links: u32,
    /// Inode number as stored.
    inode: u64,
    /// True if there are extended attributes.
    has_xattrs: bool,
    /// Number of a device node.
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<json::Device>,
    #[serde(flatten)]
    target: Option<json::Bytes<'a, Target>>,
}

json::byte_key!(Target, "target", "Target of a symlink.");

impl<'a> Entry<'a> {
    /// The entry of a row.
    pub fn new(row: &'a Row) -> Self {
        Entry {
            path: &row.path,
            r#type: json::type_word(row.file_type),
            mode: format!("{:04o}", row.meta.mode),
            uid: row.meta.owner.uid,
            gid: row.meta.owner.gid,
            size: row.len,
            mtime: row.meta.mtime.seconds,
            mtime_nanos: row.meta.mtime.nanos,
            links: row.links,
            inode: row.number,
            has_xattrs: row.has_xattrs,
            device: row.device.map(json::Device::from),
            target: row.target.as_deref().map(json::Bytes::new),
        }
    }
}
