//! Writes the new image: first its metadata, which checks every limit of the format, then the data.

use crate::moves::{Move, Moves};
use crate::scan::Scanned;
use crate::warm::Warm;
use crate::{DataPlace, MergeInput, MergeOptions, MergeReport, as_limit};
use packfs_core::{Error, Image, NodeKind, Progress, Result, Stage};
use packfs_format::{DataKind, Layout, PackFormat, Placed, Plan};
use packfs_pack::Output;
use std::ops::Range;
use std::path::Path;

/// Bytes copied at a time if the system cannot copy.
const COPY_LEN: u64 = 1 << 20;
/// Bytes that the system copies between two reports of progress.
const SYSTEM_LEN: u64 = 64 << 20;

pub(crate) struct Job<'a> {
    pub inputs: &'a [MergeInput],
    pub warm: &'a Warm<'a>,
    pub scanned: &'a Scanned,
    pub packer: &'a dyn PackFormat,
    pub output: &'a Path,
    pub options: &'a MergeOptions,
    pub progress: &'a dyn Progress,
    /// Set to leave holes in place of data.
    pub leaves_data: bool,
}

pub(crate) struct Written {
    pub report: MergeReport,
    pub left: Vec<Move>,
}

impl Job<'_> {
    /// Errors: `Unsupported` for metadata that the format cannot represent.
    pub(crate) fn plan<K: DataKind>(&self, layout: &dyn Layout<K>) -> Result<Plan<K>> {
        let plan = layout.plan(&self.scanned.tree, &[]).map_err(as_limit)?;
        match plan.losses.iter().find(|loss| loss.fatal || loss.refused) {
            Some(loss) => Err(Error::unsupported("merge", &loss.what)),
            None => Ok(plan),
        }
    }

    pub(crate) fn check_cancelled(&self) -> Result<()> {
        if self.progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    pub(crate) fn not_stored(&self, input: usize) -> Error {
        let name = self.inputs.get(input).map_or("", |input| &input.name);
        Error::unsupported("request", format!("cannot merge {name}: its data cannot lie in another image"))
    }

    pub(crate) fn write<K: DataKind>(
        &self,
        layout: &dyn Layout<K>,
        plan: &Plan<K>,
        mut placed: Placed<K>,
        moves: &Moves,
    ) -> Result<Written> {
        placed.data_end = moves.end.saturating_add(moves.fresh.len() as u64);
        let in_image = self.options.data == DataPlace::Image;
        let start = if in_image { placed.data_end } else { 0 };
        let mut out = Output::of_parts(self.output, start, self.progress)?;
        self.progress.begin(Stage::Metadata, 0, 0);
        let (mut metadata_len, mut end) = (0_u64, 0_u64);
        layout
            .lay_out(&self.scanned.tree, plan, &placed, &mut |section| {
                self.check_cancelled()?;
                metadata_len = metadata_len.saturating_add(section.bytes.len() as u64);
                end = end.max(section.offset.saturating_add(section.bytes.len() as u64));
                out.write_section(&section)
            })
            .map_err(as_limit)?;
        out.flush()?;
        let base = if self.options.data == DataPlace::Flat { end } else { 0 };
        let moved = match self.options.data {
            DataPlace::Inputs => Moved::default(),
            _ if self.leaves_data => {
                out.write_at(base.saturating_add(moves.fresh_at), &moves.fresh)?;
                Moved::default()
            }
            DataPlace::Image => self.move_data(&out, moves, base, plan.data_start)?,
            DataPlace::Flat => self.move_data(&out, moves, base, end)?,
        };
        if self.options.data == DataPlace::Flat {
            out.reach(end.saturating_add(moves.end));
        }
        let image_size = out.end(self.packer.padding())?;
        for section in self.packer.seal(&out.written())? {
            out.overwrite(&section)?;
        }
        // A truncated file reads as a hole instead of data.
        self.inputs.iter().try_for_each(|input| input.data_image().check_unchanged())?;
        out.finish(self.options.sync)?;
        let left = |row: &Move| Move { to: base.saturating_add(row.to), ..row.clone() };
        let is_left = self.leaves_data && self.options.data != DataPlace::Inputs;
        Ok(Written {
            report: MergeReport { metadata_bytes: metadata_len, image_size, ..self.report(&moved) },
            left: if is_left { moves.rows().iter().map(left).collect() } else { Vec::new() },
        })
    }

    fn report(&self, moved: &Moved) -> MergeReport {
        let tree = &self.scanned.tree;
        let is_file = |kind: &NodeKind| matches!(kind, NodeKind::File { .. });
        MergeReport {
            format: self.packer.format().name,
            codec: self.packer.codec_name(),
            images: self.inputs.len() as u64,
            nodes: tree.node_count().into(),
            files: tree.nodes().filter(|(_, node)| is_file(&node.kind)).count() as u64,
            file_bytes: tree.bytes_total(),
            replaced: self.scanned.replaced,
            moved_bytes: moved.len,
            moved_by_system_bytes: moved.by_system_len,
            ..MergeReport::default()
        }
    }

    /// Moves data to its offset plus `base`; other bytes from `start` on are zeros.
    fn move_data(&self, out: &Output, moves: &Moves, base: u64, start: u64) -> Result<Moved> {
        let total = moves.rows().iter().map(Move::data_len).fold(0, u64::saturating_add);
        self.progress.begin(Stage::Data, 0, total);
        let mut moved = Moved::default();
        let mut at = start;
        for row in moves.rows() {
            let to = base.saturating_add(row.to);
            self.clear(out, at..to)?;
            self.move_range(out, row, to, &mut moved)?;
            at = to.saturating_add(row.data_len());
        }
        let fresh_at = base.saturating_add(moves.fresh_at);
        self.clear(out, at..fresh_at)?;
        out.write_at(fresh_at, &moves.fresh)?;
        Ok(moved)
    }

    /// Only if old contents would show.
    fn clear(&self, out: &Output, range: Range<u64>) -> Result<()> {
        if !out.is_in_place() {
            return Ok(());
        }
        let zeros = vec![0; COPY_LEN.min(range.end.saturating_sub(range.start)) as usize];
        let mut at = range.start;
        while at < range.end {
            self.check_cancelled()?;
            let len = (range.end - at).min(COPY_LEN) as usize;
            out.write_at(at, zeros.get(..len).unwrap_or_default())?;
            at += len as u64;
        }
        Ok(())
    }

    /// Skips holes. Bytes past the end of the input are zeros.
    fn move_range(&self, out: &Output, row: &Move, to: u64, moved: &mut Moved) -> Result<()> {
        let Some(input) = self.inputs.get(row.input) else { return Ok(()) };
        let image = input.data_image();
        let range = row.from.start..row.from.end.min(image.len().max(row.from.start));
        let place = |at: u64| to.saturating_add(at.saturating_sub(range.start));
        let mut at = range.start;
        while at < range.end {
            let data = image.next_data(at)?.unwrap_or(range.end..range.end);
            let data_start = data.start.clamp(at, range.end);
            let data_end = data.end.min(range.end);
            self.clear(out, place(at)..place(data_start))?;
            at = data_start;
            while at < data_end {
                self.check_cancelled()?;
                let len = (data_end - at).min(SYSTEM_LEN);
                let copied = match input.data_file() {
                    Some(file) => out.copy_range(place(at), file, at, len)?,
                    None => 0,
                };
                self.copy(out, &*image, at + copied..at + len, place(at + copied))?;
                moved.len += len;
                moved.by_system_len += copied;
                self.progress.advance(0, len, len);
                at += len;
            }
        }
        self.clear(out, place(range.end)..to.saturating_add(row.data_len()))
    }

    fn copy(&self, out: &Output, image: &dyn Image, range: Range<u64>, to: u64) -> Result<()> {
        let mut buffer = vec![0; COPY_LEN.min(range.end.saturating_sub(range.start)) as usize];
        let mut at = range.start;
        while at < range.end {
            let len = (range.end - at).min(COPY_LEN) as usize;
            let part = buffer.get_mut(..len).unwrap_or_default();
            image.read_exact_at(at, part)?;
            out.write_at(to.saturating_add(at - range.start), part)?;
            at += len as u64;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    len: u64,
    by_system_len: u64,
}
