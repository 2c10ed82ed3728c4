//! A format, its settings and an output: packs a tree once it is loaded.

use super::fitting::Way;
use super::lists::Lists;
use super::verifying::{UNASKED_LEN, Verifier};
use super::{MadeAt, PackOptions, fitting};
use packfs_core::{Contents, Error, Progress, Result, Tree};
use packfs_format::{DataFile, Format, PackFormat, PackSettings};
use packfs_pack::{Base, PackReport, Verify};
use packfs_source::{Loaded, Notes, Shape};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// See the module.
pub(super) struct Job<'a> {
    pub options: &'a PackOptions,
    pub output: &'a Path,
    pub format: &'static dyn Format,
    pub settings: PackSettings,
    pub progress: &'a dyn Progress,
}

impl Job<'_> {
    /// Packs what was loaded, with warnings of what was left out.
    ///
    /// Errors: as [`super::Pack::run`].
    pub(super) fn pack_loaded(
        &self,
        loaded: &Loaded,
        lists: &Lists,
        base: Option<Arc<Base>>,
        packer: &mut dyn PackFormat,
    ) -> Result<PackReport> {
        let left_out: Vec<String> =
            loaded.notes.unreadable.iter().map(|why| format!("left out: {why}")).collect();
        left_out.iter().for_each(|line| self.progress.warn(line));
        warn_of_silence(&loaded.notes, self.progress);
        let mut engine = self.options.engine();
        lists.apply(&loaded.tree, &mut engine, self.progress);
        engine.base = base;
        let settings = self.settings_of(&loaded.tree);
        packer.set_made_at(settings.made_at);
        let way = Way { settings: &settings, packer };
        let mut report = self.pack((&loaded.tree, &*loaded.contents), way, engine)?;
        report.skipped.splice(0..0, left_out);
        Ok(report)
    }

    /// Packs a tree, by denser and denser ways if it has to fit.
    ///
    /// Errors: as there; `Usage` if it is to fit into what has no length.
    pub(super) fn pack(
        &self,
        (tree, contents): (&Tree, &dyn Contents),
        way: Way<'_>,
        mut engine: packfs_pack::PackOptions,
    ) -> Result<PackReport> {
        let options = self.options;
        let verifies = options.verify.unwrap_or_else(|| tree.bytes_total() < UNASKED_LEN);
        engine.verify = verifies.then(|| Arc::new(Verifier) as Arc<dyn Verify>);
        let is_device =
            || std::fs::metadata(self.output).is_ok_and(|found| found.file_type().is_block_device());
        if options.fit && options.max_size.is_none() && !is_device() {
            let error = Error::usage("cannot fit the image: no size limit is given");
            return Err(error.hint("use --max-size SIZE, or write to a block device"));
        }
        let order_by_goal = options.order.is_none();
        let (format, output, shape) = (self.format, self.output, &options.shape);
        let job = fitting::Job { tree, contents, format, output, shape, order_by_goal };
        fitting::pack(&job, way, &engine, options.fit, self.progress)
    }

    /// Returns the shape; what is to be replaced, the image and perhaps files of its data, is never
    /// part of itself.
    pub(super) fn shape(&self, data_files: &[DataFile]) -> Shape {
        let mut shape = self.options.shape.clone();
        shape.keep_going |= self.options.keep_going;
        let outputs = std::iter::once(self.output).chain(data_files.iter().map(|file| &*file.path));
        let found = outputs.filter_map(|path| std::fs::metadata(path).ok());
        shape.skip.extend(found.map(|output| (output.dev(), output.ino())));
        shape
    }

    /// Returns the settings with the time of making.
    pub(super) fn settings_of(&self, tree: &Tree) -> PackSettings {
        PackSettings { made_at: self.made_at(tree), ..self.settings.clone() }
    }

    fn made_at(&self, tree: &Tree) -> i64 {
        match self.options.made_at {
            MadeAt::Newest => tree.nodes().map(|(_, node)| node.meta.mtime.seconds).max().unwrap_or(0),
            MadeAt::Now => SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX)),
            MadeAt::Seconds(seconds) => seconds,
        }
    }
}

/// Warns of globs without effect, of marks of layers that are kept as files, and of directories
/// that nothing describes.
pub(crate) fn warn_of_silence(notes: &Notes, progress: &dyn Progress) {
    if !notes.unused_globs.is_empty() {
        let globs: Vec<String> = notes.unused_globs.iter().map(|glob| format!("{glob:?}")).collect();
        progress.warn(&format!("globs that match nothing: {}", globs.join(", ")));
    }
    if notes.implied > 0 {
        let have = if notes.implied == 1 { "directory has" } else { "directories have" };
        progress.warn(&format!(
            "{} {have} no entry in the archive, or in any layer: owner, permissions, and time are defaults",
            notes.implied
        ));
    }
    if let [links @ .., last] = &notes.replaced_links[..] {
        let mut names: Vec<String> = links.iter().take(3).map(|path| format!("{path:?}")).collect();
        names.push(if links.len() > 3 { "others".to_owned() } else { format!("{last:?}") });
        progress.warn(&format!(
            "directories of upper layers replace symbolic links of lower ones, as in overlayfs, where Docker \
             and containerd follow some: {}",
            names.join(", ")
        ));
    }
    if notes.kept_marks > 0 {
        let count = notes.kept_marks;
        let names_are =
            if count == 1 { "name begins with .wh. and is" } else { "names begin with .wh. and are" };
        progress.warn(&format!(
            "{count} {names_are} kept as files, though whiteouts of container layers have such names: \
             --whiteouts overlayfs converts them, --whiteouts keep keeps them silently"
        ));
    }
}
