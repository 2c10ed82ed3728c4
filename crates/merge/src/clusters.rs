//! Files in clusters: collects them from the inputs, and assigns new offsets.

use crate::files::{ByInput, check_rows, inode_of};
use crate::moves::Moves;
use crate::packed::Packed;
use crate::padding;
use crate::ranges::Ranges;
use crate::scan::Scanned;
use crate::write::Job;
use crate::{DataPlace, MergeInput};
use packfs_core::{Error, Image, NodeId, NodeKind, Result};
use packfs_format::{
    AnyStored, Cluster, ClusterForm, Clusters, ClustersPlaced, FileForm, FilePlace, InlineTail, InlineTails,
    Placed, PlacedFile, Plan, StoredClusters, TailPlace,
};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Reads no data.
pub(crate) fn gather(
    job: &Job<'_>,
    plan: &Plan<Clusters>,
    by_input: &ByInput,
) -> Result<(Placed<Clusters>, Moves)> {
    let in_image = job.options.data == DataPlace::Image;
    let mut gathering = Gathering {
        job,
        block_len: plan.data.block_len.into(),
        byte_aligned: plan.data.byte_aligned,
        files: vec![FilePlace::default(); job.scanned.tree.node_count() as usize],
        clusters: Vec::new(),
        ends: Vec::new(),
        tails: Vec::new(),
        packed: Packed::new(plan, in_image),
    };
    let mut ranges = Vec::new();
    let mut hash = Xxh3::new();
    for (index, input) in job.inputs.iter().enumerate() {
        job.check_cancelled()?;
        job.warm.touch(index);
        let Some(AnyStored::Clusters(stored)) = input.volume.stored() else {
            return Err(job.not_stored(index));
        };
        let used =
            gathering.gather(stored, index, by_input.of(index)).map_err(|error| error.at(&input.name))?;
        hash.update(&stored.identity());
        ranges.push(if in_image { used } else { vec![whole(input, gathering.block_len)] });
    }
    let mut moves = Moves::new(ranges, plan.data_start, true);
    let files = match job.options.data {
        DataPlace::Image => Vec::new(),
        DataPlace::Flat | DataPlace::Inputs => placed_files(job, &moves),
    };
    let packed = gathering.relocate(by_input, &mut moves)?;
    let Gathering { files: places, clusters, tails, .. } = gathering;
    for row in moves.rows() {
        [row.from.start, row.from.end, row.to].iter().for_each(|figure| hash.update(&figure.to_le_bytes()));
    }
    let images = job.inputs.iter().map(MergeInput::data_image).collect();
    let data = ClustersPlaced {
        clusters,
        packed,
        tails: Box::new(Tails { rows: tails, images }),
        hash: hash.digest128(),
        files,
    };
    Ok((Placed { files: places, data_end: moves.end, data, ..Placed::default() }, moves))
}

/// Rounded to whole blocks.
fn whole(input: &MergeInput, block_len: u64) -> Range<u64> {
    0..input.image.len().checked_next_multiple_of(block_len).unwrap_or(u64::MAX)
}

fn placed_files(job: &Job<'_>, moves: &Moves) -> Vec<PlacedFile> {
    let identity = |input: &MergeInput| match input.volume.stored() {
        Some(AnyStored::Clusters(stored)) => stored.identity(),
        _ => Vec::new(),
    };
    let rows = moves.rows().iter().zip(job.inputs);
    rows.map(|(row, input)| {
        let mut hash = Xxh3::new();
        hash.update(&identity(input));
        PlacedFile { start: row.to, end: row.to.saturating_add(row.data_len()), hash: hash.digest128() }
    })
    .collect()
}

/// Offsets are those of the inputs.
struct Gathering<'a> {
    job: &'a Job<'a>,
    block_len: u64,
    byte_aligned: bool,
    files: Vec<FilePlace<Clusters>>,
    clusters: Vec<Cluster>,
    ends: Vec<usize>,
    tails: Vec<(u32, u64)>,
    packed: Packed,
}

impl Gathering<'_> {
    /// Returns the ranges of the input's data that files refer to.
    fn gather(
        &mut self,
        stored: &dyn StoredClusters,
        input: usize,
        nodes: &[NodeId],
    ) -> Result<Vec<Range<u64>>> {
        let scanned = self.job.scanned;
        let mut ranges = Ranges::new(self.block_len);
        let mut uses_packed = false;
        for &node in nodes {
            let first = self.clusters.len();
            let mut place = stored
                .file(inode_of(scanned, node)?, &mut self.clusters)
                .map_err(|error| error.at(format_args!("{:?}", scanned.tree.path(node))))?;
            check_rows(&self.job.options.limits, &self.clusters)?;
            let clusters = self.clusters.get(first..).unwrap_or_default();
            add_ranges(clusters, &mut ranges);
            if place.form == FileForm::Flat {
                ranges.add(place.start, flat_len(scanned, node, &place));
            }
            match &mut place.tail {
                Some(TailPlace::Inline(tail)) => {
                    self.tails.push((input as u32, tail.id));
                    tail.id = self.tails.len() as u64 - 1;
                }
                Some(TailPlace::Packed { .. }) => uses_packed = true,
                None => {}
            }
            if let Some(row) = self.files.get_mut(node.index()) {
                *row = FilePlace { first: first as u64, ..place };
            }
        }
        self.ends.push(self.clusters.len());
        let image = self.job.inputs.get(input).ok_or_else(|| self.job.not_stored(input))?.data_image();
        self.packed.gather(stored, uses_packed, image)?;
        add_ranges(self.packed.last(), &mut ranges);
        check_rows(&self.job.options.limits, self.packed.clusters())?;
        Ok(ranges.finish())
    }

    /// Returns the packed stream.
    fn relocate(
        &mut self,
        by_input: &ByInput,
        moves: &mut Moves,
    ) -> Result<Option<(FilePlace<Clusters>, u64)>> {
        let scanned = self.job.scanned;
        let (block_len, far) = (self.block_len, padding::far_from(self.block_len));
        let mut start = 0;
        for (input, &end) in self.ends.iter().enumerate() {
            let is_far = self.byte_aligned && moves.end_of(input) >= far;
            let image = self.job.inputs.get(input).filter(|_| is_far).map(MergeInput::data_image);
            for cluster in self.clusters.get_mut(start..end).unwrap_or_default() {
                if let Some(image) = &image {
                    padding::leave_out(cluster, block_len, |at, bytes| image.read_exact_at(at, bytes))?;
                }
                moves.relocate(cluster, input)?;
            }
            start = end;
            let packed_base = self.packed.base(input);
            for &node in by_input.of(input) {
                let Some(place) = self.files.get_mut(node.index()) else { continue };
                if place.form == FileForm::Flat && flat_len(scanned, node, place) > 0 {
                    place.start = moves.place(input, place.start)?;
                }
                if let Some(TailPlace::Packed { offset }) = &mut place.tail {
                    *offset = offset.saturating_add(packed_base);
                }
            }
        }
        let is_far = self.byte_aligned && moves.end >= far;
        self.packed.finish(&mut self.clusters, moves, if is_far { self.job.inputs } else { &[] })
    }
}

fn add_ranges<'a>(clusters: impl IntoIterator<Item = &'a Cluster>, ranges: &mut Ranges) {
    for cluster in clusters.into_iter().filter(|cluster| cluster.form != ClusterForm::Hole) {
        ranges.add(cluster.offset, cluster.stored_len.into());
    }
}

fn flat_len(scanned: &Scanned, node: NodeId, place: &FilePlace<Clusters>) -> u64 {
    match (&scanned.tree.node(node).kind, place.tail) {
        (NodeKind::File { len, .. }, Some(TailPlace::Inline(tail))) => {
            len.saturating_sub(tail.stored_len.into())
        }
        (NodeKind::File { len, .. }, _) => *len,
        _ => 0,
    }
}

struct Tails {
    rows: Vec<(u32, u64)>,
    images: Vec<Arc<dyn Image>>,
}

impl fmt::Debug for Tails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} inline tails", self.rows.len())
    }
}

impl InlineTails for Tails {
    fn read(&self, tail: InlineTail, out: &mut Vec<u8>) -> Result<()> {
        let row = usize::try_from(tail.id).ok().and_then(|index| self.rows.get(index));
        let found = row.and_then(|row| Some((self.images.get(row.0 as usize)?, row.1)));
        let (image, at) = found.ok_or_else(|| Error::failed("internal: a tail that was not kept"))?;
        let start = out.len();
        out.resize(start + tail.stored_len as usize, 0);
        image.read_exact_at(at, out.get_mut(start..).unwrap_or_default())
    }
}
