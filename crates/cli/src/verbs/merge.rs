//! `packfs merge`: one image of several, without decoding their data.

use crate::args::{Limiting, Texts, source_date_epoch};
use crate::out::listed::words;
use crate::out::report::Out;
use crate::out::{Outcome, json, text};
use owo_colors::OwoColorize;
use packfs::shards::{Plan, open_store, shard_images};
use packfs::{DataPlace, Error, Implied, Merge, Merged, OnConflict, Progress, Result, Timestamp};
use packfs_terminal::work::Answering;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Merge packed images into one without decoding their data
///
/// Images are SquashFS 4.0 or EROFS, all of one format, codec, and block size, by packfs or by
/// other tools. Only metadata is read and written anew; data is moved as it is, and shared with the
/// images where the filesystem can. Directories that several images have are merged. With --from,
/// IMAGE is the folder of a plan, whose shards in STORE are merged.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Images or URLs to merge, later over earlier ones; or a plan
    #[arg(value_name = "IMAGE", required_unless_present = "at")]
    images: Vec<PathBuf>,

    /// Merge the shards of a plan in this store
    ///
    /// A directory, or s3://BUCKET/PREFIX. Each shard is compared with its sidecar before: its
    /// length, and its first and last 64 KiB.
    #[arg(long, value_name = "STORE", conflicts_with_all = ["at", "on_conflict", "apply_whiteouts"])]
    from: Option<PathBuf>,

    /// Image to write; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Mount the root of IMAGE at the path PREFIX
    ///
    /// May be given several times. These images lie over the others, in the order given.
    #[arg(long, value_name = "PREFIX=IMAGE")]
    at: Vec<OsString>,

    /// Treat paths that several images have
    ///
    /// error refuses to merge and names the paths. last keeps what the last image has.
    #[arg(long, value_name = "RULE", default_value = "error", value_parser = words::<OnConflict>())]
    on_conflict: OnConflict,

    /// Apply whiteouts and opaque directories of overlayfs
    ///
    /// Character devices 0:0, empty files with the attribute of a whiteout, and opaque directories
    /// hide what earlier images have. The marks are not in the new image.
    #[arg(long)]
    apply_whiteouts: bool,

    /// Leave the data in the images, as devices of the new one
    ///
    /// The new EROFS image holds metadata only. It is mounted with -o device=IMAGE for each image,
    /// in the order given.
    #[arg(long, conflicts_with = "flat")]
    devices: bool,

    /// Store the images whole, with a device table
    ///
    /// The new EROFS image holds the same as one of --devices followed by the images. It is mounted
    /// like any other.
    #[arg(long)]
    flat: bool,

    /// Write an image for this Linux version, such as 6.18
    ///
    /// For erofs and squashfs. The default is the oldest version that reads all of the images.
    /// erofs images of more than 16 TiB need 6.15, and with --devices 7.1.
    #[arg(long, value_name = "VERSION")]
    kernel: Option<String>,

    /// Sync the image to disk before it is renamed into place
    #[arg(long)]
    sync: bool,

    #[command(flatten)]
    limits: Texts<Limiting>,

    #[command(flatten)]
    answering: Answering,
}

const EXAMPLES: &str = "\
Examples:
  packfs merge base.sqfs app.sqfs -o all.sqfs
  packfs merge base.sqfs --at usr/share=data.sqfs -o all.sqfs
  packfs merge a.erofs b.erofs -o all.erofs --on-conflict last --apply-whiteouts
  packfs merge shards/*.erofs -o index.erofs --devices
  packfs merge plan --from /shared/store -o data.sqfs
  packfs merge plan --from s3://bucket/data -o index.erofs --devices
  packfs merge plan --from s3://bucket/data -o s3://bucket/data.erofs

Exit code 1 if paths are in conflict, 2 if the images have different codecs or
block sizes, 4 if the new image would exceed a limit of its format.";

impl Opts {
    /// Merges.
    pub fn run(self) -> Outcome {
        self.answering.shown(|bars| {
            let merge = self.merge(bars)?;
            let merged = merge.run_with(bars)?;
            bars.finish();
            self.tell(&merged)?;
            Ok(ExitCode::SUCCESS)
        })
    }

    /// Returns the images to merge: those named, or the shards of a plan.
    fn images(&self, progress: &dyn Progress) -> Result<Vec<PathBuf>> {
        match (&self.images[..], &self.from) {
            ([folder], Some(store)) => {
                let plan = Plan::read(folder)?;
                shard_images(&plan, &*open_store(store, false)?, progress)
            }
            (_, Some(_)) => Err(Error::usage("--from takes the folder of one plan instead of images")
                .hint("packfs merge PLAN --from STORE -o IMAGE")),
            ([folder], None) if Plan::is_in(folder) => {
                let error = Error::usage(format!("cannot merge the plan {folder:?}: its store is not given"));
                Err(error.hint("packfs merge PLAN --from STORE -o IMAGE"))
            }
            (images, None) => Ok(images.to_vec()),
        }
    }

    fn merge(&self, progress: &dyn Progress) -> Result<Merge> {
        let mut merge = packfs::merge(self.images(progress)?, &self.output).limits(self.limits.limits()?);
        for typed in &self.at {
            let (prefix, image) = split(typed)?;
            merge = merge.at(prefix, image)?;
        }
        let merge = merge.on_conflict(self.on_conflict);
        let mtime = source_date_epoch::<i64>()?.map(Timestamp::from_seconds);
        let merge = merge.implied(Implied { mtime, ..Implied::default() });
        let merge = if self.apply_whiteouts { merge.apply_whiteouts() } else { merge };
        let merge = if self.sync { merge.sync() } else { merge };
        let merge = match &self.kernel {
            Some(version) => merge.kernel(version),
            None => merge,
        };
        Ok(merge.data(match (self.devices, self.flat) {
            (true, _) => DataPlace::Inputs,
            (_, true) => DataPlace::Flat,
            _ => DataPlace::Image,
        }))
    }

    fn tell(&self, merged: &Merged) -> Result<()> {
        if self.answering.json {
            return json::print(&Document { image: json::Bytes::from(&self.output), merged });
        }
        if self.answering.work.quiet || self.output == Path::new("-") {
            return Ok(());
        }
        let report = &merged.report;
        let (size, moved) = (text::size(report.image_size), text::size(report.moved_bytes));
        let mut out = Out::stdout();
        let (images, nodes) = (text::counted(report.images, "image"), text::count(report.nodes));
        out.line(format_args!(
            "{}: {:?} of {images}: {nodes} inodes, {size}",
            "merged".green().bold(),
            self.output
        ))?;
        let (read, written) = (text::size(merged.read_bytes), text::size(report.metadata_bytes));
        out.line(format_args!("  {moved} of data moved, {read} of metadata read and {written} written"))?;
        if report.replaced > 0 {
            let replaced = text::counted(report.replaced, "name");
            out.line(format_args!("  {replaced} of earlier images replaced or hidden"))?;
        }
        out.finish()
    }
}

/// Splits `PREFIX=IMAGE`.
fn split(typed: &OsStr) -> Result<(&[u8], &Path)> {
    let bytes = typed.as_bytes();
    let found = bytes.iter().position(|&byte| byte == b'=').filter(|&at| at + 1 < bytes.len());
    let at = found.ok_or_else(|| {
        let shown = typed.to_string_lossy();
        Error::usage(format!("--at {shown}: PREFIX=IMAGE is expected"))
            .hint("such as --at usr/share=data.sqfs")
    })?;
    Ok((&bytes[..at], Path::new(OsStr::from_bytes(&bytes[at + 1..]))))
}

/// Document of `merge --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    #[serde(flatten)]
    image: json::Bytes<'a, json::Image>,
    #[serde(flatten)]
    merged: &'a Merged,
}
