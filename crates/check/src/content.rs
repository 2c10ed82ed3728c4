//! Decodes all file data of an image, on all cores, and reports errors.

use packfs_core::{Error, ErrorKind, NodeId, NodeKind, Progress, Result, Stage, escaped, range_at};
use packfs_format::{ExtentFrom, Finding, Severity};
use packfs_read::{LoadedVolume, PieceSink, ReadEngine, Wanted};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

/// Result of decoding all file data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ContentReport {
    /// Decoded regular files; hard links count once.
    pub files: u64,
    /// Length of the decoded files, holes included, in bytes.
    pub file_bytes: u64,
    /// Files of which a part cannot be decoded.
    pub damaged_files: u64,
    /// Bytes stored uncompressed, so that no codec and no checksum detects damage.
    pub unverifiable_bytes: u64,
}

/// Decodes everything. Each damaged file is reported once, with its first fault; decoding continues
/// after it.
///
/// Errors: `Io` if the image cannot be read at all, `Cancelled`.
pub fn content(
    engine: &Arc<ReadEngine>,
    loaded: &LoadedVolume,
    progress: &dyn Progress,
    found: &mut dyn FnMut(Finding),
) -> Result<ContentReport> {
    let tree = &loaded.tree;
    let (nodes, wanted): (Vec<NodeId>, Vec<Wanted>) = tree
        .nodes()
        .filter_map(|(id, node)| match node.kind {
            NodeKind::File { len, .. } => Some((id, Wanted { id: loaded.inodes[id.index()], len })),
            _ => None,
        })
        .unzip();
    let bytes = wanted.iter().fold(0_u64, |bytes, file| bytes.saturating_add(file.len));
    progress.begin(Stage::Verify, wanted.len() as u64, bytes);
    let faults = Mutex::new(BTreeMap::new());
    engine.in_disk_order(&wanted, progress, &|| Ok(Faults(&faults)))?;
    let faults = faults.into_inner().unwrap_or_else(PoisonError::into_inner);
    let report = ContentReport {
        files: wanted.len() as u64,
        file_bytes: bytes,
        damaged_files: faults.len() as u64,
        unverifiable_bytes: unvouched(engine, &wanted),
    };
    for (file, fault) in faults {
        let node = nodes[file];
        let mut place = format!("\"{}\"", escaped(tree.path(node).as_bytes()));
        match tree.node(node).links {
            0 | 1 => {}
            2 => place.push_str(" and another name"),
            links => place.push_str(&format!(" and {} other names", links - 1)),
        }
        found(Finding::new(Severity::Error, place, fault));
    }
    Ok(report)
}

/// Files with damaged metadata count up to the damage.
fn unvouched(engine: &ReadEngine, wanted: &[Wanted]) -> u64 {
    let mut bytes = 0_u64;
    for file in wanted {
        let _ = engine.volume().extents(file.id, 0..file.len, &mut |extent| {
            let is_raw = match extent.from {
                ExtentFrom::Hole => false,
                ExtentFrom::Stored(at) => {
                    let storage = engine.volume().storage();
                    !storage.is_some_and(|it| it.verifies(range_at(at, extent.len)).unwrap_or(false))
                }
                ExtentFrom::Block { block, .. } => block.algorithm.is_none(),
            };
            bytes = bytes.saturating_add(if is_raw { extent.len } else { 0 });
            ControlFlow::Continue(())
        });
    }
    bytes
}

/// One fault for each damaged file: the alphabetically first, so that the result does not depend on
/// the order of work.
struct Faults<'a>(&'a Mutex<BTreeMap<usize, String>>);

impl PieceSink for Faults<'_> {
    fn piece(&mut self, _: usize, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn failed(&mut self, file_index: usize, error: Error) -> Result<()> {
        // All other errors are faults of the image, or of missing devices.
        if matches!(error.kind(), ErrorKind::Io | ErrorKind::Cancelled) {
            return Err(error);
        }
        let fault = error.to_string();
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = faults.entry(file_index).or_insert_with(|| fault.clone());
        if fault < *known {
            *known = fault;
        }
        Ok(())
    }
}
