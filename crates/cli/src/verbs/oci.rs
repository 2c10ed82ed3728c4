//! `packfs oci`: EROFS images as the layers of OCI images.

use crate::args::{Limiting, Registry, Texts, source_date_epoch};
use crate::out::report::Out;
use crate::out::{Outcome, json, text};
use owo_colors::OwoColorize;
use packfs::oci::{ErofsMedia, ImageConfig, LayerEncoding, Listed, OciPlace, OciReport, place_of};
use packfs::options::name_and_value;
use packfs::remote::RemoteOptions;
use packfs::source::Shape;
use packfs::{Error, Limits, PackOptions, Progress, Result, ResultExt, Timestamp, printable, shown_place};
use packfs_terminal::work::Answering;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Push, pull, list, and convert OCI images
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Push EROFS images as the layers of an OCI image
    ///
    /// The layers have the media type and annotations of erofs-image-spec. A dm-verity hash tree
    /// that packfs verity has appended is compared with the data, and its root hash becomes an
    /// annotation.
    #[command(override_usage = "packfs oci push [OPTIONS] <IMAGE>... <TARGET>")]
    Push {
        /// EROFS images, the lowest layer first, and TARGET
        ///
        /// TARGET is oci://REGISTRY/NAME[:TAG] or oci-layout:DIR[:TAG].
        #[arg(value_name = "IMAGE", required = true, num_args = 2..)]
        paths: Vec<PathBuf>,

        #[command(flatten)]
        config: Box<ConfigArgs>,

        #[command(flatten)]
        common: Common,
    },
    /// Copy an OCI image, with its layers as they are
    ///
    /// Manifests and blobs keep their digests. An archive holds an image layout and the list of
    /// docker save, so docker load, podman load, and skopeo read it.
    Pull {
        /// oci://REGISTRY/NAME[:TAG] or oci-layout:DIR[:TAG]
        #[arg(value_name = "SOURCE")]
        source: PathBuf,

        /// oci-layout:DIR[:TAG], oci-archive:FILE[:TAG], or docker-archive:FILE[:NAME:TAG]
        #[arg(value_name = "TARGET")]
        target: PathBuf,

        /// Copy the images of all platforms, with their index
        #[arg(long, conflicts_with = "platform")]
        all_platforms: bool,

        #[command(flatten)]
        oci: Texts<Registry>,

        #[command(flatten)]
        answering: Answering,
    },
    /// List images of a layout or archive, or tags of a repository
    ///
    /// A reference with a tag lists the images of all platforms.
    Ls {
        /// oci://REGISTRY/NAME[:TAG], oci-layout:DIR, or oci-archive:FILE
        #[arg(value_name = "PLACE")]
        place: PathBuf,

        #[command(flatten)]
        oci: Texts<Registry>,

        #[command(flatten)]
        answering: Answering,
    },
    /// Convert tar layers of an OCI image to EROFS images
    ///
    /// Each layer becomes an EROFS image with whiteouts of overlayfs. Layers that are EROFS images
    /// stay as they are. The configuration keeps all but the digests of layers.
    Convert {
        /// oci://REGISTRY/NAME, oci-layout:DIR, or oci-archive:FILE
        #[arg(value_name = "SOURCE")]
        source: PathBuf,

        /// oci://REGISTRY/NAME[:TAG] or oci-layout:DIR[:TAG]
        #[arg(value_name = "TARGET")]
        target: PathBuf,

        /// Set codec and level of the images, such as zstd:19
        ///
        /// The default with --zstd is none, because it compresses layers as a whole.
        #[arg(short, long, value_name = "CODEC")]
        codec: Option<String>,

        /// Set a format option, such as fragments=all
        #[arg(short = 'O', long = "option", value_name = "NAME=VALUE", value_parser = name_and_value)]
        options: Vec<(String, String)>,

        /// Convert the images of all platforms of an index
        ///
        /// The target becomes an index, too. Entries that are no images for Linux are left out.
        #[arg(long, conflicts_with = "platform")]
        all_platforms: bool,

        #[command(flatten)]
        limits: Box<Texts<Limiting>>,

        #[command(flatten)]
        common: Common,
    },
}

/// Configuration of an image that is pushed.
#[derive(clap::Args)]
struct ConfigArgs {
    /// Begin with the configuration in FILE
    ///
    /// JSON of the OCI image specification. The layers in it are replaced, and its history is left
    /// out. Options below change it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Begin with the configuration of another image
    ///
    /// REF is oci://REGISTRY/NAME, oci-layout:DIR, or oci-archive:FILE, as for convert.
    #[arg(long, value_name = "REF", conflicts_with = "config")]
    like: Option<PathBuf>,

    /// Set the program to run, as '["/bin/sh","-c"]'
    ///
    /// A JSON list, or one word.
    #[arg(long, value_name = "WORDS", value_parser = words)]
    entrypoint: Option<Words>,

    /// Set the arguments of the program, or the program, as '["nginx","-g"]'
    ///
    /// A JSON list, or one word.
    #[arg(long, value_name = "WORDS", value_parser = words)]
    cmd: Option<Words>,

    /// Set a variable of the environment
    ///
    /// May be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// Set the user, and with :GROUP the group, that the program runs as
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// Set the directory that the program starts in
    #[arg(long, value_name = "DIR")]
    workdir: Option<String>,

    /// Set a label
    ///
    /// May be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
}

/// Words of a program to run.
#[derive(Clone)]
struct Words(Vec<String>);

fn words(text: &str) -> Result<Words, String> {
    packfs::oci::words(text).map(Words).map_err(|error| error.to_string())
}

impl ConfigArgs {
    fn config(&self) -> Result<ImageConfig> {
        let read = |path: &PathBuf| std::fs::read(path).or_io(|| format!("cannot read {path:?}"));
        let place = |path: &PathBuf| {
            place_of(path, Limits::default())?.ok_or_else(|| none(path, "take the configuration of"))
        };
        Ok(ImageConfig {
            base: self.config.as_ref().map(read).transpose()?,
            like: self.like.as_ref().map(place).transpose()?,
            entrypoint: self.entrypoint.as_ref().map(|words| words.0.clone()),
            cmd: self.cmd.as_ref().map(|words| words.0.clone()),
            env: self.env.clone(),
            user: self.user.clone(),
            workdir: self.workdir.clone(),
            labels: self.label.clone(),
        })
    }
}

/// Options of both.
#[derive(clap::Args)]
struct Common {
    /// Write the media type of erofs-image-spec
    ///
    /// This is application/vnd.erofs, of a draft. The default is application/vnd.erofs.layer.v1,
    /// which containerd 2.1 and newer mount. packfs reads both.
    #[arg(long)]
    draft_media_type: bool,

    /// Compress layers with zstd, with a chunk index
    ///
    /// A chunk index of erofs-image-spec lists the chunks with their checksums, so that packfs
    /// reads such a layer where it is. Other programs decode it as a whole. Levels are 1 to 22.
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "3",
        value_parser = clap::value_parser!(i32).range(1..=22))]
    zstd: Option<i32>,

    /// Append a chunk index to uncompressed layers
    ///
    /// It has checksums, so packfs verifies what it reads of a layer where it is. Programs that
    /// mount the layer ignore the index.
    #[arg(long, conflicts_with = "zstd")]
    chunk_index: bool,

    #[command(flatten)]
    oci: Texts<Registry>,

    #[command(flatten)]
    answering: Answering,
}

const EXAMPLES: &str = "\
Examples:
  packfs oci push root.erofs oci://localhost:5000/root:v1
  packfs oci push base.erofs app.erofs oci-layout:app:v1
  packfs oci push root.erofs oci-layout:app --cmd /bin/app --env MODE=prod
  packfs oci push new.erofs oci-layout:app:v2 --like oci-layout:app:v1
  packfs oci push --zstd root.erofs oci://localhost:5000/root:small
  packfs oci pull oci://docker.io/debian:12 docker-archive:debian.tar
  packfs oci ls oci://docker.io/debian:12
  packfs oci convert oci://docker.io/debian:12 oci-layout:debian:12
  packfs oci convert --all-platforms oci://docker.io/debian:12 oci-layout:all:12
  packfs oci convert docker-archive:app.tar oci://localhost:5000/app:erofs

Logins are those of docker login, podman login, or skopeo login.";

impl Opts {
    /// Pushes or converts.
    pub fn run(self) -> Outcome {
        match self.action {
            Action::Push { mut paths, config, common } => {
                // The parser sees to it that there is one.
                let target = paths.pop().unwrap_or_default();
                common.run(&target, |bars| {
                    let push = packfs::oci::push(&paths, target_of(&target)?);
                    let push = push.media(common.media()).encoding(common.encoding());
                    let push = push.jobs(common.answering.work.jobs()).config(config.config()?);
                    push.remote(common.remote()?).run(bars)
                })
            }
            Action::Pull { source, target, all_platforms, oci, answering } => {
                shown(&answering, "pulled", &target, |bars| {
                    let from = place_of(&source, Limits::default())?.ok_or_else(|| none(&source, "pull"))?;
                    let pull = packfs::oci::pull(from, target_of(&target)?).all_platforms(all_platforms);
                    pull.remote(oci.remote()?).run(bars)
                })
            }
            Action::Ls { place, oci, answering } => listed(&place, &oci, &answering),
            Action::Convert { source, target, codec, options, all_platforms, limits, common } => {
                common.run(&target, |bars| {
                    let from =
                        place_of(&source, limits.limits()?)?.ok_or_else(|| none(&source, "convert"))?;
                    let convert = packfs::convert_oci(from, target_of(&target)?);
                    let convert = convert.all_platforms(all_platforms).encoding(common.encoding());
                    let mtime_max = source_date_epoch::<i64>()?.map(Timestamp::from_seconds);
                    let packing = PackOptions {
                        shape: Shape { mtime_max, ..Shape::default() },
                        codec: codec.clone(),
                        options: options.clone(),
                        limits: limits.limits()?,
                        jobs: common.answering.work.jobs(),
                        ..PackOptions::default()
                    };
                    convert.options(packing).media(common.media()).remote(common.remote()?).run(bars)
                })
            }
        }
    }
}

fn none(path: &Path, action: &str) -> Error {
    Error::usage(format!("cannot {action} {}: it names no OCI image", shown_place(path)))
        .hint("known: oci://REGISTRY/NAME[:TAG], oci-layout:DIR[:TAG]; oci-archive:FILE as a source")
}

fn target_of(path: &Path) -> Result<OciPlace> {
    OciPlace::of(path)?.ok_or_else(|| none(path, "push to"))
}

impl Common {
    fn media(&self) -> ErofsMedia {
        if self.draft_media_type { ErofsMedia::Spec } else { ErofsMedia::Containerd }
    }

    fn encoding(&self) -> LayerEncoding {
        match self.zstd {
            Some(level) => LayerEncoding::Zstd { level },
            None if self.chunk_index => LayerEncoding::Indexed,
            None => LayerEncoding::Plain,
        }
    }

    fn remote(&self) -> Result<RemoteOptions> {
        self.oci.remote()
    }

    fn run(&self, target: &Path, work: impl FnOnce(&dyn Progress) -> Result<OciReport>) -> Outcome {
        shown(&self.answering, "pushed", target, work)
    }
}

/// Writes an image, and tells what came of it.
fn shown(
    answering: &Answering,
    done: &str,
    target: &Path,
    work: impl FnOnce(&dyn Progress) -> Result<OciReport>,
) -> Outcome {
    answering.shown(|bars| {
        let report = work(bars)?;
        bars.finish();
        let image = shown_place(target).trim_matches('"').to_owned();
        if answering.json {
            json::print(&Document { image: &image, report: &report })?;
        } else if !answering.work.quiet {
            let mut out = Out::stdout();
            let layers = text::counted(report.layers, "layer");
            let layers = match report.images {
                1 => layers,
                count => format!("{}, {layers}", text::counted(count, "image")),
            };
            out.line(format_args!(
                "{}: {image}: {layers}, {}",
                done.green().bold(),
                text::size(report.layer_bytes)
            ))?;
            let present = match report.present {
                0 => String::new(),
                count => format!("; {} already there", text::counted(count, "layer")),
            };
            out.line(format_args!("  {}{present}", report.digest))?;
            out.finish()?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn listed(place: &Path, oci: &Texts<Registry>, answering: &Answering) -> Outcome {
    answering.shown(|bars| {
        let limits = Limits::default();
        let found = place_of(place, limits)?.ok_or_else(|| none(place, "list"))?;
        let remote = oci.remote()?;
        let listed = packfs::oci::list_images(&found, &remote, limits, bars)?;
        bars.finish();
        let images: Vec<Row> = listed.iter().map(Row::of).collect();
        if answering.json {
            json::print(&images)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut out = Out::stdout();
        for Row { name, platform, digest, .. } in &images {
            let word = |text: &Option<String>| printable(text.as_deref().unwrap_or("-")).into_owned();
            out.line(format_args!("{}  {}  {}", word(name), word(platform), word(digest)))?;
        }
        out.finish()?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Image in the document of `oci ls --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Row {
    /// Tag or reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Platform as OS/ARCHITECTURE[/VARIANT], where an index tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    platform: Option<String>,
    /// Digest of the manifest; missing for tags of a repository, and in archives of docker save.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Media type of the manifest, where there is a digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
}

impl Row {
    fn of(listed: &Listed) -> Self {
        Row {
            name: listed.name.clone(),
            platform: listed.platform.as_ref().map(ToString::to_string),
            digest: listed.digest.as_ref().map(ToString::to_string),
            media_type: listed.media_type.clone(),
        }
    }
}

/// Document of `oci push --json`, `oci pull --json`, and `oci convert --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    /// Reference of the new image.
    image: &'a str,
    #[serde(flatten)]
    report: &'a OciReport,
}
