//! `packfs composefs`: images of metadata, with contents as objects in a directory.

use crate::args::{ImageInput, Limiting, Registry, Shaping, Texts};
use crate::out::report::Out;
use crate::out::{Outcome, Output, json, report, text};
use packfs::composefs::{ComposefsOptions, ComposefsReport, Made, Versions};
use packfs::{Error, OpenOptions, Progress, Result, ResultExt, escaped};
use packfs_terminal::work::Answering;
use serde::Serialize;
use std::io::{BufReader, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make composefs images, dump them, and list their objects
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Make an image of metadata, and write contents as objects
    ///
    /// The image is that of mkcomposefs, byte for byte, except that hard links stay hard links.
    /// Files of up to 64 bytes are stored in the image.
    Pack(Box<PackArgs>),
    /// Print an image as a dump, from which it can be made again
    ///
    /// The format is that of composefs-dump(5).
    Dump {
        #[command(flatten)]
        input: ImageInput,
    },
    /// List the objects of an image
    Objects {
        #[command(flatten)]
        input: ImageInput,

        /// List only missing objects, with a file of each
        ///
        /// These are the objects that no --objects DIR has. Exit code 1 if there are any.
        #[arg(long)]
        missing: bool,
    },
}

#[derive(clap::Args)]
#[command(override_usage = "packfs composefs pack [OPTIONS] <SOURCE> <IMAGE>")]
struct PackArgs {
    /// Directory, tar, image, OCI image or manifest to pack
    #[arg(value_name = "SOURCE")]
    source: PathBuf,

    /// Image to write; - is standard output
    #[arg(value_name = "IMAGE")]
    image: PathBuf,

    /// Write the contents of files as objects below DIR
    ///
    /// An object is named by its fs-verity digest and written once, as DIR/ab/cdef... Without it,
    /// only the image is written.
    #[arg(long, visible_alias = "digest-store", value_name = "DIR")]
    objects: Option<PathBuf>,

    /// Fail unless all objects have fs-verity
    ///
    /// Without it, fs-verity is enabled on objects that are written if their filesystem has it.
    #[arg(long, requires = "objects")]
    require_fsverity: bool,

    /// Read SOURCE as a dump; - is standard input
    ///
    /// The format is that of composefs-dump(5). Objects are neither read nor written.
    #[arg(long, conflicts_with = "objects")]
    from_dump: bool,

    /// Set the lowest version of the image, 0 or 1
    #[arg(long, value_name = "N", default_value = "0")]
    min_version: u32,

    /// Set the highest version of the image, 0 or 1
    ///
    /// The image has the lowest version, but the highest if SOURCE has whiteouts, devices with the
    /// number 0:0.
    #[arg(long, value_name = "N", default_value = "1")]
    max_version: u32,

    /// Store hard links as files of their own, as mkcomposefs
    #[arg(long)]
    split_hard_links: bool,

    #[command(flatten)]
    oci: Texts<Registry>,

    #[command(flatten)]
    limits: Texts<Limiting>,

    #[command(flatten)]
    answering: Answering,

    #[command(flatten)]
    shaping: Texts<Shaping>,
}

const EXAMPLES: &str = "\
Examples:
  packfs composefs pack rootfs root.cfs --objects /srv/objects
  packfs composefs pack oci://docker.io/debian:12 root.cfs --objects objects
  packfs composefs objects root.cfs --missing --objects /srv/objects
  packfs composefs dump root.cfs > root.dump
  packfs composefs pack --from-dump root.dump same.cfs
  packfs pack root.cfs root.erofs --objects /srv/objects    an image of its own

packfs ls, cat, unpack, mount, and others read these images with --objects DIR.";

impl Opts {
    /// Makes, dumps, or lists.
    pub fn run(self) -> Outcome {
        match self.action {
            Action::Pack(args) => args.run(),
            Action::Dump { input } => {
                let opened = input.open(0)?;
                let mut out = BufWriter::new(report::stdout_bytes()?);
                packfs::composefs::dump(&opened, &mut out)?;
                out.flush().or_io(report::cannot_write)?;
                Ok(ExitCode::SUCCESS)
            }
            Action::Objects { input, missing } => objects(&input, missing),
        }
    }
}

fn objects(input: &ImageInput, missing: bool) -> Outcome {
    let options = input.options(0)?;
    let dirs = options.object_dirs();
    if missing && dirs.is_empty() {
        let error = Error::usage("cannot look for missing objects: no directory is given");
        return Err(error.hint("use --objects DIR"));
    }
    let opened = input.open(0)?;
    let mut objects = packfs::composefs::objects(&opened)?;
    if missing {
        objects = packfs::composefs::missing(objects, dirs)?;
    }
    let mut out = Out::stdout();
    for used in &objects {
        let object = escaped(&used.object.path);
        if missing {
            out.line(format_args!("{object} {}", escaped(used.path.as_bytes())))?
        } else {
            out.line(object)?
        }
    }
    out.finish()?;
    Ok(if missing && !objects.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl PackArgs {
    fn run(self) -> Outcome {
        let is_to_stdout = self.image == Path::new("-");
        if self.answering.json && is_to_stdout {
            return Err(Error::usage("cannot write both --json and the image to standard output"));
        }
        self.answering.shown(|bars| {
            let output = Output::open(Some(&*self.image).filter(|_| !is_to_stdout))?;
            let Made { bytes, report, .. } = self.made(bars)?;
            output.write(|out| out.write_all(&bytes).or_io(|| format!("cannot write {:?}", self.image)))?;
            bars.finish();
            if self.answering.json {
                let image = self.image.to_string_lossy();
                json::print(&Document { image: &image, report: &report })?;
            } else if !self.answering.work.quiet && !is_to_stdout {
                self.print(&report)?;
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    fn made(&self, progress: &dyn Progress) -> Result<Made> {
        let versions = Versions { min: self.min_version, max: self.max_version };
        if self.from_dump {
            if self.source == Path::new("-") {
                return packfs::composefs::make_of_dump(&mut std::io::stdin().lock(), versions);
            }
            let file =
                std::fs::File::open(&self.source).or_io(|| format!("cannot read {:?}", self.source))?;
            return packfs::composefs::make_of_dump(&mut BufReader::new(file), versions);
        }
        let options = ComposefsOptions {
            objects: self.objects.clone(),
            requires_fs_verity: self.require_fsverity,
            versions,
            splits_links: self.split_hard_links,
            shape: self.shaping.shape()?,
            source: OpenOptions::of_texts(self.oci.iter())?,
            limits: self.limits.limits()?,
            jobs: self.answering.work.jobs(),
            output: Some(self.image.clone()),
        };
        packfs::composefs::make(&self.source, &options, progress)
    }

    fn print(&self, report: &ComposefsReport) -> Result<()> {
        let mut out = Out::stdout();
        let image = escaped(self.image.as_os_str().as_bytes());
        let size = text::size(report.image_len);
        match &report.objects {
            None => out.line(format_args!("{image}: {size}"))?,
            Some(objects) => {
                let files = text::counted(objects.files, "file");
                let inline = text::count(objects.inline_files);
                out.line(format_args!("{image}: {size}; {files} as objects, {inline} in the image"))?;
                if self.objects.is_some() {
                    let written = text::counted(objects.written, "object");
                    let bytes = text::size(objects.written_bytes);
                    let shared = match objects.shared {
                        0 => String::new(),
                        shared => format!(", {} sharing blocks of the source", text::count(shared)),
                    };
                    let sealed = match objects.fs_verity {
                        _ if objects.written == 0 => String::new(),
                        0 => ", without fs-verity".into(),
                        count => format!(", {} with fs-verity", text::count(count)),
                    };
                    out.line(format_args!("  {written} written: {bytes}{shared}{sealed}"))?;
                }
            }
        }
        out.line(format_args!("  fs-verity digest {}", report.digest))?;
        out.finish()
    }
}

/// Document of `composefs pack --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    /// Path of the image.
    image: &'a str,
    #[serde(flatten)]
    report: &'a ComposefsReport,
}
