//! `packfs digest`: what a tree is, in one line, wherever it lives.

mod list;

use crate::args::{Limiting, Opening, SandboxArg, Texts, reading};
use crate::out::Outcome;
use crate::out::json;
use crate::out::report::Out;
use list::Listed;
use owo_colors::OwoColorize;
use packfs::integrity::{DigestFacts, TreeDigest, TreeDigests, digest_tree};
use packfs::options::Mark;
use packfs::source::Shape;
use packfs::{Error, ImagePath, OpenOptions, Progress, Result, Source, escaped};
use packfs_sandbox::Sandbox;
use packfs_terminal::work::Work;
use serde::Serialize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print the digest of a tree, of any image of it, and compare
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Images, directories, tars or manifests
    ///
    /// - is a tar from standard input.
    #[arg(value_name = "SOURCE", required_unless_present = "check_list")]
    sources: Vec<PathBuf>,

    /// Fail unless every SOURCE has this digest
    ///
    /// DIGEST names the attributes that it covers.
    #[arg(long, value_name = "DIGEST", conflicts_with_all = ["facts", "depth"])]
    check: Option<String>,

    /// Check the digests listed in FILE
    ///
    /// FILE holds lines as `packfs digest` prints them; - is standard input.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["sources", "check", "facts", "depth"])]
    check_list: Option<PathBuf>,

    /// Set the attributes that the digest covers
    ///
    /// LIST is all, none, a list of mode, owner, mtime, nanos, xattrs, links and root, or changes
    /// to the default, such as +nanos or -mtime,-owner. The default is all but nanos. Names, types,
    /// contents, link targets and device numbers are always covered.
    #[arg(long, value_name = "LIST", value_parser = parse_facts, allow_hyphen_values = true)]
    facts: Option<DigestFacts>,

    /// Print digests of directories down to depth N
    ///
    /// Each is the digest that the directory has as a SOURCE of its own.
    #[arg(long, value_name = "N", default_value = "0")]
    depth: u32,

    #[command(flatten)]
    opening: Texts<Opening>,

    /// Print an array of JSON objects
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    sandbox: SandboxArg,

    #[command(flatten)]
    work: Work,

    #[command(flatten)]
    limits: Texts<Limiting>,
}

const EXAMPLES: &str = "\
Examples:
  packfs digest rootfs root.sqfs root.tar       the same digest three times
  packfs digest --facts +nanos rootfs a.erofs   with fractions of seconds
  packfs digest --depth 2 root.sqfs             directories, for diff(1)
  packfs digest rootfs > rootfs.digest
  packfs digest --check-list rootfs.digest
  packfs digest --check packfs-tree-1:sha256:8b1a... root.sqfs

Exit code 1 if a digest differs from the expected one. docs/formats/digest.md
specifies the digest.";

/// Reads what stands behind `--facts`.
fn parse_facts(typed: &str) -> std::result::Result<DigestFacts, String> {
    match typed {
        "all" => return Ok(DigestFacts::ALL),
        "none" => return Ok(DigestFacts::NONE),
        _ => {}
    }
    let changes = typed.starts_with(['+', '-']);
    let mut facts = if changes { DigestFacts::default() } else { DigestFacts::NONE };
    for word in typed.split(',') {
        let (name, counts) = match (changes, word.strip_prefix('+'), word.strip_prefix('-')) {
            (true, Some(name), _) => (name, true),
            (true, None, Some(name)) => (name, false),
            (true, None, None) => return Err(format!("{word:?} needs a + or - before it")),
            (false, ..) => (word, true),
        };
        let known = || format!("unknown attribute {word:?}; use {}", DigestFacts::names().join(", "));
        *facts.by_name(name).ok_or_else(known)? = counts;
    }
    Ok(facts)
}

/// A source, and the digest that it should have, if one was given.
struct Asked {
    path: PathBuf,
    source: Source,
    digest: Option<TreeDigest>,
}

impl Asked {
    fn new(path: PathBuf, opening: &OpenOptions, digest: Option<TreeDigest>) -> Result<Self> {
        let source = Source::detect_for(&path, opening)?;
        // From here on, it is only shown.
        let path = packfs::without_secrets(&path).into_owned();
        Ok(Asked { path, source, digest })
    }
}

impl Opts {
    /// Hashes, and prints or checks.
    pub fn run(self) -> Outcome {
        let asked = self.asked()?;
        self.work.shown(self.json, |bars| self.run_with(&asked, bars))
    }

    /// Returns the sources and their expected digests. With a sandbox, nothing else can be opened
    /// afterwards.
    fn asked(&self) -> Result<Vec<Asked>> {
        let asked: Vec<Asked> = match (&self.check_list, &self.check) {
            (Some(list), _) => {
                let listed = list::read(list)?;
                self.refuse_options_of_one(listed.len())?;
                let opening = self.opening()?;
                let asked = |Listed { digest, source }| Asked::new(source, &opening, Some(digest));
                listed.into_iter().map(asked).collect::<Result<_>>()?
            }
            (None, Some(digest)) => {
                let digest: TreeDigest = digest.parse()?;
                self.each_source(Some(digest))?
            }
            (None, None) => self.each_source(None)?,
        };
        let opening = self.opening()?;
        self.sandbox.enter(|sandbox| {
            let sandbox = asked.iter().fold(sandbox, |sandbox, asked| reading(sandbox, &asked.source));
            self.sources.iter().flat_map(|source| opening.files_beside(source)).fold(sandbox, Sandbox::read)
        })?;
        Ok(asked)
    }

    fn each_source(&self, digest: Option<TreeDigest>) -> Result<Vec<Asked>> {
        self.refuse_options_of_one(self.sources.len())?;
        if self.sources.iter().filter(|source| *source == Path::new("-")).count() > 1 {
            return Err(Error::usage("cannot read standard input twice"));
        }
        let opening = self.opening()?;
        self.sources.iter().map(|source| Asked::new(source.clone(), &opening, digest)).collect()
    }

    /// Refuses options that describe a single image if there are several sources.
    fn refuse_options_of_one(&self, sources: usize) -> Result<(), Error> {
        let Some(info) = self.opening.infos().find(|info| !info.is(Mark::Shared)) else { return Ok(()) };
        if sources < 2 {
            return Ok(());
        }
        let option = info.name;
        Err(Error::usage(format!("cannot apply --{option} to {sources} SOURCEs: it needs a single one")))
    }

    fn run_with(&self, asked: &[Asked], bars: &dyn Progress) -> Outcome {
        if self.check.is_some() || self.check_list.is_some() {
            return self.check(asked, bars);
        }
        if self.json { self.print_json(asked, bars) } else { self.print(asked, bars) }
    }

    /// Returns the options to open sources that are images.
    fn opening(&self) -> Result<OpenOptions> {
        let opening = OpenOptions::of_texts(self.opening.iter())?;
        Ok(opening.jobs(self.work.jobs()).limits(self.limits.limits()?))
    }

    /// Calls `with` with the digests of one source.
    fn hash<T>(
        &self,
        source: &Source,
        facts: DigestFacts,
        bars: &dyn Progress,
        with: impl FnOnce(&TreeDigests<'_>) -> Result<T>,
    ) -> Result<T> {
        let loaded = source.load_with(&self.opening()?, &Shape::default(), bars)?;
        with(&digest_tree(&loaded.tree, &*loaded.contents, facts, self.work.jobs(), bars)?)
    }

    fn print(&self, asked: &[Asked], bars: &dyn Progress) -> Outcome {
        let mut out = Out::stdout();
        for Asked { path, source, .. } in asked {
            let name = escaped(path.as_os_str().as_bytes()).to_string();
            self.hash(source, self.facts.unwrap_or_default(), bars, |digests| {
                digests.directories(self.depth, &mut |path, digest| {
                    if path.is_root() {
                        out.line(format_args!("{digest}  {name}"))
                    } else {
                        out.line(format_args!("{digest}  {name}:/{path}"))
                    }
                })
            })?;
        }
        out.finish()?;
        Ok(ExitCode::SUCCESS)
    }

    fn print_json(&self, asked: &[Asked], bars: &dyn Progress) -> Outcome {
        let mut documents = Vec::new();
        for Asked { path, source, .. } in asked {
            self.hash(source, self.facts.unwrap_or_default(), bars, |digests| {
                let mut directories = Vec::new();
                digests.directories(self.depth, &mut |path, digest| {
                    directories.push(Directory { path: path.clone(), digest: digest.to_string() });
                    Ok(())
                })?;
                documents.push(Document {
                    source: json::Bytes::from(path),
                    digest: digests.root().to_string(),
                    directories: (self.depth > 0).then_some(directories),
                    expected: None,
                    same: None,
                });
                Ok(())
            })?;
        }
        json::print(&documents)?;
        Ok(ExitCode::SUCCESS)
    }

    fn check<'a>(&self, asked: &'a [Asked], bars: &dyn Progress) -> Outcome {
        let mut rows = Vec::new();
        for Asked { path, source, digest } in asked {
            let Some(digest) = *digest else { continue };
            let found = self.hash(source, digest.facts, bars, |digests| Ok(digests.root()))?;
            rows.push((path, digest, found));
        }
        let same = rows.iter().all(|(_, wanted, found)| wanted == found);
        if self.json {
            let document = |(source, wanted, found): &(&'a PathBuf, TreeDigest, TreeDigest)| Document {
                source: json::Bytes::from(*source),
                digest: found.to_string(),
                directories: None,
                expected: Some(wanted.to_string()),
                same: Some(wanted == found),
            };
            json::print(&rows.iter().map(document).collect::<Vec<_>>())?;
        } else {
            let mut out = Out::stdout();
            for (source, wanted, found) in &rows {
                let name = escaped(source.as_os_str().as_bytes());
                if wanted != found {
                    out.line(format_args!("{}: {name}: {found}", "differs".red().bold()))?;
                } else if !self.work.quiet {
                    out.line(format_args!("{}: {name}", "same".green().bold()))?;
                }
            }
            out.finish()?;
        }
        Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Entry of `digest --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    #[serde(flatten)]
    source: json::Bytes<'a, json::Source>,
    /// Digest of the source; [digest.md](../formats/digest.md) specifies it.
    digest: String,
    /// With `--depth`: digests of directories, the root with an empty path first.
    #[serde(skip_serializing_if = "Option::is_none")]
    directories: Option<Vec<Directory>>,
    /// With `--check` and `--check-list`: the digest that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    /// With `--check` and `--check-list`: true if both are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    same: Option<bool>,
}

/// Digest of a directory.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Directory {
    #[serde(flatten)]
    path: ImagePath,
    /// Digest that the directory would have by itself.
    digest: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_a_list_or_changes_to_the_default() {
        let spelled = |typed| parse_facts(typed).map(DigestFacts::spelled);
        assert_eq!(spelled("links,mode").as_deref(), Ok("mode+links"));
        assert_eq!(spelled("+nanos,-root").as_deref(), Ok("mode+owner+mtime+nanos+xattrs+links"));
        assert_eq!(spelled("none").as_deref(), Ok("none"));
        assert_eq!(spelled("all").as_deref(), Ok("mode+owner+mtime+nanos+xattrs+links+root"));
        for bad in ["", "size", "+nanos,root", "mode,", "+"] {
            assert!(parse_facts(bad).is_err(), "{bad}");
        }
    }
}
