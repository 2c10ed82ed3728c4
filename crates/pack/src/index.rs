//! An image of metadata alone: file data stays where it is, such as in an archive, which becomes a
//! device of the image.

use crate::output::Output;
use crate::size_limit::Place;
use crate::stages::Packing;
use crate::{PackReport, losses};
use packfs_core::{Contents, Error, NodeKind, Result, ResultExt, Stage, Tree, escaped};
use packfs_format::{Clusters, DataFile, FileForm, FilePlace, Layout, Placed, PlacedFile, Plan};
use xxhash_rust::xxh3::Xxh3;

impl Packing<'_> {
    /// Errors: `Unsupported` for files that are not stored in whole blocks.
    pub(crate) fn index(&self, layout: &dyn Layout<Clusters>, device: &DataFile) -> Result<PackReport> {
        let Packing { tree, contents, format, output, options, progress } = *self;
        let plan = layout.plan(tree, &[])?;
        losses::accept(format.format().name, &plan.losses, options.lossy, progress)?;
        let cannot = || format!("cannot read {:?}", device.path);
        let device_len = std::fs::metadata(&device.path).or_io(cannot)?.len();
        let placed = placed(tree, contents, &plan, device_len)?;
        let place = Place { base: options.offset, ..Place::default() };
        let mut out = Output::create(output, &place, 0, progress)?;
        progress.begin(Stage::Metadata, 0, 0);
        let mut metadata_len = 0_u64;
        layout.lay_out(tree, &plan, &placed, &mut |section| {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            metadata_len += section.bytes.len() as u64;
            out.write_section(&section)
        })?;
        let image_len = out.end(format.padding())?;
        for section in format.seal(&out.written())? {
            out.overwrite(&section)?;
        }
        out.finish(options.sync)?;
        let files = tree.nodes().filter(|(_, node)| matches!(node.kind, NodeKind::File { .. }));
        Ok(PackReport {
            format: format.format().name,
            driver: format.driver(),
            codec: format.codec_name(),
            image_len,
            data_files: vec![device.path.clone()],
            nodes: tree.node_count().into(),
            files: files.count() as u64,
            bytes_in: tree.bytes_total(),
            metadata_len,
            ..PackReport::default()
        })
    }
}

fn placed(
    tree: &Tree,
    contents: &dyn Contents,
    plan: &Plan<Clusters>,
    device_len: u64,
) -> Result<Placed<Clusters>> {
    let block_len = u64::from(plan.data.block_len);
    let mut files = vec![FilePlace::default(); tree.node_count() as usize];
    let mut hash = Xxh3::new();
    hash.update(&device_len.to_le_bytes());
    for (id, node) in tree.nodes() {
        let NodeKind::File { len: len @ 1.., content } = node.kind else { continue };
        let refused = |why: String| {
            let path = tree.path(id);
            Error::unsupported("index", format!("\"{}\" {why}", escaped(path.as_bytes())))
                .hint("an image that holds its data takes it")
        };
        let start = contents.stored_at(content);
        let start = start.ok_or_else(|| refused("is sparse, or its source is compressed".into()))?;
        if !start.is_multiple_of(block_len) {
            return Err(refused(format!("starts at {start}, which is no multiple of {block_len}")));
        }
        let end = start.saturating_add(len).checked_next_multiple_of(block_len);
        if end.is_none_or(|end| end > device_len) {
            return Err(refused(format!("does not end a block of {block_len} bytes before {device_len}")));
        }
        [start, len].iter().for_each(|figure| hash.update(&figure.to_le_bytes()));
        if let Some(row) = files.get_mut(id.index()) {
            *row = FilePlace { start, form: FileForm::Flat, ..FilePlace::default() };
        }
    }
    let hash = hash.digest128();
    let mut placed: Placed<Clusters> = Placed { files, data_end: device_len, ..Placed::default() };
    placed.data.hash = hash;
    placed.data.files = vec![PlacedFile { start: 0, end: device_len, hash }];
    Ok(placed)
}
