//! `packfs ls`: what is in an image.

use crate::args::{ImageInput, patterns};
use crate::out::json::{self, Array, Object};
use crate::out::report::{self, Out, cannot_write};
use crate::out::{Outcome, text};
use packfs::sink::{self, ListOptions, Row, RowFormat};
use packfs::{ResultExt, Timestamp};
use std::ffi::OsString;
use std::process::ExitCode;

/// List what is in an image
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(flatten)]
    input: ImageInput,

    /// Directories and files to list, as paths from the root of the image; * ? [a-z] stay within a
    /// name, ** spans any number of directories
    #[arg(value_name = "PATHS")]
    paths: Vec<OsString>,

    /// Show mode, links, owner, size and time
    #[arg(short, long)]
    long: bool,

    /// List all below the directories, too
    #[arg(short = 'R', long)]
    recursive: bool,

    /// List directories themselves, not what is in them
    #[arg(short, long)]
    directory: bool,

    /// Print names as they are, without escaping control characters
    #[arg(long)]
    raw: bool,

    /// End names with NUL instead of a newline, for xargs -0; implies --raw
    #[arg(short = '0', long)]
    null: bool,

    /// Print an array of JSON objects
    #[arg(long, conflicts_with_all = ["raw", "null", "long"])]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  packfs ls root.sqfs                      what is in the root directory
  packfs ls -lR root.sqfs                  everything, in long form
  packfs ls -l root.sqfs usr/bin '**/*.so' a directory, and shared libraries anywhere
  packfs ls -R -0 root.sqfs | xargs -0n1   names of any bytes, for scripts
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
            let listed = sink::list(&**volume, &options, &report::Told, &mut |row| array.push(object(&row)));
            array.finish()?;
            listed?;
        } else {
            let format = self.format(&options);
            let mut out = Out::stdout();
            let listed = sink::list(&**volume, &options, &report::Told, &mut |row| {
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

/// How many seconds east of UTC this machine's clock is at a time.
fn offset_at(time: Timestamp) -> i32 {
    text::zoned(time).map_or(0, |zoned| zoned.offset().seconds())
}

/// The JSON object of a row, also part of what `stat` prints.
pub fn object(row: &Row) -> Object {
    let mut object = Object::new();
    json::put_bytes(&mut object, "path", row.path.as_bytes());
    object.insert("type".into(), json::type_word(row.file_type).into());
    object.insert("mode".into(), format!("{:04o}", row.meta.mode).into());
    object.insert("uid".into(), row.meta.owner.uid.into());
    object.insert("gid".into(), row.meta.owner.gid.into());
    object.insert("size".into(), row.len.into());
    object.insert("mtime".into(), row.meta.mtime.seconds.into());
    object.insert("mtime_nanos".into(), row.meta.mtime.nanos.into());
    object.insert("links".into(), row.links.into());
    object.insert("inode".into(), row.number.into());
    object.insert("has_xattrs".into(), row.has_xattrs.into());
    if let Some(device) = row.device {
        object.insert("device".into(), json::json!({"major": device.major, "minor": device.minor}));
    }
    if let Some(target) = &row.target {
        json::put_bytes(&mut object, "target", target);
    }
    object
}
