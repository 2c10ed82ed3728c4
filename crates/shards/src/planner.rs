//! Makes a plan: survey, sort, cut.

use crate::cut::{self, Cutter};
use crate::entry;
use crate::listing::{Listing, Record};
use crate::plan::{self, Root};
use crate::sort::Sorter;
use crate::{ListFormat, Plan, Recipe, Shards, TOOL_VERSION, Totals, json};
use packfs_core::{Error, Progress, Result, ResultExt, Stage};
use packfs_source::{Prober, Shape, Surveyed, survey_dir};
use std::fs::File;
use std::io::{BufRead, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tempfile::TempDir;

/// Entries between two looks at progress.
const ENTRIES_BETWEEN_LOOKS: u64 = 4096;

/// Origin of the entries.
#[non_exhaustive]
pub enum PlanSource<'a> {
    /// The directory is walked; filters apply.
    Walk,
    /// A list of its entries.
    List {
        /// The list.
        reader: Box<dyn BufRead + 'a>,
        /// Its name for messages.
        name: String,
        /// Form of its records.
        format: ListFormat,
    },
}

/// Plan that is to be made.
pub struct Planning<'a> {
    /// Directory to plan.
    pub source: &'a Path,
    /// Origin of its entries.
    pub input: PlanSource<'a>,
    /// Number or size of shards.
    pub shards: Shards,
    /// Options of all shards.
    pub recipe: Recipe,
    /// Memory for sorting, in bytes; more entries go through temporary files beside the plan.
    pub memory: usize,
    /// Folder to make.
    pub output: &'a Path,
}

/// Makes a plan of what the filters of a shape keep. The folder gets its name once it is complete;
/// if it exists already and has the same plan, it is left as it is.
///
/// Errors: `Usage` for a list with what is no entry, and too many shards; `Failed` for a folder
/// that exists and has something else, and for entries that are missing; `Io`, `Cancelled`.
pub fn plan(planning: Planning<'_>, shape: &Shape, progress: &dyn Progress) -> Result<Plan> {
    let source = planning.source.canonicalize().or_io(|| format!("cannot open {:?}", planning.source))?;
    let folder = temporary_beside(planning.output)?;
    warn_within(&source, folder.path(), shape, progress);
    let mut survey = Survey { sorter: Sorter::new(folder.path(), planning.memory), weight: 0, unreadable: 0 };
    let mut prober = Prober::new(&source)?;
    match planning.input {
        PlanSource::Walk => survey.walk(&source, shape, folder.path(), progress)?,
        PlanSource::List { mut reader, name, format } => {
            let mut listing = Listing::new(&mut *reader, format, &source, &name);
            survey.list(&mut listing, &mut prober, shape.keep_going, progress)?;
        }
    }
    let root = prober.probe(&packfs_core::ImagePath::root())?;
    let root = root.ok_or_else(|| Error::failed(format!("{source:?} is gone")))?.entry.meta;
    let mut cutter = Cutter::new(folder.path(), planning.shards, survey.weight, prober)?;
    let mut last: Option<Vec<u8>> = None;
    for (index, row) in (0u64..).zip(survey.sorter.finish()?) {
        if index % ENTRIES_BETWEEN_LOOKS == 0 && progress.cancelled() {
            return Err(Error::cancelled());
        }
        let (key, value) = row?;
        if last.as_ref() != Some(&key) {
            cutter.add(&entry::parse(&key, &value)?)?;
            last = Some(key);
        }
    }
    if last.is_none() {
        return Err(Error::usage("the list has no entries"));
    }
    let (shards, links) = cutter.finish()?;
    let mut totals = Totals { split_links: links.split, unreadable: survey.unreadable, ..Totals::default() };
    for shard in &shards {
        totals.entries += shard.entries;
        totals.files += shard.files;
        totals.file_bytes = totals.file_bytes.saturating_add(shard.file_bytes);
    }
    let plan = Plan {
        packfs_plan: plan::VERSION,
        tool_version: TOOL_VERSION.to_owned(),
        source,
        recipe_sha256: planning.recipe.digest()?,
        recipe: planning.recipe,
        root: Root {
            mode: format!("{:04o}", root.mode),
            uid: root.owner.uid,
            gid: root.owner.gid,
            mtime: root.mtime.to_string(),
        },
        totals,
        shards,
        folder: planning.output.to_owned(),
    };
    publish(&plan, folder)?;
    Ok(plan)
}

/// Warns of a plan in its own source, whose directory changes by it, unless it may be excluded.
fn warn_within(source: &Path, folder: &Path, shape: &Shape, progress: &dyn Progress) {
    let is_within = folder.canonicalize().is_ok_and(|folder| folder.starts_with(source));
    if is_within && shape.exclude.is_empty() && !shape.one_file_system {
        progress.warn(&format!(
            "the plan lies in {source:?}, which it changes: the shard of this directory cannot be packed. Write \
             the plan and the shards to a place outside of it"
        ));
    }
}

/// Returns a new folder beside another, with a temporary name.
fn temporary_beside(output: &Path) -> Result<TempDir> {
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".plan-").suffix(".packfs-tmp");
    builder.tempdir_in(parent).or_io(|| format!("cannot create a folder in {parent:?}"))
}

/// Gives the folder its name.
fn publish(plan: &Plan, folder: TempDir) -> Result<()> {
    let output = &plan.folder;
    let text = json::text(plan)?;
    let path = folder.path().join(plan::FILE_NAME);
    let cannot = || format!("cannot write {path:?}");
    let mut file = File::create(&path).or_io(cannot)?;
    file.write_all(&text).or_io(cannot)?;
    file.sync_all().or_io(cannot)?;
    let cannot = || format!("cannot write {output:?}");
    File::open(folder.path()).or_io(cannot)?.sync_all().or_io(cannot)?;
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), permissions).or_io(cannot)?;
    if output.symlink_metadata().is_ok() {
        let is_same = std::fs::read(output.join(plan::FILE_NAME)).is_ok_and(|found| found == text);
        return if is_same { Ok(()) } else { Err(exists(output)) };
    }
    if let Err(error) = std::fs::rename(folder.path(), output) {
        // Another process may have been faster.
        let is_same = std::fs::read(output.join(plan::FILE_NAME)).is_ok_and(|found| found == text);
        return if is_same { Ok(()) } else { Err(Error::io(cannot(), error)) };
    }
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent).or_io(cannot)?.sync_all().or_io(cannot)?;
    let _ = folder.keep();
    Ok(())
}

fn exists(output: &Path) -> Error {
    let error = Error::failed(format!("cannot write {output:?}: it exists, and is not the same plan"));
    error.hint("workers may use it; remove it, or choose another name")
}

/// Entries on their way into order.
struct Survey {
    sorter: Sorter,
    weight: u64,
    unreadable: u64,
}

impl Survey {
    fn add(&mut self, found: &Surveyed) -> Result<()> {
        self.weight = self.weight.saturating_add(cut::weight(found));
        self.sorter.push((entry::key(&found.entry.path), entry::value(found)))
    }

    fn walk(&mut self, source: &Path, shape: &Shape, folder: &Path, progress: &dyn Progress) -> Result<()> {
        let stat = std::fs::metadata(folder).or_io(|| format!("cannot read {folder:?}"))?;
        let shape = Shape { skip: vec![(stat.dev(), stat.ino())], ..shape.clone() };
        let notes = survey_dir(source, &shape, progress, &mut |found| self.add(&found))?;
        notes.unreadable.iter().for_each(|why| progress.warn(&format!("left out: {why}")));
        if !notes.unused_globs.is_empty() {
            let globs: Vec<String> = notes.unused_globs.iter().map(|glob| format!("{glob:?}")).collect();
            progress.warn(&format!("globs that match nothing: {}", globs.join(", ")));
        }
        self.unreadable = notes.unreadable.len() as u64;
        Ok(())
    }

    fn list(
        &mut self,
        listing: &mut Listing<'_>,
        prober: &mut Prober,
        keep_going: bool,
        progress: &dyn Progress,
    ) -> Result<()> {
        progress.begin(Stage::Scan, 0, 0);
        while let Some(record) = listing.next()? {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            match record {
                Record::Entry(found) => self.add(&found)?,
                Record::Path(path) => match prober.probe(&path) {
                    Ok(Some(found)) => self.add(&found)?,
                    Ok(None) if !keep_going => {
                        let error = Error::failed(format!("{path:?} is in the list, but not in the source"));
                        return Err(error.hint("the output of find -printf needs --list-format find"));
                    }
                    Err(error) if !keep_going => return Err(error),
                    _ => {
                        self.unreadable += 1;
                        progress.warn(&format!("left out: {path:?} cannot be read"));
                    }
                },
            }
            progress.advance(1, 0, 0);
        }
        Ok(())
    }
}
