//! `packfs diff`: how two trees differ, wherever they come from.

use crate::args::LimitArgs;
use crate::args::{Magic, parse_magic};
use crate::args::{SandboxArg, reading};
use crate::out::json::{self, Array, Object, Value, json};
use crate::out::listed::listed;
use crate::out::report::Out;
use crate::out::{Outcome, text};
use owo_colors::OwoColorize;
use packfs::check::{self, Change, DiffOptions, DiffReport, Difference, Side};
use packfs::source::{Loaded, Shape};
use packfs::{Error, OpenOptions, Progress, Result, Source, escaped};
use packfs_sandbox::Sandbox;
use packfs_terminal::work::Answering;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Compare two images, directories, tars or manifests
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// An image, a directory, a tar or a manifest; - is a tar from standard input
    #[arg(value_name = "A")]
    a: PathBuf,

    /// The same
    #[arg(value_name = "B")]
    b: PathBuf,

    /// A file or block device that holds further data of the image A; once for each, in the order
    /// in which it lists them
    #[arg(long, visible_alias = "device", value_name = "FILE")]
    device_a: Vec<PathBuf>,

    /// The same for B
    #[arg(long, value_name = "FILE")]
    device_b: Vec<PathBuf>,

    /// Start of image A in its file: 4096, 128K, 1M, 0x1000
    #[arg(long, visible_alias = "offset", value_name = "BYTES", default_value = "0", value_parser = text::parse_size)]
    offset_a: u64,

    /// The same for B
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = text::parse_size)]
    offset_b: u64,

    /// The image to compare where A holds several, such as the partitions of a disk: p2, or 2
    #[arg(long, visible_alias = "part", value_name = "NAME")]
    part_a: Option<String>,

    /// The same for B
    #[arg(long, value_name = "NAME")]
    part_b: Option<String>,

    /// Read A as if it began with these four characters, where its maker changed them
    #[arg(
        long,
        visible_alias = "magic",
        value_name = "MAGIC",
        value_parser = listed(parse_magic, packfs::magics),
        hide_possible_values = true
    )]
    magic_a: Option<Magic>,

    /// The same for B
    #[arg(
        long,
        value_name = "MAGIC",
        value_parser = listed(parse_magic, packfs::magics),
        hide_possible_values = true
    )]
    magic_b: Option<Magic>,
    /// Go on where an image's own checksum is not that of its bytes (EROFS, cramfs, romfs)
    #[arg(long)]
    ignore_checksum: bool,

    /// Do not compare the bytes of files
    #[arg(long)]
    no_contents: bool,

    /// Do not compare users and groups
    #[arg(long)]
    no_owners: bool,

    /// Do not compare permissions
    #[arg(long)]
    no_modes: bool,

    /// Do not compare times
    #[arg(long)]
    no_times: bool,

    /// Compare fractions of seconds, too; SquashFS has none
    #[arg(long, conflicts_with = "no_times")]
    nanos: bool,

    /// Do not compare extended attributes
    #[arg(long)]
    no_xattrs: bool,

    /// Do not compare which names are links to one file
    #[arg(long)]
    no_links: bool,

    #[command(flatten)]
    answering: Answering,

    #[command(flatten)]
    sandbox: SandboxArg,

    #[command(flatten)]
    limits: LimitArgs,
}

const EXAMPLES: &str = "\
Examples:
  packfs diff root.sqfs rootfs                       does the image hold what the directory holds?
  packfs diff old.sqfs new.sqfs --no-times
  packfs diff firmware-1.bin firmware-2.bin --offset-a 0x140000 --offset-b 0x150000
  packfs diff root.sqfs root.tar.gz --json | jq -r '.differences[].path'

Exit code 0 if they are the same, 1 if they differ.";

impl Opts {
    /// Compares.
    pub fn run(self) -> Outcome {
        let sources = self.sources()?;
        self.answering.shown(|bars| {
            let (a, b) = self.load(sources, bars)?;
            let report =
                if self.answering.json { self.print_json(&a, &b, bars) } else { self.print(&a, &b, bars) }?;
            Ok(if report.differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        })
    }

    /// What the two are; with a sandbox, nothing else can be opened from then on.
    fn sources(&self) -> Result<(Source, Source)> {
        if self.a == Path::new("-") && self.b == Path::new("-") {
            return Err(Error::usage("only one of the two can come from standard input"));
        }
        let [opening_a, opening_b] = self.openings();
        let sources = (Source::detect_for(&self.a, &opening_a)?, Source::detect_for(&self.b, &opening_b)?);
        self.sandbox.enter(|sandbox| {
            let sandbox = [&sources.0, &sources.1].into_iter().fold(sandbox, reading);
            self.device_a.iter().chain(&self.device_b).fold(sandbox, Sandbox::read)
        })?;
        Ok(sources)
    }

    fn load(&self, (a, b): (Source, Source), bars: &dyn Progress) -> Result<(Loaded, Loaded)> {
        let [opening_a, opening_b] = self.openings();
        let load = |source: Source, opening| source.load_with(&opening, &Shape::default(), bars);
        Ok((load(a, opening_a)?, load(b, opening_b)?))
    }

    /// Options to open each of the two.
    fn openings(&self) -> [OpenOptions; 2] {
        let opening = |devices: &[PathBuf], offset, part: &Option<String>, magic: Option<Magic>| {
            let opening = OpenOptions::new().jobs(self.answering.work.jobs()).limits(self.limits.limits());
            let opening = if self.ignore_checksum { opening.ignore_checksum() } else { opening };
            let opening = devices.iter().fold(opening.offset(offset), OpenOptions::device);
            let opening = part.iter().fold(opening, OpenOptions::part);
            magic.into_iter().fold(opening, OpenOptions::magic)
        };
        [
            opening(&self.device_a, self.offset_a, &self.part_a, self.magic_a),
            opening(&self.device_b, self.offset_b, &self.part_b, self.magic_b),
        ]
    }

    fn options(&self) -> DiffOptions {
        DiffOptions {
            contents: !self.no_contents,
            owners: !self.no_owners,
            modes: !self.no_modes,
            times: !self.no_times,
            nanos: self.nanos,
            xattrs: !self.no_xattrs,
            links: !self.no_links,
            jobs: self.answering.work.jobs(),
        }
    }

    /// Compares, handing over each difference until handing over fails.
    fn compare(
        &self,
        a: &Loaded,
        b: &Loaded,
        bars: &dyn Progress,
        take: &mut dyn FnMut(Difference) -> Result<()>,
    ) -> Result<DiffReport> {
        let mut taken = Ok(());
        let report = check::diff(side(a), side(b), self.options(), bars, &mut |difference| {
            if taken.is_ok() {
                taken = take(difference);
            }
        })?;
        taken.map(|()| report)
    }

    fn print(&self, a: &Loaded, b: &Loaded, bars: &crate::out::progress::Bars) -> Result<DiffReport> {
        let mut out = Out::stdout();
        let report =
            self.compare(a, b, bars, &mut |difference| bars.beside(|| out.line(line(&difference))))?;
        bars.finish();
        if !self.answering.work.quiet {
            let names = text::counted(report.names, "name");
            match report.differences {
                0 => out.line(format_args!("{}: {names}", "same".green().bold()))?,
                count => {
                    out.line(format_args!("{} in {names}", text::counted(count, "difference").red().bold()))?
                }
            }
        }
        out.finish()?;
        Ok(report)
    }

    fn print_json(&self, a: &Loaded, b: &Loaded, bars: &dyn Progress) -> Result<DiffReport> {
        let mut array = Array::within("differences");
        let report = self.compare(a, b, bars, &mut |difference| array.push(object(&difference)))?;
        let mut rest = Object::new();
        rest.insert("same".into(), (report.differences == 0).into());
        rest.insert("names".into(), report.names.into());
        array.finish_with(rest)?;
        Ok(report)
    }
}

fn side(loaded: &Loaded) -> Side<'_> {
    Side { tree: &loaded.tree, contents: &*loaded.contents }
}

/// For people: `-` only in A, `+` only in B, `~` in both.
fn line(difference: &Difference) -> String {
    let path = &difference.path;
    match &difference.change {
        Change::OnlyInA => format!("{} {path}: only in the first", "-".red()),
        Change::OnlyInB => format!("{} {path}: only in the second", "+".green()),
        change => {
            let (what, a, b) = words(change);
            let values = match (a, b) {
                (a, b) if a.is_empty() && b.is_empty() => String::new(),
                (a, b) => format!(" {a}, {b}"),
            };
            format!("{} {path}: {what}{values}", "~".yellow())
        }
    }
}

/// What differs, and both values.
fn words(change: &Change) -> (String, String, String) {
    let pair = |what: &str, a: String, b: String| (what.to_owned(), a, b);
    match change {
        Change::OnlyInA | Change::OnlyInB => pair("missing", String::new(), String::new()),
        Change::Type(a, b) => pair("type", a.word().into(), b.word().into()),
        Change::Len(a, b) => pair("size", text::count(*a), text::count(*b)),
        Change::Contents(at) => {
            (format!("contents from byte {} on", text::count(*at)), String::new(), String::new())
        }
        Change::Mode(a, b) => pair("mode", format!("{a:04o}"), format!("{b:04o}")),
        Change::Owner(a, b) => pair("owner", format!("{}/{}", a.uid, a.gid), format!("{}/{}", b.uid, b.gid)),
        Change::Mtime(a, b) => pair("time", text::long_time(*a), text::long_time(*b)),
        Change::Target(a, b) => pair("target", format!("\"{}\"", escaped(a)), format!("\"{}\"", escaped(b))),
        Change::Device(a, b) => {
            pair("device", format!("{}:{}", a.major, a.minor), format!("{}:{}", b.major, b.minor))
        }
        Change::Xattr(name, a, b) => {
            let value = |value: &Option<Vec<u8>>| match value {
                Some(value) => format!("\"{}\"", escaped(value)),
                None => "missing".into(),
            };
            (format!("extended attribute {}", escaped(name)), value(a), value(b))
        }
        Change::Link(a, b) => pair("hard link to", format!("{a:?}"), format!("{b:?}")),
    }
}

/// For scripts.
fn object(difference: &Difference) -> Object {
    let mut object = Object::new();
    json::put_bytes(&mut object, "path", difference.path.as_bytes());
    let what = match &difference.change {
        Change::OnlyInA => "only_in_a",
        Change::OnlyInB => "only_in_b",
        Change::Type(..) => "type",
        Change::Len(..) => "size",
        Change::Contents(_) => "contents",
        Change::Mode(..) => "mode",
        Change::Owner(..) => "owner",
        Change::Mtime(..) => "mtime",
        Change::Target(..) => "target",
        Change::Device(..) => "device",
        Change::Xattr(..) => "xattr",
        Change::Link(..) => "link",
    };
    object.insert("what".into(), what.into());
    values(&difference.change, &mut object);
    object
}

/// Adds both values as `a` and `b`.
fn values(change: &Change, object: &mut Object) {
    let mut put = |a: Value, b: Value| {
        object.insert("a".into(), a);
        object.insert("b".into(), b);
    };
    match change {
        Change::OnlyInA | Change::OnlyInB => {}
        Change::Type(a, b) => put(json::type_word(*a).into(), json::type_word(*b).into()),
        Change::Len(a, b) => put((*a).into(), (*b).into()),
        Change::Contents(at) => {
            object.insert("first_byte".into(), (*at).into());
        }
        Change::Mode(a, b) => put(format!("{a:04o}").into(), format!("{b:04o}").into()),
        Change::Owner(a, b) => put(json!({"uid": a.uid, "gid": a.gid}), json!({"uid": b.uid, "gid": b.gid})),
        Change::Mtime(a, b) => put(a.to_string().into(), b.to_string().into()),
        Change::Device(a, b) => {
            put(json!({"major": a.major, "minor": a.minor}), json!({"major": b.major, "minor": b.minor}));
        }
        Change::Target(a, b) => {
            json::put_bytes(object, "a", a);
            json::put_bytes(object, "b", b);
        }
        Change::Link(a, b) => {
            json::put_bytes(object, "a", a.as_bytes());
            json::put_bytes(object, "b", b.as_bytes());
        }
        Change::Xattr(name, a, b) => {
            json::put_bytes(object, "name", name);
            for (key, value) in [("a", a), ("b", b)] {
                if let Some(value) = value {
                    json::put_bytes(object, key, value);
                }
            }
        }
    }
}
