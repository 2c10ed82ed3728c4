//! mksquashfs of squashfs-tools 4.7.

use crate::common::globs::{Kind, PathPatterns};
use crate::common::parse::{Given, Row, Style, Takes, acts, ignored, parse, refused, switches};
use crate::common::teller::{Form, Teller, told};
use crate::common::users::Ids;
use crate::common::{android, block_list, trees};
use crate::squash::options::{self, Metadata};
use crate::squash::pseudo::{Defaults, Pseudo};
use crate::squash::{actions, help, sources, streamed};
use packfs::source::{ArchiveKind, Loaded, Selection, Shape, TarReading, Whiteouts, shape_tree};
use packfs::{
    Error, MadeAt, NodeKind, Pack, PackOptions, PackReport, Progress, Result, ResultExt, Timestamp,
};
use packfs_terminal::{Outcome, report};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

const RECOVER: &str = "packfs replaces an image only when the new one is complete, so nothing needs recovery";
const DEREF_PATH: &str = "-dereference follows all links; -e leaves one out, and -p adds what it leads to";

pub const TABLES: &[&[Row]] = &[options::ROWS, ROWS];

const ROWS: &[Row] = &[
    acts("-noappend", Takes::Nothing),
    acts("-e", Takes::Rest),
    acts("-wildcards", Takes::Nothing),
    acts("-sort", Takes::One),
    acts("-max-depth", Takes::One),
    switches("-one-file-system", "one-file-system"),
    switches("-one-file-system-x", "one-file-system"),
    acts("-keep-as-directory", Takes::Nothing),
    switches("-dereference", "follow-symlinks"),
    switches("-deref", "follow-symlinks").taking(Takes::One),
    refused("-deref-path", Takes::One, DEREF_PATH),
    acts("-no-strip -tarstyle", Takes::Nothing),
    acts("-cpiostyle", Takes::Nothing),
    acts("-cpiostyle0", Takes::Nothing),
    acts("-tar", Takes::Nothing),
    acts("-zip", Takes::Nothing),
    ignored("-root-becomes", Takes::One),
    ignored("-no-recovery", Takes::Nothing),
    ignored("-recovery-path", Takes::One),
    refused("-recover", Takes::One, RECOVER),
    ignored("-single-reader", Takes::Nothing),
    ignored("-small-readers -block-readers -read-queue -write-queue -fragment-queue", Takes::One),
    acts("-action -a", Takes::One),
    acts("-log-action -va", Takes::One),
    acts("-true-action -ta", Takes::One),
    acts("-false-action -fa", Takes::One),
    acts("-action-file -af", Takes::One),
    acts("-log-action-file -vaf", Takes::One),
    acts("-true-action-file -taf", Takes::One),
    acts("-false-action-file -faf", Takes::One),
    ignored("-log", Takes::One),
    acts("-context-file", Takes::One),
    acts("-mount-point", Takes::One),
    acts("-fs-config-file", Takes::One),
    acts("-android-fs-config", Takes::Nothing),
    acts("-block-map", Takes::One),
    ignored("-product-out -t -whitelist", Takes::One),
];

const STAR_ROWS: &[Row] = &[acts("-force", Takes::Nothing)];

struct Job {
    given: Given,
    sources: Vec<PathBuf>,
    image: PathBuf,
    /// Globs to exclude; plain paths exclude files of this machine instead.
    excludes: Vec<Vec<u8>>,
    archive: Option<ArchiveKind>,
    is_star: bool,
}

#[derive(Clone, Copy)]
struct Newest {
    newest: i64,
    /// Time of nodes without one.
    own_time: i64,
    is_root_made: bool,
}

pub fn run(args: &[OsString]) -> Outcome {
    let given = parse(TABLES, Style::OperandsFirst, args)?;
    if let Some(outcome) = help::answered("mksquashfs", &given, TABLES) {
        return outcome;
    }
    if let Some(file) = given.last("-fix") {
        return streamed::fix(Path::new(file)).map(|()| ExitCode::SUCCESS);
    }
    let mut sources: Vec<PathBuf> = given.operands.iter().map(PathBuf::from).collect();
    let Some(image) = sources.pop().filter(|_| !sources.is_empty()) else {
        return Err(Error::usage("SYNTAX: mksquashfs source1 source2 ... FILESYSTEM [OPTIONS]"));
    };
    // A pipe gets the complete image, too.
    let image = if given.has("-stream") { PathBuf::from("-") } else { image };
    let mut excludes: Vec<Vec<u8>> = given.all("-e").map(|text| text.as_bytes().to_vec()).collect();
    read_excludes(&given, &mut excludes)?;
    let archive = if given.has("-zip") {
        Some(ArchiveKind::Zip)
    } else if given.has("-tar") {
        Some(ArchiveKind::Tar)
    } else {
        None
    };
    Job { given, sources, image, excludes, archive, is_star: false }.run()
}

pub fn run_star(args: &[OsString]) -> Outcome {
    let mut given = parse(&[STAR_ROWS, options::ROWS], Style::OptionsFirst, args)?;
    if let Some(outcome) = help::answered("sqfstar", &given, &[STAR_ROWS, options::ROWS]) {
        return outcome;
    }
    if let Some(file) = given.last("-fix") {
        return streamed::fix(Path::new(file)).map(|()| ExitCode::SUCCESS);
    }
    if given.operands.is_empty() {
        return Err(Error::usage("SYNTAX: sqfstar [OPTIONS] FILESYSTEM [list of exclude dirs/files]"));
    }
    let image = PathBuf::from(given.operands.remove(0));
    let image = if given.has("-stream") { PathBuf::from("-") } else { image };
    let mut excludes: Vec<Vec<u8>> = given.operands.iter().map(|text| text.as_bytes().to_vec()).collect();
    read_excludes(&given, &mut excludes)?;
    Job { given, sources: Vec::new(), image, excludes, archive: Some(ArchiveKind::Tar), is_star: true }.run()
}

fn read_excludes(given: &Given, excludes: &mut Vec<Vec<u8>>) -> Result<()> {
    for path in given.all("-ef") {
        let text = std::fs::read(path).or_io(|| format!("cannot open exclude file {path:?}"))?;
        let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_start);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
        // A backslash escapes the comment character, and itself.
        excludes.extend(lines.map(|line| line.strip_prefix(b"\\").unwrap_or(line).to_vec()));
    }
    Ok(())
}

impl Job {
    fn run(&self) -> Outcome {
        self.refuse_contradictions()?;
        self.refuse_to_append()?;
        let is_quiet = self.given.has("-quiet") || self.image == Path::new("-");
        let form = if self.given.has("-percentage") {
            Form::Percentage
        } else if self.given.switched("-progress", "-no-progress", !self.given.has("-info")) {
            Form::Bar
        } else {
            Form::Silent
        };
        let end = |packed: PackReport| if is_quiet { Ok(()) } else { report::print(summary(&packed)) };
        told(form, |teller| self.packed(teller, is_quiet), end)
    }

    fn refuse_contradictions(&self) -> Result<()> {
        // A list in a file can be beside the image.
        let list = if self.given.has("-info-file") { "-percentage" } else { "-info" };
        for (one, others) in [
            ("-no-progress", &["-percentage", "-progress"][..]),
            ("-stream", &["-percentage", "-progress", "-offset", list]),
        ] {
            let other = others.iter().find(|other| self.given.has(one) && self.given.has(other));
            if let Some(other) = other {
                return Err(Error::usage(format!("{other} cannot be used with {one}")));
            }
        }
        Ok(())
    }

    fn refuse_to_append(&self) -> Result<()> {
        let replaces = self.given.has("-noappend") || self.given.has("-force");
        let there = std::fs::metadata(&self.image).ok().filter(|_| !replaces);
        let Some(there) = there.filter(|there| there.len() > 0 || !there.is_file()) else { return Ok(()) };
        if self.is_star {
            let error = Error::usage(format!("{:?} exists", self.image));
            return Err(error.hint("to force sqfstar to write to it, use -force"));
        }
        let is_pipe =
            !there.is_file() && !std::os::unix::fs::FileTypeExt::is_block_device(&there.file_type());
        if is_pipe {
            return Ok(());
        }
        let opened = packfs::OpenOptions::new().outermost().open(&self.image);
        let is_image = opened.is_ok_and(|opened| opened.format().name() == "squashfs");
        if !is_image {
            let error = Error::usage(format!(
                "failed to read existing filesystem {:?} - will not overwrite - ABORTING!",
                self.image
            ));
            return Err(error.hint("to force mksquashfs to write to it, use -noappend"));
        }
        let image = self.image.display();
        let error = Error::usage(format!("{image} exists, and appending to an image is not supported"));
        Err(error.hint(format!(
            "-noappend replaces it; packfs pack --base {image} SOURCE NEW copies what is unchanged"
        )))
    }

    fn packed(&self, teller: &Teller, is_quiet: bool) -> Result<PackReport> {
        let (users, groups) = (Ids::users(), Ids::groups());
        let metadata = Metadata::of(&self.given, &users, &groups)?;
        let exports = if self.is_star { "-O exports=off" } else { "-O exports=on" };
        let tails = if self.archive.is_some() { "-O fragments=always" } else { "-O fragments=on" };
        let mut options = options::pack_options(&self.given, &[exports, tails])?;
        let mut pseudo = Pseudo::new(&users, &groups)?;
        for text in self.given.all("-pd") {
            pseudo.set_above(text.as_bytes())?;
        }
        for (name, value) in &self.given.options {
            match *name {
                "-p" => pseudo.add(value.as_bytes())?,
                "-pf" => pseudo.add_file(Path::new(value))?,
                _ => {}
            }
        }
        let actions = actions::Actions::of(&self.given, &users, &groups)?;
        let sources = self.sources();
        if !self.is_star {
            self.check_archive()?;
            sources.check(pseudo.makes_root(), self.given.all("-pf").any(|file| file == "-"))?;
        }
        if !is_quiet {
            let block = options.block_size.unwrap_or_default();
            let count = if options.jobs == 0 { packfs::processor_count() } else { options.jobs };
            let image = self.image.display();
            report::line(format_args!(
                "Parallel mksquashfs: Using {count} processors\n\
                 Creating 4.0 filesystem on {image}, block size {block}."
            ))?;
        }
        let (loaded, is_root_made) = self.loaded(&options, &metadata, &sources, teller)?;
        let newest = metadata.times.newest(&loaded.tree, is_root_made, pseudo.newest());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        options.made_at = MadeAt::Seconds(metadata.times.made_at.map_or(now, |time| time.seconds(newest)));
        let own_time = if metadata.times.is_reproducible { newest } else { now };
        let times = Newest { newest, own_time, is_root_made };
        let loaded = self.changed(loaded, &metadata, &actions, times)?;
        let loaded = self.with_pseudo(loaded, &metadata, &mut pseudo, times)?;
        for message in &pseudo.ignored {
            if self.given.has("-exit-on-error") {
                return Err(Error::failed(message));
            }
            teller.warn(message);
        }
        self.tell_names(&loaded)?;
        let order = self.order(&loaded)?;
        options.order_file = order.as_ref().map(|file| file.path().to_owned());
        self.finish(loaded, options, teller)
    }

    fn finish(&self, loaded: Loaded, options: PackOptions, teller: &Teller) -> Result<PackReport> {
        let offset = options.offset;
        let report = Pack::of_loaded(Arc::new(loaded), &self.image).options(options).run_with(teller)?;
        if self.given.has("-exit-on-error")
            && let Some(first) = report.skipped.first()
        {
            return Err(Error::failed(first));
        }
        if let Some(map) = self.given.last("-block-map") {
            let at = self.given.last("-mount-point").map(OsStrExt::as_bytes).unwrap_or_default();
            block_list::write(&self.image, offset, at, Path::new(map))?;
        }
        Ok(report)
    }

    fn selection(&self, shape: &mut Shape) -> Result<()> {
        let kind = options::exclude_kind(&self.given);
        let kind = if self.archive.is_some() && kind == Kind::Exact { Kind::Glob } else { kind };
        let depth = self.given.number::<usize>("-max-depth")?.unwrap_or(usize::MAX);
        let mut patterns = PathPatterns::default();
        for text in &self.excludes {
            if kind == Kind::Exact {
                shape
                    .skip
                    .extend(sources::identities(&self.sources, Path::new(std::ffi::OsStr::from_bytes(text))));
            } else if text.starts_with(b"/") || text.starts_with(b"./") || text.starts_with(b"../") {
                return Err(Error::usage(
                    "/, ./ and ../ prefixed excludes not supported with -wildcards or -regex options",
                ));
            } else {
                patterns.add(text, kind)?;
            }
        }
        if !patterns.is_empty() || depth < usize::MAX {
            shape.select =
                Some(Selection::new(move |path| path.names().count() > depth || patterns.cover(path)));
        }
        Ok(())
    }

    /// Refuses options that the tool does not support for archives.
    fn check_archive(&self) -> Result<()> {
        let Some(archive) = self.archive else { return Ok(()) };
        let option = if archive == ArchiveKind::Zip { "-zip" } else { "-tar" };
        let refused = |what: &str| Err(Error::usage(format!("{what} is not supported with {option}")));
        match archive {
            ArchiveKind::Zip if self.given.has("-tar") => refused("-tar"),
            ArchiveKind::Tar if self.given.has("-max-depth") => refused("-max-depth"),
            _ if self.given.has("-sort") => refused("-sort"),
            _ if !self.excludes.is_empty() && options::exclude_kind(&self.given) == Kind::Exact => {
                Err(Error::usage(format!("-e and -ef need -wildcards or -regex with {option}")))
            }
            _ => Ok(()),
        }
    }

    fn sources(&self) -> sources::Sources<'_> {
        sources::Sources {
            paths: &self.sources,
            archive: self.archive,
            is_tarstyle: self.given.has("-no-strip"),
            list_end: if self.given.has("-cpiostyle0") {
                Some(0)
            } else if self.given.has("-cpiostyle") {
                Some(b'\n')
            } else {
                None
            },
            keeps_directory: self.given.has("-keep-as-directory"),
        }
    }

    fn loaded(
        &self,
        options: &PackOptions,
        metadata: &Metadata,
        sources: &sources::Sources<'_>,
        teller: &Teller,
    ) -> Result<(Loaded, bool)> {
        let mut shape = Shape {
            keep_going: options.keep_going,
            whiteouts: Some(Whiteouts::Keep),
            archives: self.archive,
            file_contexts: android::file_contexts(&self.given, "-context-file", "-mount-point")?,
            tar: TarReading {
                ignore_zeros: self.given.has("-ignore-zeros"),
                names: !self.given.has("-numeric-owner"),
                skip_unknown: true,
                ..TarReading::default()
            },
            ..options.shape.clone()
        };
        if let Ok(found) = std::fs::metadata(&self.image) {
            shape.skip.push((found.dev(), found.ino()));
        }
        self.selection(&mut shape)?;
        sources.load(&shape, metadata, teller)
    }

    fn changed(
        &self,
        loaded: Loaded,
        metadata: &Metadata,
        actions: &actions::Actions,
        times: Newest,
    ) -> Result<Loaded> {
        let newest = times.newest;
        if self.given.has("-android-fs-config") && !self.given.has("-fs-config-file") {
            return Err(Error::usage("-android-fs-config needs -fs-config-file")
                .hint("packfs has no table of Android's users and permissions"));
        }
        let (loaded, added) = actions.apply(loaded, &self.sources)?;
        let config = android::FsConfig::of(&self.given, "-fs-config-file", "-mount-point")?;
        let (drops_mounts, sources) = (self.given.has("-one-file-system-x"), self.sources());
        let links = !self.given.has("-no-hardlinks");
        let drops_links = match self.given.text("-deref")? {
            Some("keep") => false,
            Some("delete") => true,
            Some(other) => {
                let fault = format!("-deref: \"{other}\" found, keep or delete allowed");
                return Err(Error::usage(fault));
            }
            None => self.given.has("-dereference"),
        };
        trees::edited(loaded, links, |path, node, edit| {
            if drops_links && matches!(node.kind, NodeKind::Symlink(_)) {
                let text = format!("/{path}: the symbolic link leads to nothing, and is left out");
                report::note(&text);
                return Ok(false);
            }
            if drops_mounts && node.is_dir() && sources.is_mount_point(path) {
                return Ok(false);
            }
            config.apply(path, edit);
            if path.is_root() && times.is_root_made || edit.meta.mtime == Metadata::UNKNOWN {
                edit.meta.mtime = Timestamp::from_seconds(times.own_time);
            }
            if path.is_root() {
                metadata.root(&mut edit.meta, newest);
            }
            edit.meta = metadata.forced(edit.meta, node.is_dir());
            edit.meta.mtime = metadata.times.of_node(edit.meta.mtime, newest);
            let takes_user = matches!(node.kind, NodeKind::Directory | NodeKind::File { .. });
            metadata.xattrs(&mut edit.xattrs, takes_user);
            edit.xattrs.extend(added.get(path).into_iter().flatten().cloned());
            Ok(true)
        })
    }

    fn with_pseudo(
        &self,
        loaded: Loaded,
        metadata: &Metadata,
        pseudo: &mut Pseudo<'_>,
        Newest { newest, own_time, .. }: Newest,
    ) -> Result<Loaded> {
        if pseudo.is_empty() {
            return Ok(loaded);
        }
        let meta = |meta: packfs::Meta, is_dir: bool| {
            let forced = if metadata.pseudo_override { meta } else { metadata.forced(meta, is_dir) };
            packfs::Meta { mtime: metadata.times.of_node(forced.mtime, newest), ..forced }
        };
        if metadata.drops_xattrs() {
            pseudo.drop_xattrs();
        }
        let has_root = self.sources().has_root();
        let lines = pseudo.manifest(
            &loaded.tree,
            has_root,
            &Defaults { now: own_time, meta: &meta, xattrs: &|takes_user| metadata.added_xattrs(takes_user) },
        )?;
        let mut shape = Shape::default();
        shape.additions.add(&lines, "pseudo definition")?;
        let loaded = shape_tree(&loaded.tree, loaded.contents, &shape)?;
        let time = metadata.times.root.filter(|_| metadata.times.inode.is_none());
        trees::edited(loaded, !self.given.has("-no-hardlinks"), |path, _, edit| {
            if let Some(time) = time
                && path.is_root()
            {
                edit.meta.mtime = Timestamp::from_seconds(time.seconds(newest));
            }
            Ok(true)
        })
    }

    fn tell_names(&self, loaded: &Loaded) -> Result<()> {
        if !self.given.has("-info") && !self.given.has("-info-file") {
            return Ok(());
        }
        let mut text = String::new();
        let mut walk = loaded.tree.walk();
        while let Some((path, id)) = walk.next() {
            let kind = &loaded.tree.node(id).kind;
            let word = kind.file_type().word();
            // Writing to a string cannot fail.
            let _ = match kind {
                NodeKind::File { len, .. } => writeln!(text, "file /{path}, uncompressed size {len} bytes"),
                _ if path.is_root() => Ok(()),
                _ => writeln!(text, "{word} /{path}"),
            };
        }
        match self.given.last("-info-file") {
            Some(file) => {
                let cannot = || format!("cannot create {file:?}");
                File::create_new(file).or_io(cannot)?.write_all(text.as_bytes()).or_io(cannot)
            }
            None => report::print(text),
        }
    }

    /// Paths are those in the image.
    fn order(&self, loaded: &Loaded) -> Result<Option<tempfile::NamedTempFile>> {
        let mut lines = Vec::new();
        for file in self.given.all("-sort") {
            sources::sort_lines(Path::new(file), &self.sources, &mut lines)?;
        }
        lines.retain(|(path, _)| path.is_root() || loaded.tree.find(path).is_some());
        if lines.is_empty() {
            return Ok(None);
        }
        let file = tempfile::NamedTempFile::new().or_io(|| "cannot create a temporary file")?;
        let mut text = Vec::new();
        for (path, priority) in lines {
            text.push(b'/');
            text.extend(path.as_bytes());
            text.extend(format!(" {priority}\n").bytes());
        }
        std::fs::write(file.path(), text).or_io(|| "cannot write a temporary file")?;
        Ok(Some(file))
    }
}

fn summary(report: &PackReport) -> String {
    let mut text = String::new();
    let kib = |bytes: u64| bytes as f64 / 1024.0;
    let len = report.image_len;
    let percent = if report.bytes_in == 0 { 100.0 } else { len as f64 / report.bytes_in as f64 * 100.0 };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\nSquashfs 4.0 filesystem, {} compressed", report.codec);
    let _ = writeln!(text, "Filesystem size {:.2} Kbytes ({:.2} Mbytes)", kib(len), kib(len) / 1024.0);
    let _ = writeln!(
        text,
        "\t{percent:.2}% of uncompressed filesystem size ({:.2} Kbytes)",
        kib(report.bytes_in)
    );
    let _ = writeln!(text, "Number of duplicate files found {}", report.duplicate_files);
    let _ = writeln!(text, "Number of inodes {}", report.nodes);
    let _ = writeln!(text, "Number of files {}", report.files);
    let _ = writeln!(text, "Number of fragments {}", report.fragment_blocks);
    text
}
