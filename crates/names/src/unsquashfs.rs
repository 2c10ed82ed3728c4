//! unsquashfs and sqfscat of squashfs-tools 4.7.

use crate::common::globs::{Kind, PathPatterns, regex};
use crate::common::listing::{Lines, Lister, directory_lens};
use crate::common::numbers::size;
use crate::common::parse::{Given, Row, Style, Takes, acts, ignored, parse};
use crate::common::teller::{Form, Teller};
use crate::common::users::Ids;
use crate::common::{selected, when};
use crate::squash::modes::Modes;
use crate::squash::{follow, help, superblock, unpseudo};
use packfs::read::LoadedVolume;
use packfs::sink::{Existing, LossKind, OwnerPolicy, UnpackOptions, UnpackReport};
use packfs::{
    Edited, Error, FileType, ImagePath, Node, NodeId, NodeKind, OpenOptions, Opened, Progress, Result,
    ResultExt, Timestamp, Tree,
};
use packfs_terminal::{Outcome, report};
use regex::bytes::Regex;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::num::NonZeroU16;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const LONG: [&str; 3] = ["-lls", "-llc", "-linfo"];

/// Exit code of a partial success.
const IN_PART: u8 = 2;

pub const TABLES: &[&[Row]] = &[ROWS];

const ROWS: &[Row] = &[
    acts("-dest -d", Takes::One),
    acts("-max-depth -max", Takes::One),
    acts("-excludes", Takes::Nothing),
    acts("-exclude-list -ex", Takes::List),
    acts("-extract-file -e -ef", Takes::One),
    acts("-exclude-file -excf -exc", Takes::One),
    acts("-match", Takes::Nothing),
    acts("-follow-symlinks -follow -L", Takes::Nothing),
    acts("-missing-symlinks -missing", Takes::Nothing),
    acts("-no-wildcards -no-wild", Takes::Nothing),
    acts("-regex -r", Takes::Nothing),
    acts("-all-time -all", Takes::One),
    acts("-cat", Takes::Nothing),
    acts("-force -f", Takes::Nothing),
    acts("-pf -pseudo-file", Takes::One),
    acts("-stat -s", Takes::Nothing),
    acts("-info -i", Takes::Nothing),
    acts("-linfo -li", Takes::Nothing),
    acts("-ls -l", Takes::Nothing),
    acts("-lls -ll", Takes::Nothing),
    acts("-llnumeric -lln", Takes::Nothing),
    acts("-lc", Takes::Nothing),
    acts("-llc", Takes::Nothing),
    acts("-full-precision -full", Takes::Nothing),
    acts("-UTC", Takes::Nothing),
    acts("-mkfs-time -fstime", Takes::Nothing),
    acts("-no-xattrs -no", Takes::Nothing),
    acts("-xattrs -x", Takes::Nothing),
    acts("-user-xattrs -u", Takes::Nothing),
    acts("-xattrs-exclude", Takes::One),
    acts("-xattrs-include", Takes::One),
    acts("-processors -p", Takes::One),
    ignored("-mem -mem-percent -data-queue -da -frag-queue -fr -max-files", Takes::One),
    acts("-mem-default", Takes::Nothing),
    acts("-force-uid", Takes::One),
    acts("-force-gid", Takes::One),
    acts("-force-file-mode", Takes::One),
    acts("-force-dir-mode", Takes::One),
    acts("-quiet -q", Takes::Nothing),
    acts("-no-progress -n", Takes::Nothing),
    acts("-percentage", Takes::Nothing),
    acts("-ignore-errors -ig", Takes::Nothing),
    acts("-strict-errors -st", Takes::Nothing),
    acts("-no-exit-code -no-exit", Takes::Nothing),
    acts("-offset -o", Takes::One),
    acts("-version -v --version", Takes::Nothing),
    acts("-help -h --help", Takes::Nothing),
    acts("-help-all -ha", Takes::Nothing),
    acts("-help-option -ho", Takes::One),
    acts("-help-section -hs", Takes::One),
    ignored("-no-pager", Takes::Nothing),
    ignored("-cols", Takes::One),
];

const CAT_ROWS: &[Row] = &[
    acts("-version -v --version", Takes::Nothing),
    acts("-processors -p", Takes::One),
    ignored("-mem -mem-percent", Takes::One),
    acts("-mem-default", Takes::Nothing),
    acts("-offset -o", Takes::One),
    acts("-ignore-errors -ig", Takes::Nothing),
    acts("-strict-errors -st", Takes::Nothing),
    acts("-no-exit-code -no-exit", Takes::Nothing),
    acts("-no-wildcards -no-wild", Takes::Nothing),
    acts("-regex -r", Takes::Nothing),
    acts("-help -h --help", Takes::Nothing),
    acts("-help-all -ha", Takes::Nothing),
    acts("-help-option -ho", Takes::One),
    acts("-help-section -hs", Takes::One),
    ignored("-no-pager", Takes::Nothing),
    ignored("-cols", Takes::One),
];

pub fn run(args: &[OsString]) -> Outcome {
    let given = parse(&[ROWS], Style::OptionsFirst, args)?;
    if let Some(outcome) = help::answered("unsquashfs", &given, &[ROWS]) {
        return outcome;
    }
    Job::new(given, "unsquashfs")?.run()
}

pub fn run_cat(args: &[OsString]) -> Outcome {
    let given = parse(&[CAT_ROWS], Style::OptionsFirst, args)?;
    if let Some(outcome) = help::answered("sqfscat", &given, &[CAT_ROWS]) {
        return outcome;
    }
    let job = Job::new(given, "sqfscat")?;
    if job.names.is_empty() {
        return Err(Error::usage("no files specified on command line"));
    }
    job.cat(&job.open()?)
}

struct Job {
    given: Given,
    image: PathBuf,
    names: Vec<Vec<u8>>,
    dest: PathBuf,
}

impl Job {
    fn new(mut given: Given, name: &str) -> Result<Self> {
        if given.operands.is_empty() {
            return Err(Error::usage(format!("SYNTAX: {name} [OPTIONS] FILESYSTEM [files]")));
        }
        let image = PathBuf::from(given.operands.remove(0));
        let names = given.operands.iter().map(|name| name.as_bytes().to_vec()).collect();
        let dest = given.last("-dest").map_or_else(|| PathBuf::from("squashfs-root"), PathBuf::from);
        Ok(Job { given, image, names, dest })
    }

    fn open(&self) -> Result<Opened> {
        let offset = self.given.text("-offset")?.map(|text| size("-offset", text)).transpose()?.unwrap_or(0);
        let jobs = self.given.number::<NonZeroU16>("-processors")?.map_or(0, |jobs| jobs.get().into());
        let image = &self.image;
        std::fs::File::open(image).or_io(|| format!("Could not open {}", image.display()))?;
        let opened = OpenOptions::new().offset(offset).jobs(jobs).outermost().open(image);
        let opened = opened.map_err(|error| {
            let text = format!("Can't find a valid SQUASHFS superblock on {}", image.display());
            Error::failed(text).hint(error)
        })?;
        if !opened.format().name().starts_with("squashfs") {
            let text = format!("Can't find a valid SQUASHFS superblock on {}", image.display());
            return Err(Error::failed(text).hint(format!("it is {}", opened.format().name())));
        }
        Ok(opened)
    }

    fn run(&self) -> Outcome {
        let wanted = self.wanted()?;
        let opened = self.open()?;
        let clock = if self.given.has("-UTC") { when::Clock::utc() } else { when::Clock::local() };
        if self.given.has("-mkfs-time") {
            report::line(superblock::Superblock::read(&opened)?.made_at)?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.given.has("-stat") {
            report::print(superblock::Superblock::read(&opened)?.stat(&opened, &self.image, &clock)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.given.has("-cat") {
            return self.cat(&opened);
        }
        let is_list = self.is_list();
        let is_quiet = self.given.has("-quiet");
        let is_listing = is_list || self.given.has("-info") || self.given.has("-linfo");
        let form = if is_listing {
            Form::Silent
        } else if self.given.has("-percentage") {
            Form::Percentage
        } else if self.given.has("-no-progress") {
            Form::Silent
        } else {
            Form::Bar
        };
        let teller = Teller::new(form);
        let loaded = opened.load_what_is_there(&teller)?;
        let damaged = loaded.faults.count() > 0;
        let needs_lens = LONG.iter().chain(&["-llnumeric", "-lc"]).any(|name| self.given.has(name));
        let lens = if needs_lens { directory_lens(&loaded.tree) } else { HashMap::new() };
        let loaded = self.chosen(loaded, wanted)?;
        if let Some(file) = self.given.last("-pf") {
            let is_whole = unpseudo::write(&opened, &loaded, Path::new(file))?;
            return Ok(ExitCode::from(u8::from(damaged || !is_whole)));
        }
        if is_list {
            self.list(&loaded.tree, clock, &lens)?;
            return Ok(ExitCode::from(self.code(damaged)));
        }
        if !is_quiet {
            self.tell_start(&opened, &loaded.tree)?;
        }
        if is_listing {
            self.list(&loaded.tree, clock, &lens)?;
        }
        let loaded = if packfs::mount::is_root() {
            loaded
        } else {
            // The bits would be those of another owner.
            selected::selected(loaded, |_, _, edit| {
                edit.meta.mode &= 0o1777;
                true
            })?
        };
        let result = self.unpack(&opened, &loaded, &teller);
        teller.finish();
        if let (Err(_), Some(code)) = (&result, teller.stopped()) {
            return Ok(ExitCode::from(code));
        }
        let unpacked = result?;
        if !is_quiet {
            report::print(created(&loaded.tree))?;
        }
        let lost = self.tell_losses(&unpacked);
        Ok(ExitCode::from(self.code(damaged || lost)))
    }

    fn code(&self, in_part: bool) -> u8 {
        if in_part && !self.given.has("-no-exit-code") { IN_PART } else { 0 }
    }

    fn list(&self, tree: &Tree, clock: when::Clock, lens: &HashMap<ImagePath, usize>) -> Result<()> {
        let given = &self.given;
        let lines = if given.has("-llnumeric") {
            Lines::Numbers
        } else if LONG.iter().any(|name| given.has(name)) {
            Lines::Long
        } else {
            Lines::Names
        };
        let is_concise = given.has("-lc") || given.has("-llc");
        let lister = Lister {
            prefix: &self.dest,
            lines,
            is_concise,
            is_full: given.has("-full-precision"),
            clock,
            lens,
        };
        lister.print(tree)
    }

    fn kind(&self) -> Result<Kind> {
        let is_missing = self.given.has("-missing-symlinks") && !self.given.has("-follow-symlinks");
        let is_plain = is_missing || ["-no-wildcards", "-match"].iter().any(|name| self.given.has(name));
        match (self.given.has("-regex"), is_plain) {
            (true, true) => Err(Error::usage("Both -no-wildcards and -regex should not be set")),
            (true, false) => Ok(Kind::Regex),
            (false, true) => Ok(Kind::Exact),
            (false, false) => Ok(Kind::Glob),
        }
    }

    fn is_list(&self) -> bool {
        ["-ls", "-lls", "-llnumeric", "-lc", "-llc"].iter().any(|name| self.given.has(name))
    }

    /// Options that do not depend on the image.
    fn wanted(&self) -> Result<Wanted> {
        if self.is_list() && self.given.has("-pf") {
            return Err(Error::usage("lists (-ls, -lls etc.) and -pf cannot be printed together"));
        }
        let milder = ["-ignore-errors", "-no-exit-code"].into_iter().find(|name| self.given.has(name));
        if let Some(milder) = milder.filter(|_| self.given.has("-strict-errors")) {
            return Err(Error::usage(format!("Both -strict-errors and {milder} should not be set")));
        }
        if self.dest.as_os_str().is_empty() && !self.is_list() {
            return Err(Error::usage("-dest: the path is empty; . is the current directory"));
        }
        let (mut extract, mut exclude) = (PathPatterns::default(), PathPatterns::default());
        let (kind, is_exclude) = (self.kind()?, self.given.has("-excludes"));
        let mut take = |name: &[u8], is_exclude: bool, is_followed: bool| {
            let (what, rest) = if is_exclude {
                ("exclude", name.strip_prefix(b"... ").unwrap_or(name))
            } else {
                ("extract", name)
            };
            if rest.iter().all(|&byte| byte == b'/') {
                return Err(Error::usage(format!("Invalid {what} file {}", packfs::escaped(name))));
            }
            match (is_followed, is_exclude) {
                (true, _) => Ok(()),
                (false, true) => exclude.add(name, kind),
                (false, false) => extract.add_rooted(name, kind),
            }
        };
        let follows = ["-match", "-follow-symlinks", "-missing-symlinks"];
        let follows = !is_exclude && follows.iter().any(|name| self.given.has(name));
        self.names.iter().try_for_each(|name| take(name, is_exclude, follows))?;
        for (option, is_exclude) in [("-extract-file", false), ("-exclude-file", true)] {
            for file in self.given.all(option) {
                let text = std::fs::read(file).or_io(|| format!("cannot open {file:?}"))?;
                let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_start);
                let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
                lines.try_for_each(|line| take(line, is_exclude, false))?;
            }
        }
        self.given.all("-exclude-list").try_for_each(|name| take(name.as_bytes(), true, false))?;
        let id = |name: &str, ids: Ids| self.given.text(name)?.map(|text| ids.id(text)).transpose();
        let mode = |name: &str| self.given.text(name)?.map(str::parse).transpose();
        let compiled = |name: &str| self.given.last(name).map(|text| regex(text.as_bytes())).transpose();
        let includes = ["-xattrs-include", "-user-xattrs"];
        let include = self.given.options.iter().rev().find(|(name, _)| includes.contains(name));
        let time = self.given.text("-all-time")?.map(|text| when::seconds("-all-time", text)).transpose()?;
        Ok(Wanted {
            extract,
            exclude,
            follows: follows.then_some(kind),
            depth: self.given.number("-max-depth")?.unwrap_or(usize::MAX),
            mtime: time.map(Timestamp::from_seconds),
            uid: id("-force-uid", Ids::users())?,
            gid: id("-force-gid", Ids::groups())?,
            file_mode: mode("-force-file-mode")?,
            dir_mode: mode("-force-dir-mode")?,
            xattrs_exclude: compiled("-xattrs-exclude")?,
            xattrs_include: match include {
                Some(("-user-xattrs", _)) => Some(regex(b"^user.")?),
                _ => compiled("-xattrs-include")?,
            },
        })
    }

    /// Adds the files of a path, with the links on the way.
    ///
    /// Errors: `Failed` for a broken path, if the options say so.
    fn follow(&self, tree: &Tree, name: &[u8], kind: Kind, extract: &mut PathPatterns) -> Result<()> {
        let found = follow::followed(tree, name, kind)?;
        let is_part = |path: &ImagePath| !path.is_root();
        if !found.is_broken && !found.ends.is_empty() && found.ends.iter().all(is_part) {
            found.ends.into_iter().chain(found.links).for_each(|path| extract.add_path(path));
            return Ok(());
        }
        let text = format!("Extract filename {} can't be resolved", packfs::escaped(name));
        if self.given.has("-match") || self.given.has("-missing-symlinks") {
            return Err(Error::failed(text));
        }
        report::note(&text);
        extract.add_rooted(name, kind)
    }

    fn chosen(&self, loaded: LoadedVolume, mut wanted: Wanted) -> Result<LoadedVolume> {
        if let Some(kind) = wanted.follows {
            let mut names = self.names.iter();
            names.try_for_each(|name| self.follow(&loaded.tree, name, kind, &mut wanted.extract))?;
        }
        selected::selected(loaded, |path, node, edit| wanted.change(path, node, edit))
    }

    fn tell_start(&self, opened: &Opened, tree: &Tree) -> Result<()> {
        let jobs = self.given.number::<NonZeroU16>("-processors")?.map(|jobs| jobs.get().into());
        let count = jobs.unwrap_or_else(packfs::processor_count);
        let block =
            superblock::Superblock::read(opened).map_or(1 << 17, |found| u64::from(found.block_size)).max(1);
        let lens =
            tree.nodes().map(|(_, node)| if let NodeKind::File { len, .. } = node.kind { len } else { 0 });
        let blocks = lens.fold(0_u64, |sum, len| sum.saturating_add(len.div_ceil(block)));
        let inodes = other_names(tree);
        let s = if count == 1 { "" } else { "s" };
        report::print(format_args!(
            "Parallel unsquashfs: Using {count} processor{s}\n{inodes} inodes ({blocks} blocks) to write\n\n"
        ))
    }

    fn unpack(&self, opened: &Opened, loaded: &LoadedVolume, teller: &dyn Progress) -> Result<UnpackReport> {
        let is_strict = self.given.has("-strict-errors");
        let (dest, replaces) = (&self.dest, self.given.has("-force"));
        if replaces {
            refuse_other_directories(&loaded.tree, dest)?;
        } else {
            refuse_what_is_there(&loaded.tree, dest)?;
        }
        let options = UnpackOptions {
            existing: if replaces { Existing::Replace } else { Existing::Merge },
            owner: if packfs::mount::is_root() { OwnerPolicy::Auto } else { OwnerPolicy::Current },
            xattrs: has_attributes(&self.given),
            strict: is_strict,
            fail_fast: is_strict,
            ..UnpackOptions::default()
        };
        packfs::sink::unpack(opened.engine(), loaded, dest, &options, teller)
    }

    /// Returns true if the exit code reports the losses.
    fn tell_losses(&self, report: &UnpackReport) -> bool {
        let mut told = false;
        for row in &report.not_restored {
            let what = match row.kind {
                LossKind::Device => "create_inode: failed to create character device",
                LossKind::SpecialFile => "create_inode: failed to create fifo",
                LossKind::Xattr => "write_xattr: failed to write xattrs of",
                _ => "set_attributes: failed to set attributes of",
            };
            told = true;
            for example in &row.examples {
                let path = self.dest.join(std::ffi::OsStr::from_bytes(example.path.as_bytes()));
                report::note(format_args!("{what} {}, because {}", path.display(), example.why));
            }
            let more = row.count.saturating_sub(row.examples.len() as u64);
            if more > 0 {
                report::note(format_args!("{what} {more} more files"));
            }
        }
        told && !self.given.has("-ignore-errors")
    }

    fn cat(&self, opened: &Opened) -> Outcome {
        let loaded = opened.load_what_is_there(&report::PrintWarnings)?;
        let mut out = report::stdout_bytes()?;
        let (kind, mut failed) = (self.kind()?, false);
        let mut complain = |text: String| {
            report::note(format_args!("cat: {text}"));
            failed = true;
        };
        for name in &self.names {
            let found = follow::followed(&loaded.tree, name, kind)?;
            let shown = packfs::escaped(name).to_string();
            let shown = shown.trim_start_matches('/');
            match (found.ends.is_empty(), found.is_broken) {
                (true, _) => complain(format!("no matches for /{shown}")),
                (false, true) => complain(format!("/{shown} failed to resolve in part")),
                _ => {}
            }
            for path in found.ends {
                match loaded.tree.find(&path).map(|id| loaded.tree.node(id).kind.file_type()) {
                    Some(FileType::File) => {
                        opened.copy_file(&path, &mut out)?;
                    }
                    Some(FileType::Directory) => complain(format!("/{path} is a directory")),
                    _ => complain(format!("/{path} is not a regular file")),
                }
            }
        }
        out.flush().or_io(report::cannot_write)?;
        Ok(ExitCode::from(self.code(failed)))
    }
}

struct Wanted {
    /// Empty for everything.
    extract: PathPatterns,
    exclude: PathPatterns,
    /// Kind of the names on the command line, if links in them are extracted, too.
    follows: Option<Kind>,
    depth: usize,
    mtime: Option<Timestamp>,
    uid: Option<u32>,
    gid: Option<u32>,
    file_mode: Option<Modes>,
    dir_mode: Option<Modes>,
    xattrs_exclude: Option<Regex>,
    xattrs_include: Option<Regex>,
}

impl Wanted {
    /// Returns false to drop a node.
    fn change(&self, path: &ImagePath, node: &Node, edit: &mut Edited) -> bool {
        let is_wanted = self.extract.is_empty()
            || path.is_root()
            || self.extract.cover(path)
            || node.is_dir() && self.extract.lead_through(path);
        if !is_wanted || path.names().count() > self.depth || self.exclude.cover(path) {
            return false;
        }
        let meta = &mut edit.meta;
        meta.mtime = self.mtime.unwrap_or(meta.mtime);
        meta.owner.uid = self.uid.unwrap_or(meta.owner.uid);
        meta.owner.gid = self.gid.unwrap_or(meta.owner.gid);
        let change = if node.is_dir() { &self.dir_mode } else { &self.file_mode };
        meta.mode = change.as_ref().map_or(meta.mode, |change| change.apply(meta.mode, node.is_dir()));
        edit.xattrs.retain(|name, _| {
            self.xattrs_exclude.as_ref().is_none_or(|regex| !regex.is_match(name))
                && self.xattrs_include.as_ref().is_none_or(|regex| regex.is_match(name))
        });
        true
    }
}

/// Refuses a target that has an entry of the root; other entries are kept.
fn refuse_what_is_there(tree: &Tree, dest: &Path) -> Result<()> {
    for entry in tree.entries(NodeId::ROOT) {
        let place = dest.join(std::ffi::OsStr::from_bytes(entry.name));
        if place.symlink_metadata().is_ok() {
            let what = if tree.node(entry.node).is_dir() { "directory" } else { "file" };
            let error = Error::failed(format!("{what} {place:?} already exists"));
            return Err(error.hint("-force replaces files, and unpacks into directories that are there"));
        }
    }
    Ok(())
}

fn refuse_other_directories(tree: &Tree, dest: &Path) -> Result<()> {
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        let place = dest.join(std::ffi::OsStr::from_bytes(path.as_bytes()));
        let is_other = || place.symlink_metadata().is_ok_and(|found| !found.is_dir());
        if !path.is_root() && tree.node(id).is_dir() && is_other() {
            let error = Error::failed(format!("{place:?} is in the place of a directory"));
            return Err(error.hint("links of the target are not followed: remove it"));
        }
    }
    Ok(())
}

fn other_names(tree: &Tree) -> u64 {
    let (mut names, mut walk) = (0, tree.walk());
    while let Some((_, id)) = walk.next() {
        names += u64::from(!tree.node(id).is_dir());
    }
    names
}

fn created(tree: &Tree) -> String {
    let mut counts = [0_u64; 7];
    for (id, node) in tree.nodes() {
        let row = match node.kind.file_type() {
            FileType::File => 0,
            FileType::Directory => 1,
            FileType::Symlink => 2,
            FileType::BlockDevice | FileType::CharDevice => 3,
            FileType::Fifo => 4,
            FileType::Socket => 5,
        };
        counts[row] += 1;
        counts[6] += u64::from(!node.is_dir() && id != NodeId::ROOT);
    }
    counts[6] = other_names(tree).saturating_sub(counts[6]);
    let words = [
        ("file", "files"),
        ("directory", "directories"),
        ("symlink", "symlinks"),
        ("device", "devices"),
        ("fifo", "fifos"),
        ("socket", "sockets"),
        ("hardlink", "hardlinks"),
    ];
    let lines = words
        .iter()
        .zip(counts)
        .map(|((one, many), count)| format!("created {count} {}\n", if count == 1 { one } else { many }));
    std::iter::once("\n".to_owned()).chain(lines).collect()
}

/// The last option about attributes counts, including a selection of some.
fn has_attributes(given: &Given) -> bool {
    let last = given.options.iter().rev().find(|(name, _)| name.contains("xattrs"));
    last.is_none_or(|(name, _)| *name != "-no-xattrs")
}
