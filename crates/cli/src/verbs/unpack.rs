//! `packfs unpack`: an image into a directory.

use crate::args::{ImageInput, patterns};
use crate::out::json;
use crate::out::report::{self, Out};
use crate::out::{Outcome, text};
use clap::ValueEnum;
use packfs::sink::{Existing, OwnerPolicy, UnpackOptions, UnpackReport};
use packfs::{Error, ErrorKind, Result, ResultExt};
use packfs_terminal::work::Work;
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::ExitCode;

/// Unpack an image, or parts of it, into a directory
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(flatten)]
    input: ImageInput,

    /// Directory to unpack into
    ///
    /// Created if missing. Nothing is ever written outside of it.
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Paths to unpack, with everything below them
    ///
    /// * ? [a-z] match within a name, ** matches any number of directories.
    #[arg(value_name = "PATHS")]
    paths: Vec<OsString>,

    /// Set the treatment of existing files in DIR
    #[arg(long, value_name = "POLICY", value_enum, default_value_t)]
    existing: ExistingWord,

    /// Replace existing files: --existing replace
    #[arg(short, long, conflicts_with = "existing")]
    force: bool,

    /// Set the owner of unpacked files
    #[arg(long, value_name = "POLICY", value_enum, default_value_t)]
    owner: OwnerWord,

    /// Drop extended attributes
    #[arg(long)]
    no_xattrs: bool,

    /// Drop modification times
    #[arg(long)]
    no_times: bool,

    /// Skip device nodes
    #[arg(long)]
    no_devices: bool,

    /// Fail at the end if anything was not restored
    #[arg(long)]
    strict: bool,

    /// Stop at the first file that cannot be decoded
    ///
    /// Without it the file is left out, and unpacking continues.
    #[arg(long)]
    fail_fast: bool,

    /// Wait until everything is on the disk
    #[arg(long)]
    sync: bool,

    /// Print the summary as a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    work: Work,
}

const EXAMPLES: &str = "\
Examples:
  packfs unpack root.sqfs out
  packfs unpack root.sqfs out etc 'usr/lib/**/*.so'   some paths
  packfs unpack root.sqfs out --existing merge        into a full directory
  sudo packfs unpack root.sqfs rootfs --strict        owners, devices and all";

/// Words for [`Existing`].
#[derive(Clone, Copy, Default, ValueEnum)]
enum ExistingWord {
    /// DIR must not exist or be empty
    #[default]
    Refuse,
    /// Add to directories; fail before writing if another file exists
    Merge,
    /// Add to directories, and replace other existing files
    Replace,
    /// Add to directories, and keep other existing files
    Skip,
    /// Add to directories, and replace only files older than in the image
    KeepNewer,
}

/// Words for [`OwnerPolicy`].
#[derive(Clone, Copy, Default, ValueEnum)]
enum OwnerWord {
    /// Owner in the image if run as root, else the current user
    #[default]
    Auto,
    /// The owner in the image; refused ones are counted
    Image,
    /// The current user
    Current,
}

/// Tells what to do about files that exist.
fn hint_at_existing(error: Error) -> Error {
    match error.kind() {
        ErrorKind::AlreadyExists => {
            error.hint("use a new directory, or --existing merge, replace, skip or keep-newer")
        }
        _ => error,
    }
}

impl Opts {
    /// Unpacks.
    pub fn run(self) -> Outcome {
        let options = self.options()?;
        if self.input.sandbox.is_wanted() {
            self.make_dir()?;
        }
        let opened = self.input.open_reaching(self.work.jobs(), |sandbox| sandbox.fill(&self.dir))?;
        self.work.shown(self.json, |bars| {
            let report = opened.unpack_with(&self.dir, &options, bars).map_err(hint_at_existing)?;
            bars.finish();
            self.tell(&report)?;
            Ok(ExitCode::SUCCESS)
        })
    }

    /// Makes the directory before the way to it is closed, unless the image cannot be read anyway.
    fn make_dir(&self) -> Result<()> {
        let image = &self.input.image;
        if packfs::is_reference(image) {
            // The sandbox refuses it.
            return Ok(());
        }
        std::fs::metadata(image).or_io(|| format!("cannot read {image:?}"))?;
        match std::fs::DirBuilder::new().mode(0o700).create(&self.dir) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(Error::io(format!("cannot create directory {:?}", self.dir), error))
            }
            _ => Ok(()),
        }
    }

    fn options(&self) -> Result<UnpackOptions> {
        let existing = match (self.force, self.existing) {
            (true, _) | (_, ExistingWord::Replace) => Existing::Replace,
            (_, ExistingWord::Refuse) => Existing::Refuse,
            (_, ExistingWord::Merge) => Existing::Merge,
            (_, ExistingWord::Skip) => Existing::Skip,
            (_, ExistingWord::KeepNewer) => Existing::KeepNewer,
        };
        let owner = match self.owner {
            OwnerWord::Auto => OwnerPolicy::Auto,
            OwnerWord::Image => OwnerPolicy::Image,
            OwnerWord::Current => OwnerPolicy::Current,
        };
        Ok(UnpackOptions {
            paths: patterns(&self.paths)?,
            existing,
            owner,
            xattrs: !self.no_xattrs,
            times: !self.no_times,
            devices: !self.no_devices,
            strict: self.strict,
            fail_fast: self.fail_fast,
            sync: self.sync,
        })
    }

    fn tell(&self, report: &UnpackReport) -> Result<()> {
        if self.json {
            return json::print(report);
        }
        for row in &report.not_restored {
            report::warning(&row.to_string());
        }
        if self.work.quiet {
            return Ok(());
        }
        let mut out = Out::stdout();
        out.line(summary(report))?;
        out.finish()
    }
}

/// `12 files (3.4 MiB), 3 directories, 1 symlink`.
fn summary(report: &UnpackReport) -> String {
    let mut parts = vec![
        format!("{} ({})", text::counted(report.files, "file"), text::size(report.file_bytes)),
        match report.directories {
            1 => "1 directory".to_owned(),
            count => format!("{} directories", text::count(count)),
        },
    ];
    for (count, noun) in [
        (report.symlinks, "symlink"),
        (report.special_files, "special file"),
        (report.hard_links, "hard link"),
    ] {
        if count > 0 {
            parts.push(text::counted(count, noun));
        }
    }
    let mut line = format!("unpacked {}", parts.join(", "));
    for (count, what) in [(report.skipped, "existing ones kept"), (report.not_created, "not created")] {
        if count > 0 {
            line += &format!("; {} {what}", text::count(count));
        }
    }
    line
}
