//! Makes an image: a builder over sources, formats and the pack engine.

mod earlier;
mod fitting;
mod output_format;
mod verifying;
mod wrapping;

use crate::watcher::Watcher;
use crate::{OpenOptions, Opened, Source};
use earlier::Earlier;
use packfs_core::{
    Contents, Error, ErrorKind, Goal, Held, ImagePath, IntoImagePath, Limits, Meta, NodeKind, Progress,
    Result, ResultExt, Tree, TreeBuilder, Xattrs,
};
use packfs_format::{DataFile, Format, PackFormat, PackSettings, Wrapping};
use packfs_pack::{Effort, Gain, Order, PackOptions, PackReport, Room, Verify};
use packfs_source::{Loaded, Notes, OrderFile, Shape, Trace};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use verifying::{UNASKED_LEN, Verifier};
use wrapping::Subject;

/// When an image says that it was made. Never the time of packing unless that is asked for: the same source is to give the
/// same bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MadeAt {
    /// The time of the newest file in it, after shaping.
    #[default]
    Newest,
    /// The time of packing.
    Now,
    /// Seconds since 1970.
    Seconds(i64),
}

/// Packs `source` into a new image `output`, once [`Pack::run`] is called.
///
/// The source's contents tell its kind: see [`Source::detect`]. A file that is none of these, and does not look as if it had been, is
/// packed as the only file of the image, with a warning. For another source, see [`Pack::of`] and [`pack_entries`]. The output may also be
/// a block device, a fifo, or `-` for standard output; a pipe gets the image once it is complete.
pub fn pack(source: impl AsRef<Path>, output: impl AsRef<Path>) -> Pack {
    Pack::new(Given::Path(source.as_ref().into()), output.as_ref())
}

/// Makes another image of an image, once [`Pack::run`] is called: what is not said stays as it is, format, codec and block size,
/// and blocks that need not be compressed anew are copied. They are decoded once all the same, so that damage does not spread;
/// see [`Pack::trust_source`].
pub fn repack(image: impl AsRef<Path>, output: impl AsRef<Path>) -> Pack {
    let source = Source::Image(image.as_ref().into());
    let packing = Pack::of(source, output);
    Pack { earlier: Earlier::Source { unread: false }, ..packing }
}

/// Packs files and directories side by side into a new image `output`, once [`Pack::run`] is called: each is an entry of the root under its own
/// name, whatever it holds. [`Source::Merged`] puts what directories hold together instead.
///
/// ```
/// # fn main() -> packfs::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let (app, data) = (dir.path().join("app.bin"), dir.path().join("data"));
/// # std::fs::create_dir_all(data.join("en")).unwrap();
/// # std::fs::write(&app, "program").unwrap();
/// # let path = dir.path().join("app.sqfs");
/// packfs::pack_entries([&app, &data], &path).run()?;
/// assert_eq!(packfs::open(&path)?.read("app.bin")?, b"program");
/// # Ok(())
/// # }
/// ```
pub fn pack_entries<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>, output: impl AsRef<Path>) -> Pack {
    Pack::of(Source::Entries(paths.into_iter().map(|path| path.as_ref().into()).collect()), output)
}

/// Packs files that are in memory into a new image `output`, once [`Pack::run`] is called: paths within the image, and what each file
/// holds. Directories above them are made; everything belongs to root and is as old as 1970. A path that comes again replaces the
/// file before it.
///
/// ```
/// # fn main() -> packfs::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("root.erofs");
/// let files = [("etc/hostname", "example\n"), ("etc/motd", "hello\n")];
/// packfs::pack_files(files, &path)?.codec("lz4").run()?;
/// assert_eq!(packfs::open(&path)?.read("etc/motd")?, b"hello\n");
/// # Ok(())
/// # }
/// ```
///
/// Errors: `Usage` for what is no path, `Failed` if one leads through another's file.
pub fn pack_files<P, B>(files: impl IntoIterator<Item = (P, B)>, output: impl AsRef<Path>) -> Result<Pack>
where
    P: IntoImagePath,
    B: AsRef<[u8]>,
{
    let meta = |mode| Meta { mode, ..Meta::default() };
    let (mut tree, mut held) = (TreeBuilder::new(meta(0o755)), Held::default());
    for (path, bytes) in files {
        let bytes = bytes.as_ref();
        let kind = NodeKind::File { len: bytes.len() as u64, content: held.push(bytes) };
        tree.add(&path.into_image_path()?, kind, meta(0o644), Xattrs::new())?;
    }
    let loaded = Loaded { tree: tree.finish()?, contents: Arc::new(held), notes: Notes::default() };
    Ok(Pack::of_loaded(Arc::new(loaded), output))
}

/// What is packed, as it was given.
#[derive(Clone, Debug)]
enum Given {
    Path(PathBuf),
    Known(Source),
    Loaded(LoadedSource),
}

/// A source that was looked through before.
#[derive(Clone)]
struct LoadedSource(Arc<Loaded>);

impl std::fmt::Debug for LoadedSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} names", self.0.tree.entry_count())
    }
}

/// An image that is to be made.
#[derive(Clone, Debug)]
pub struct Pack {
    source: Given,
    source_offset: u64,
    source_devices: Vec<PathBuf>,
    source_part: Option<String>,
    source_magic: Option<Vec<u8>>,
    ignore_source_checksum: bool,
    limits: Limits,
    output: PathBuf,
    format: Option<String>,
    settings: PackSettings,
    made_at: MadeAt,
    shape: Shape,
    order: Option<Order>,
    order_file: Option<PathBuf>,
    trace: Option<PathBuf>,
    earlier: Earlier,
    verify: Option<bool>,
    options: PackOptions,
    /// True if denser ways are tried until the image fits.
    fits: bool,
    watcher: Watcher,
}

impl Pack {
    /// Packs a source that is already known.
    pub fn of(source: Source, output: impl AsRef<Path>) -> Self {
        Pack::new(Given::Known(source), output.as_ref())
    }

    /// Packs a tree that was looked through before, by [`Source::load`] or otherwise: for whoever packs it several times, or parts
    /// of it. It is packed as it is: [`Pack::shape`] and [`Pack::limits`] do nothing.
    pub fn of_loaded(loaded: Arc<Loaded>, output: impl AsRef<Path>) -> Self {
        Pack::new(Given::Loaded(LoadedSource(loaded)), output.as_ref())
    }

    fn new(source: Given, output: &Path) -> Self {
        Pack {
            source,
            source_offset: 0,
            source_devices: Vec::new(),
            source_part: None,
            source_magic: None,
            ignore_source_checksum: false,
            limits: Limits::default(),
            output: output.into(),
            format: None,
            settings: PackSettings::default(),
            made_at: MadeAt::default(),
            shape: Shape::default(),
            order: None,
            order_file: None,
            trace: None,
            earlier: Earlier::default(),
            verify: None,
            options: PackOptions::default(),
            fits: false,
            watcher: Watcher::default(),
        }
    }

    /// The format by its name; without it the output's extension tells, which is refused if no format has it;
    /// without an extension, or with one that any image may have (`img`, `image`, `bin`, `raw`), it is SquashFS.
    #[must_use]
    pub fn format(mut self, name: impl Into<String>) -> Self {
        self.format = Some(name.into());
        self
    }

    /// The codec as `NAME[:LEVEL][,KEY=VALUE...]`; without it the format's default.
    #[must_use]
    pub fn codec(mut self, spec: impl Into<String>) -> Self {
        self.settings.codec = Some(spec.into());
        self
    }

    /// The block size in bytes; without it the format's default.
    #[must_use]
    pub fn block_size(mut self, bytes: u32) -> Self {
        self.settings.block_len = Some(bytes);
        self
    }

    /// An option that only the format knows; [`crate::FormatInfo::options`] lists them.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.options.push((name.into(), value.into()));
        self
    }

    /// When the image says that it was made.
    #[must_use]
    pub fn made_at(mut self, made_at: MadeAt) -> Self {
        self.made_at = made_at;
        self
    }

    /// Filters and changes on the way from the source. Entries of [`Pack::add_entry`] stay, behind those of the shape.
    #[must_use]
    pub fn shape(mut self, shape: Shape) -> Self {
        let added = std::mem::replace(&mut self.shape, shape).additions;
        self.shape.additions.append(added);
        self
    }

    /// Lays an entry over the source, as a line of a manifest or in short: `c /dev/console 0600 0 0 5 1`. See
    /// [`packfs_source::Additions`]; docs/guide/manifest.md has the language.
    ///
    /// ```
    /// # fn main() -> packfs::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (source, image) = (dir.path().join("rootfs"), dir.path().join("root.sqfs"));
    /// # std::fs::create_dir_all(source.join("etc")).unwrap();
    /// packfs::pack(&source, &image)
    ///     .add_entry("c /dev/console 0600 0 0 5 1")?
    ///     .add_entry("file /etc/hostname mode=0644 data=\"box\\n\"")?
    ///     .shape(packfs::source::Shape { uid: Some(7), ..Default::default() })
    ///     .run()?;
    /// let opened = packfs::open(&image)?;
    /// assert_eq!(opened.read("etc/hostname")?, b"box\n");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: `Usage` for what is no entry; `Io` and `Failed` for a file that cannot be read.
    pub fn add_entry(mut self, entry: impl AsRef<[u8]>) -> Result<Self> {
        self.shape.additions.add(&[entry], "entry")?;
        Ok(self)
    }

    /// As [`Pack::add_entry`], for the entries of a file, one a line, with or without the first line of a manifest.
    ///
    /// Errors: `Corrupt` for a line that is no entry; `Io` and `Failed` for a file that cannot be read.
    pub fn add_manifest(mut self, path: impl AsRef<Path>) -> Result<Self> {
        self.shape.additions.add_file(path.as_ref())?;
        Ok(self)
    }

    /// What the image is to be good at: decides what nothing else was said of.
    #[must_use]
    pub fn optimize(mut self, goal: Goal) -> Self {
        self.settings.goal = goal;
        self
    }

    /// In which order small files are placed.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = Some(order);
        self
    }

    /// A file that says in which order contents are placed, instead of [`Pack::order`]: a path and a priority a line.
    #[must_use]
    pub fn order_file(mut self, path: impl AsRef<Path>) -> Self {
        self.order_file = Some(path.as_ref().into());
        self
    }

    /// A file that lists what is used first, one path a line: its data and metadata are placed in front, in that order, and apart
    /// from all others. [`Pack::order`] is for the rest.
    #[must_use]
    pub fn trace(mut self, path: impl AsRef<Path>) -> Self {
        self.trace = Some(path.as_ref().into());
        self
    }

    /// What compressing has to save, or data is stored as it is.
    #[must_use]
    pub fn least_gain(mut self, gain: Gain) -> Self {
        self.options.gain = gain;
        self
    }

    /// How much work a block is worth.
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Self {
        self.options.effort = effort;
        self
    }

    /// An earlier image whose compressed blocks are copied where the source still holds the same bytes. It must have the format,
    /// codec, level and block size that the new one is to have, and may be the one that is replaced.
    #[must_use]
    pub fn base(mut self, path: impl AsRef<Path>) -> Self {
        self.earlier = Earlier::Image { path: path.as_ref().into(), times: false };
        self
    }

    /// As [`Pack::base`], but a file with the path, length and time of one in the base is taken for the same without being read.
    #[must_use]
    pub fn base_by_times(mut self, path: impl AsRef<Path>) -> Self {
        self.earlier = Earlier::Image { path: path.as_ref().into(), times: true };
        self
    }

    /// Of an image that is made of another by [`repack`]: blocks are copied without being decoded, damaged or not.
    #[must_use]
    pub fn trust_source(mut self, yes: bool) -> Self {
        if let Earlier::Source { unread } = &mut self.earlier {
            *unread = yes;
        }
        self
    }

    /// Threads that compress; 0: one for each processor. The image is the same for any number.
    #[must_use]
    pub fn jobs(mut self, count: usize) -> Self {
        self.options.jobs = count;
        self
    }

    /// Most memory to take, in bytes, instead of what the control groups of this process allow. Short memory costs threads,
    /// never a different image.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.options.memory = Some(bytes);
        self
    }

    /// Where the image begins in the output, in bytes; what an existing file has before that is kept.
    #[must_use]
    pub fn offset(mut self, bytes: u64) -> Self {
        self.options.image_offset = bytes;
        self
    }

    /// Where the image begins in a source that is an image, in bytes.
    #[must_use]
    pub fn source_offset(mut self, bytes: u64) -> Self {
        self.source_offset = bytes;
        self
    }

    /// Which image to pack where a source holds several, such as the partitions of a disk: its name, or its number.
    #[must_use]
    pub fn source_part(mut self, name: impl Into<String>) -> Self {
        self.source_part = Some(name.into());
        self
    }

    /// Takes the source for an image that began with these bytes, where its maker changed them: see [`OpenOptions::magic`].
    #[must_use]
    pub fn source_magic(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.source_magic = Some(bytes.into());
        self
    }

    /// Packs a source that is an image even where its own checksum is not that of its bytes: see
    /// [`OpenOptions::ignore_checksum`].
    #[must_use]
    pub fn ignore_source_checksum(mut self) -> Self {
        self.ignore_source_checksum = true;
        self
    }

    /// A further file or block device that holds data of a source that is an image; to be called once for each, in the order
    /// in which the image lists them.
    #[must_use]
    pub fn source_device(mut self, path: impl AsRef<Path>) -> Self {
        self.source_devices.push(path.as_ref().into());
        self
    }

    /// What a source that is an image, a tar or a manifest may hold, and an earlier image. A directory may hold anything.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether files that cannot be read are stored empty and reported instead of ending the work.
    #[must_use]
    pub fn keep_going(mut self, yes: bool) -> Self {
        self.options.keep_going = yes;
        self
    }

    /// Whether what the format cannot hold may be lost.
    #[must_use]
    pub fn lossy(mut self, yes: bool) -> Self {
        self.options.lossy = yes;
        self
    }

    /// Whether the image is read back and held against what was packed before it gets its name: names and metadata as the format
    /// can hold them, and contents by hashes taken when they were read. Unless this is said, it is if the files are shorter than
    /// 1 GiB together.
    #[must_use]
    pub fn verify(mut self, yes: bool) -> Self {
        self.verify = Some(yes);
        self
    }

    /// Whether the image is on the disk before it gets its name; it is unless this is turned off.
    #[must_use]
    pub fn sync(mut self, yes: bool) -> Self {
        self.options.sync = yes;
        self
    }

    /// Most bytes that the image may have, padding included. A longer one is an error of kind `TooLarge` that tells how long it
    /// would be, and nothing is overwritten.
    #[must_use]
    pub fn max_len(mut self, len: u64) -> Self {
        self.options.room.len_max = Some(len);
        self
    }

    /// Tries denser codecs, higher levels and larger blocks, as far as they were not given, until the image has no more
    /// than [`Pack::max_len`] bytes, or fits on the block device that is the output. Each try packs anew.
    #[must_use]
    pub fn fit(mut self) -> Self {
        self.fits = true;
        self
    }

    /// Watches [`Pack::run`], and stops it. An [`Arc`] of one leaves the other handle with the caller.
    #[must_use]
    pub fn progress(mut self, progress: impl Progress + 'static) -> Self {
        self.watcher = Watcher::new(progress);
        self
    }

    /// Packs. A failure leaves what was under the output's name before.
    ///
    /// Errors: `Usage` for settings that contradict the format, `Io` and `Failed` for what cannot be read, written or held,
    /// `Corrupt` for a damaged source.
    pub fn run(&self) -> Result<PackReport> {
        self.run_with(self.watcher.progress())
    }

    /// As [`Pack::run`], watched by a progress that is only lent.
    ///
    /// Errors: as [`Pack::run`], and `Cancelled`.
    pub fn run_with(&self, progress: &dyn Progress) -> Result<PackReport> {
        let again = self.open_again()?;
        let again_format = again.as_ref().map(Opened::format);
        let format = output_format::choose(self.format.as_deref(), &self.output, again_format)?;
        let settings = self.earlier.settings(&self.settings, format, again.as_ref());
        // Wrong settings are told before the source is read, which may take long.
        let packer = format.packer(&settings)?;
        if let Some(wrapping) = packer.wraps() {
            return self.wrap((format, &settings), &*packer, &wrapping, progress);
        }
        let order = self.order_file.as_deref().map(OrderFile::read).transpose()?;
        let trace = self.trace.as_deref().map(Trace::read).transpose()?;
        let base = self.earlier.open_base(&*packer, &self.output, &self.plainly_opening(), progress)?;
        let shape = self.whole_shape(packer.layout().data_files());
        let (loaded, base) = match &again {
            Some(opened) => {
                let (loaded, base) = self.earlier.load_source(opened, &*packer, &shape, progress)?;
                (Arc::new(loaded), base)
            }
            None => (self.load(&shape, progress)?, base),
        };
        let left_out: Vec<String> =
            loaded.notes.unreadable.iter().map(|why| format!("left out: {why}")).collect();
        left_out.iter().for_each(|line| progress.warn(line));
        warn_of_silence(&loaded.notes, progress);
        let mut options = self.options.clone();
        options.order = self.order.unwrap_or(Order::for_goal(self.settings.goal));
        if let Some(order) = &order {
            let (priorities, missing) = order.priorities(&loaded.tree);
            warn_of_missing("order file", &missing, progress);
            options.priorities = Some(priorities);
        }
        if let Some(trace) = &trace {
            let (nodes, missing) = trace.nodes(&loaded.tree);
            warn_of_missing("trace", &missing, progress);
            options.first_used = nodes;
        }
        options.base = base;
        let verifies = self.verify.unwrap_or_else(|| loaded.tree.bytes_total() < UNASKED_LEN);
        options.verify = verifies.then(|| Arc::new(Verifier) as Arc<dyn Verify>);
        let settings = PackSettings { made_at: self.made_at_of(&loaded.tree), ..settings };
        let job = self.fitting_job((&loaded.tree, &*loaded.contents), format)?;
        let mut report = fitting::pack(&job, &settings, &options, self.fits, progress)?;
        report.skipped.splice(0..0, left_out);
        Ok(report)
    }

    /// Job of packing to the output.
    ///
    /// Errors: `Usage` if it is to fit into what has no length.
    fn fitting_job<'a>(
        &'a self,
        (tree, contents): (&'a Tree, &'a dyn Contents),
        format: &'static dyn Format,
    ) -> Result<fitting::Job<'a>> {
        let is_device =
            || std::fs::metadata(&self.output).is_ok_and(|found| found.file_type().is_block_device());
        if self.fits && self.options.room.len_max.is_none() && !is_device() {
            let error = Error::usage("the image is to fit, but nothing says how long it may be");
            return Err(error.hint("--max-size SIZE says it; a block device has its own length"));
        }
        Ok(fitting::Job { tree, contents, format, output: &self.output, order_by_goal: self.order.is_none() })
    }

    /// Looks through the source.
    fn load(&self, shape: &Shape, progress: &dyn Progress) -> Result<Arc<Loaded>> {
        let opening = self.opening();
        let source = match &self.source {
            Given::Loaded(_) if opening.is_about_an_image() => {
                let what = "has no part, offset, magic or further devices";
                return Err(Error::usage(format!("a tree that is already there {what}")));
            }
            Given::Loaded(loaded) => return Ok(Arc::clone(&loaded.0)),
            Given::Known(source) => source.clone(),
            Given::Path(path) => Source::detect_to_pack(path, &opening, progress)?,
        };
        let loaded = source.load_with(&opening, shape, progress);
        Ok(Arc::new(loaded.map_err(|error| match (&self.source, &source, error.kind()) {
            (Given::Path(_), Source::Tar(_), ErrorKind::Corrupt) => {
                error.hint("if it is no archive: packfs pack --as-file packs the file itself")
            }
            _ => error,
        })?))
    }

    /// Packs in a format that holds one image instead of a tree.
    fn wrap(
        &self,
        (format, settings): (&'static dyn Format, &PackSettings),
        packer: &dyn PackFormat,
        wrapping: &Wrapping,
        progress: &dyn Progress,
    ) -> Result<PackReport> {
        let name = packer.format().name;
        let orders = self.order_file.is_some() || self.trace.is_some();
        if orders || matches!(self.earlier, Earlier::Image { .. }) {
            let what = "files to place in an order, and no blocks of an earlier one to copy";
            return Err(Error::usage(format!("a {name} holds one image: there are no {what}")));
        }
        let (path, known) = match &self.source {
            Given::Path(path) => (path.as_path(), None),
            Given::Known(source) => (Path::new(""), Some(source)),
            Given::Loaded(_) => {
                let what = "a tree that is already there has to become an image of its own first";
                return Err(Error::usage(format!("a {name} holds one image: {what}")));
            }
        };
        let subject = wrapping::subject(path, known, wrapping, packer, &self.opening())?;
        let (bytes, left_out) = match subject {
            Subject::Image(bytes) => {
                if self.shape.moves_names() {
                    let message = format!("the image is wrapped as it is: a {name} has nothing to shape");
                    return Err(Error::usage(message)
                        .hint("pack an image of its own first, shaped as it is to be, and wrap that"));
                }
                (bytes, Vec::new())
            }
            Subject::Tree { source, format } => {
                let folder = self.folder_for_inner()?;
                let inner = Pack {
                    source: Given::Known(source),
                    output: folder.path().join("image"),
                    format: Some(format),
                    // What is inside is compressed by what is around it.
                    settings: PackSettings {
                        codec: Some("none".into()),
                        goal: self.settings.goal,
                        ..PackSettings::default()
                    },
                    earlier: Earlier::None,
                    options: PackOptions {
                        image_offset: 0,
                        room: Room::default(),
                        sync: false,
                        ..self.options.clone()
                    },
                    fits: false,
                    ..self.clone()
                };
                let report = inner.run_with(progress)?;
                // The file is open, so that it lasts as long as it is needed and no longer.
                (wrapping::of_file(&inner.output)?.without_name(), report.skipped)
            }
        };
        let (tree, contents) = wrapping::tree(bytes, wrapping)?;
        let verifies = self.verify.unwrap_or_else(|| tree.bytes_total() < UNASKED_LEN);
        let verify = verifies.then(|| Arc::new(Verifier) as Arc<dyn Verify>);
        let options = PackOptions { keep_going: false, verify, ..self.options.clone() };
        let job = self.fitting_job((&tree, &*contents), format)?;
        let mut report = fitting::pack(&job, settings, &options, self.fits, progress)?;
        report.skipped.splice(0..0, left_out);
        Ok(report)
    }

    /// A folder for an image that is made to be wrapped, gone with what is returned: beside the output, where there is room.
    fn folder_for_inner(&self) -> Result<tempfile::TempDir> {
        let beside = self.output.parent().filter(|_| !self.output.exists() || self.output.is_file());
        let beside = match beside {
            _ if self.output.as_os_str() == "-" => packfs_pack::temporary_folder(),
            Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
            Some(folder) => folder.to_owned(),
            None => packfs_pack::temporary_folder(),
        };
        let made = tempfile::Builder::new().prefix(".packfs-").tempdir_in(&beside);
        made.or_io(|| format!("cannot make a folder in {beside:?}"))
    }

    /// The image that another one is made of by [`repack`].
    fn open_again(&self) -> Result<Option<Opened>> {
        match (&self.earlier, &self.source) {
            (Earlier::Source { .. }, Given::Known(Source::Image(path))) => {
                earlier::refuse_overwriting(path, &self.output)?;
                Ok(Some(self.opening().open(path)?))
            }
            _ => Ok(None),
        }
    }

    /// How a source is opened that is an image.
    fn opening(&self) -> OpenOptions {
        let opening = self.plainly_opening().offset(self.source_offset);
        let opening = match &self.source_part {
            Some(name) => opening.part(name),
            None => opening,
        };
        let opening = match &self.source_magic {
            Some(magic) => opening.magic(magic.clone()),
            None => opening,
        };
        let opening = if self.ignore_source_checksum { opening.ignore_checksum() } else { opening };
        self.source_devices.iter().fold(opening, OpenOptions::device)
    }

    /// How an image is opened that fills its file.
    fn plainly_opening(&self) -> OpenOptions {
        OpenOptions::new().jobs(self.options.jobs).limits(self.limits)
    }

    /// The shape as asked for; what is to be replaced, the image and perhaps files of its data, is never part of itself.
    fn whole_shape(&self, data_files: &[DataFile]) -> Shape {
        let mut shape = self.shape.clone();
        shape.keep_going |= self.options.keep_going;
        let outputs = std::iter::once(&*self.output).chain(data_files.iter().map(|file| &*file.path));
        let found = outputs.filter_map(|path| std::fs::metadata(path).ok());
        shape.skip.extend(found.map(|output| (output.dev(), output.ino())));
        shape
    }

    fn made_at_of(&self, tree: &Tree) -> i64 {
        match self.made_at {
            MadeAt::Newest => tree.nodes().map(|(_, node)| node.meta.mtime.seconds).max().unwrap_or(0),
            MadeAt::Now => SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX)),
            MadeAt::Seconds(seconds) => seconds,
        }
    }
}

/// Warns of globs without effect, and of marks of layers that are kept as files.
fn warn_of_silence(notes: &Notes, progress: &dyn Progress) {
    if !notes.unused_globs.is_empty() {
        let globs: Vec<String> = notes.unused_globs.iter().map(|glob| format!("{glob:?}")).collect();
        progress.warn(&format!("globs without effect, as nothing matches: {}", globs.join(", ")));
    }
    if notes.kept_marks > 0 {
        let count = notes.kept_marks;
        let names_are =
            if count == 1 { "name begins with .wh. and is" } else { "names begin with .wh. and are" };
        progress.warn(&format!(
            "{count} {names_are} kept as files, though marks of container layers begin so: \
             --whiteouts overlayfs makes them what they mean, --whiteouts keep says that they are files"
        ));
    }
}

/// Warns of what a list of paths names that is not there.
fn warn_of_missing(list: &str, missing: &[ImagePath], progress: &dyn Progress) {
    if let Some(first) = missing.first() {
        let more = match missing.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        progress.warn(&format!("the {list} names what is not packed: {first:?}{more}"));
    }
}
