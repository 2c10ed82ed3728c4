//! `packfs diff`: how two trees differ, wherever they come from.

use crate::args::{Limiting, OfA, OfB, OfBoth, SandboxArg, Texts, reading};
use crate::out::json::{self, Array, Bytes};
use crate::out::report::Out;
use crate::out::{Outcome, text};
use owo_colors::OwoColorize;
use packfs::check::{self, Change, DiffOptions, DiffReport, Difference, Side};
use packfs::options::Options;
use packfs::source::{Loaded, Shape};
use packfs::{Error, ImagePath, OpenOptions, Progress, Result, Source, escaped};
use packfs_sandbox::Sandbox;
use packfs_terminal::work::Answering;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Compare two images, directories, tars or manifests
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Image, directory, tar or manifest; - is a tar on stdin
    #[arg(value_name = "A")]
    a: PathBuf,

    /// Image, directory, tar or manifest; - is a tar on stdin
    #[arg(value_name = "B")]
    b: PathBuf,

    /// Open A with an option, such as part=p2
    ///
    /// NAME is an option of `packfs ls` that opens images, such as offset, device, part, magic,
    /// subvol or snapshot; switches need no VALUE. May be given several times.
    #[arg(long = "a", value_name = "NAME=VALUE", value_parser = parse_option)]
    options_a: Vec<(&'static str, OsString)>,

    /// Open B with an option, such as part=p2
    ///
    /// As --a.
    #[arg(long = "b", value_name = "NAME=VALUE", value_parser = parse_option)]
    options_b: Vec<(&'static str, OsString)>,

    #[command(flatten)]
    letter_a: Texts<OfA>,

    #[command(flatten)]
    letter_b: Texts<OfB>,

    #[command(flatten)]
    of_both: Texts<OfBoth>,

    /// Ignore the contents of files
    #[arg(long)]
    no_contents: bool,

    /// Ignore users and groups
    #[arg(long)]
    no_owners: bool,

    /// Ignore permissions
    #[arg(long)]
    no_modes: bool,

    /// Ignore modification times
    #[arg(long)]
    no_times: bool,

    /// Compare fractions of seconds, too
    ///
    /// SquashFS stores whole seconds.
    #[arg(long, conflicts_with = "no_times")]
    nanos: bool,

    /// Ignore extended attributes
    #[arg(long)]
    no_xattrs: bool,

    /// Ignore hard links
    #[arg(long)]
    no_links: bool,

    #[command(flatten)]
    answering: Answering,

    #[command(flatten)]
    sandbox: SandboxArg,

    #[command(flatten)]
    limits: Texts<Limiting>,
}

const EXAMPLES: &str = "\
Examples:
  packfs diff root.sqfs rootfs                  an image and its directory
  packfs diff old.sqfs new.sqfs --no-times
  packfs diff a.bin b.bin --a offset=0x140000 --b offset=0x150000
  packfs diff root.sqfs root.tar.gz --json | jq -r '.differences[].path'

Exit code 0 if they are the same, 1 if they differ.";

/// Reads NAME=VALUE, or the name of a switch.
fn parse_option(text: &str) -> Result<(&'static str, OsString)> {
    let (name, value) = text.split_once('=').unwrap_or((text, "on"));
    OpenOptions::new().set(name, value)?;
    let info = OpenOptions::infos().into_iter().find(|info| info.has_name(name));
    Ok((info.map_or("", |info| info.name), value.into()))
}

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

    /// Detects both sources. With a sandbox, nothing else can be opened afterwards.
    fn sources(&self) -> Result<(Source, Source)> {
        if self.a == Path::new("-") && self.b == Path::new("-") {
            return Err(Error::usage("cannot read standard input twice"));
        }
        let [opening_a, opening_b] = self.openings()?;
        let sources = (Source::detect_for(&self.a, &opening_a)?, Source::detect_for(&self.b, &opening_b)?);
        self.sandbox.enter(|sandbox| {
            let sandbox = [&sources.0, &sources.1].into_iter().fold(sandbox, reading);
            let beside = [opening_a.files_beside(&self.a), opening_b.files_beside(&self.b)];
            beside.iter().flatten().fold(sandbox, Sandbox::read)
        })?;
        Ok(sources)
    }

    fn load(&self, (a, b): (Source, Source), bars: &dyn Progress) -> Result<(Loaded, Loaded)> {
        let [opening_a, opening_b] = self.openings()?;
        let load = |source: Source, opening| source.load_with(&opening, &Shape::default(), bars);
        Ok((load(a, opening_a)?, load(b, opening_b)?))
    }

    /// Options to open each of the two.
    fn openings(&self) -> Result<[OpenOptions; 2]> {
        let limits = self.limits.limits()?;
        let opening =
            |own: &[(&'static str, OsString)], with_letter: Vec<(&'static str, &OsStr)>| -> Result<_> {
                let own = own.iter().map(|(name, text)| (*name, &**text));
                let options = OpenOptions::of_texts(self.of_both.iter().chain(with_letter).chain(own))?;
                Ok(options.jobs(self.answering.work.jobs()).limits(limits))
            };
        let (a, b) = (self.letter_a.iter().collect(), self.letter_b.iter().collect());
        Ok([opening(&self.options_a, a)?, opening(&self.options_b, b)?])
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
        let report = self.compare(a, b, bars, &mut |difference| array.push(&Row::new(&difference)))?;
        let same = report.differences == 0;
        array.finish_with(&Document { differences: Vec::new(), same, names: report.names })?;
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

/// Returns the name of a difference, and both values.
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
                Some(value) => {
                    let (value, rest) = text::beginning(value);
                    format!("\"{}\"{rest}", escaped(value))
                }
                None => "missing".into(),
            };
            (format!("extended attribute {}", escaped(name)), value(a), value(b))
        }
        Change::Link(a, b) => pair("hard link to", format!("{a:?}"), format!("{b:?}")),
    }
}

/// Document of `diff --json`. Its differences are printed as they are found.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    /// Differences, in the order of paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(required))]
    differences: Vec<Row<'a>>,
    /// True without differences.
    same: bool,
    /// Names in either of the two.
    names: u64,
}

/// Difference of one name.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Row<'a> {
    #[serde(flatten)]
    path: &'a ImagePath,
    #[serde(flatten)]
    change: Values<'a>,
}

json::byte_key!(A, "a", "Value in A.");
json::byte_key!(B, "b", "Value in B.");

/// Kind of difference, and the values in A and B.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename_all = "snake_case")]
enum Values<'a> {
    /// The name is missing in B.
    OnlyInA,
    /// The name is missing in A.
    OnlyInB,
    /// File types.
    Type { a: &'static str, b: &'static str },
    /// Lengths of files.
    Size { a: u64, b: u64 },
    /// Contents of files.
    Contents {
        /// Offset of the first byte that differs.
        first_byte: u64,
    },
    /// Permissions in octal digits.
    Mode { a: String, b: String },
    /// Owners.
    Owner { a: OwnerValue, b: OwnerValue },
    /// Times of last modification, in seconds since 1970.
    Mtime { a: String, b: String },
    /// Numbers of device nodes.
    Device { a: json::Device, b: json::Device },
    /// Targets of symlinks.
    Target {
        #[serde(flatten)]
        a: Bytes<'a, A>,
        #[serde(flatten)]
        b: Bytes<'a, B>,
    },
    /// First names of the files that each is a hard link to.
    Link {
        #[serde(flatten)]
        a: Bytes<'a, A>,
        #[serde(flatten)]
        b: Bytes<'a, B>,
    },
    /// Values of an extended attribute; a missing value has no key.
    Xattr {
        #[serde(flatten)]
        name: Bytes<'a, json::Name>,
        #[serde(flatten)]
        a: Option<Bytes<'a, A>>,
        #[serde(flatten)]
        b: Option<Bytes<'a, B>>,
    },
}

/// Owner of a file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OwnerValue {
    /// User.
    uid: u32,
    /// Group.
    gid: u32,
}

impl From<packfs::Owner> for OwnerValue {
    fn from(owner: packfs::Owner) -> Self {
        OwnerValue { uid: owner.uid, gid: owner.gid }
    }
}

impl<'a> Row<'a> {
    fn new(difference: &'a Difference) -> Self {
        Row { path: &difference.path, change: Values::from(&difference.change) }
    }
}

impl<'a> From<&'a Change> for Values<'a> {
    fn from(change: &'a Change) -> Self {
        match change {
            Change::OnlyInA => Values::OnlyInA,
            Change::OnlyInB => Values::OnlyInB,
            Change::Type(a, b) => Values::Type { a: json::type_word(*a), b: json::type_word(*b) },
            Change::Len(a, b) => Values::Size { a: *a, b: *b },
            Change::Contents(at) => Values::Contents { first_byte: *at },
            Change::Mode(a, b) => Values::Mode { a: format!("{a:04o}"), b: format!("{b:04o}") },
            Change::Owner(a, b) => Values::Owner { a: (*a).into(), b: (*b).into() },
            Change::Mtime(a, b) => Values::Mtime { a: a.to_string(), b: b.to_string() },
            Change::Device(a, b) => Values::Device { a: (*a).into(), b: (*b).into() },
            Change::Target(a, b) => Values::Target { a: Bytes::new(a), b: Bytes::new(b) },
            Change::Link(a, b) => Values::Link { a: Bytes::new(a.as_bytes()), b: Bytes::new(b.as_bytes()) },
            Change::Xattr(name, a, b) => Values::Xattr {
                name: Bytes::new(name),
                a: a.as_deref().map(Bytes::new),
                b: b.as_deref().map(Bytes::new),
            },
        }
    }
}
