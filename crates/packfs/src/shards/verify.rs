//! Verifies shards, each for itself, and the names and metadata of the merged image.

use super::{Stored, recipe, shard_object, stored};
use crate::check::Findings;
use crate::look_up_many::split;
use crate::{OpenOptions, Opened};
use packfs_core::{Error, ErrorKind, Progress, Result, Store};
use packfs_format::{DirCursor, DirEntry, InodeId, InodeKind, Severity};
use packfs_shards::{Plan, read_list};
use packfs_source::ListedEntry;
use std::collections::HashMap;
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::path::Path;

/// Faults of a shard or an image that are kept.
const FAULTS_MAX: usize = 20;
/// Most entries that are looked up together, which bounds memory.
const RUN_MAX: usize = 1 << 14;
/// Fewer entries of a directory are searched for one by one.
const LISTED_MIN: usize = 8;

/// State of a shard in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardState {
    /// All bytes are those packed, and all data decodes.
    Sound,
    /// The store has no committed shard.
    Missing,
    /// The shard is not the one packed, or cannot be decoded.
    Damaged,
}

impl ShardState {
    /// Returns the word for reports.
    pub fn word(self) -> &'static str {
        match self {
            ShardState::Sound => "sound",
            ShardState::Missing => "missing",
            ShardState::Damaged => "damaged",
        }
    }
}

/// Result of [`verify_shard`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifiedShard {
    /// Number of the shard.
    pub index: usize,
    /// State in the store.
    pub state: ShardState,
    /// Faults, at most 20.
    pub faults: Vec<String>,
}

/// Verifies a shard: its SHA-256, its structure, and that all its data decodes.
///
/// Errors: `Usage` for a shard that the plan has not; `Io`, `Cancelled`.
pub fn verify_shard(
    plan: &Plan,
    index: usize,
    store: &dyn Store,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<VerifiedShard> {
    let shard = plan.shard(index)?;
    let result = |state, faults| VerifiedShard { index, state, faults };
    match stored(plan, shard, store, true, progress)? {
        Stored::Missing => return Ok(result(ShardState::Missing, Vec::new())),
        Stored::Damaged(why) => return Ok(result(ShardState::Damaged, vec![why])),
        Stored::Committed(_) => {}
    }
    let object = shard_object(&plan.name_of(shard));
    let Some(image) = store.open(&object)? else { return Ok(result(ShardState::Missing, Vec::new())) };
    let mut found = Findings::default();
    match OpenOptions::new().jobs(jobs).open_image(image) {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            found.note(Severity::Error, error.to_string())
        }
        opened => {
            if let Some(opened) = found.or_finding(opened)? {
                opened.check(true, progress, &mut found)?;
            }
        }
    }
    let faults = Faults::of(&found);
    let state = if faults.0.is_empty() { ShardState::Sound } else { ShardState::Damaged };
    Ok(result(state, faults.0))
}

/// Faults in words.
struct Faults(Vec<String>);

impl Faults {
    fn of(found: &Findings) -> Self {
        let errors = found.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let words = errors.map(|finding| format!("{}: {}", finding.place, finding.fault));
        Faults(words.take(FAULTS_MAX).collect())
    }

    fn push(&mut self, fault: String) {
        if self.0.len() < FAULTS_MAX {
            self.0.push(fault);
        }
    }
}

/// Result of [`verify_merged`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifiedImage {
    /// Entries of the plan that were compared.
    pub entries: u64,
    /// Faults, at most 20.
    pub faults: Vec<String>,
}

/// Verifies a merged image: its structure, and that it has the entries of the plan, and no others,
/// with their types and lengths. No data is decoded.
///
/// Errors: `Io`, `Cancelled`; `Corrupt` for a damaged list, and an image without a root.
pub fn verify_merged(
    plan: &Plan,
    image: &Path,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<VerifiedImage> {
    let planned = recipe::options(&plan.recipe)?;
    recipe::check_comparable(&planned)?;
    let opened = OpenOptions::new().jobs(jobs).open(image)?;
    let mut found = Findings::default();
    opened.check(false, progress, &mut found)?;
    let mut faults = Faults::of(&found);
    let mut entries = 0;
    for (index, shard) in plan.shards.iter().enumerate() {
        let listed = read_list(&plan.list_path(index), &shard.list_sha256)?;
        let own = listed.filter(|listed| !matches!(listed, Ok(listed) if listed.is_shared));
        let mut own = own.map(|listed| listed.map(|listed| listed.entry)).peekable();
        while own.peek().is_some() {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            let run = next_run(&mut own)?;
            entries += run.len() as u64;
            for (entry, id) in run.iter().zip(find_all(&opened, &run)) {
                let Err(fault) = id.and_then(|id| compare(&opened, entry, id)) else { continue };
                match fault.kind() {
                    ErrorKind::NotFound if planned.keep_going => {}
                    ErrorKind::Io => return Err(fault),
                    _ => faults.push(fault.to_string()),
                }
            }
        }
    }
    let mut found = 0u64;
    for entry in opened.walk() {
        match entry {
            Ok(_) => found += 1,
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => faults.push(error.to_string()),
        }
    }
    if found != entries && !planned.keep_going {
        faults.push(format!("the image has {found} entries, the plan {entries}"));
    }
    Ok(VerifiedImage { entries, faults: faults.0 })
}

/// Returns the next entries that lie in one directory, at least one if there are more.
fn next_run(entries: &mut Peekable<impl Iterator<Item = Result<ListedEntry>>>) -> Result<Vec<ListedEntry>> {
    let mut run: Vec<ListedEntry> = entries.next().into_iter().collect::<Result<_>>()?;
    while run.len() < RUN_MAX
        && let Some(next) = entries.next_if(|next| match (next, run.first()) {
            (Ok(next), Some(first)) => split(next.path.as_bytes()).0 == split(first.path.as_bytes()).0,
            (next, _) => next.is_err(),
        })
    {
        run.push(next?);
    }
    Ok(run)
}

/// Finds entries of one directory: by listing it if they are many, because a search for each reads
/// as much of it.
fn find_all(opened: &Opened, run: &[ListedEntry]) -> Vec<Result<InodeId>> {
    let mut found: HashMap<&[u8], Option<InodeId>> = HashMap::new();
    if let [first, rest @ ..] = run
        && rest.len() >= LISTED_MIN
    {
        let names = run.iter().map(|entry| (split(entry.path.as_bytes()).1, None));
        found.extend(names);
        let mut dir = first.path.clone();
        dir.pop();
        let mut visit = |entry: DirEntry, _| {
            if let Some(id) = found.get_mut(&*entry.name) {
                *id = Some(entry.id);
            }
            ControlFlow::Continue(())
        };
        // What fails here fails for each name below.
        let _ =
            opened.find(dir).and_then(|dir| opened.volume().read_dir(dir, DirCursor::default(), &mut visit));
    }
    let id_of = |entry: &ListedEntry| found.get(split(entry.path.as_bytes()).1).copied().flatten();
    run.iter().map(|entry| id_of(entry).map_or_else(|| opened.find(&entry.path), Ok)).collect()
}

/// Compares an entry with the image. Lengths of links are not compared, because some filesystems
/// report none.
fn compare(opened: &Opened, entry: &ListedEntry, id: InodeId) -> Result<()> {
    let path = &entry.path;
    let inode = opened.volume().inode(id)?;
    let found = inode.kind.file_type();
    if found != entry.file_type {
        let (found, planned) = (found.word(), entry.file_type.word());
        return Err(Error::corrupt("image", format!("{path:?}: {found}, the plan has a {planned}")));
    }
    match inode.kind {
        InodeKind::File { len } if len != entry.len => {
            let planned = entry.len;
            Err(Error::corrupt("image", format!("{path:?}: {len} bytes, the plan has {planned}")))
        }
        _ => Ok(()),
    }
}
