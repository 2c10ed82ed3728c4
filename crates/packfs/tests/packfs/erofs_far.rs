//! Data and metadata beyond 2^32 blocks: what the format lays out there is found by the kernel and
//! by packfs.
//!
//! Nothing of that size is packed: data are put where they are said to lie, in a file that is
//! nearly all hole.

use crate::common::read_image;
use packfs_format::{
    AnyLayout, Cluster, ClusterForm, ClustersPlaced, FileForm, FilePlace, PackSettings, Placed,
};
use packfs_testkit::{Compare, Mount, Random, is_root, skip, snapshot_dir, snapshot_tree, tree_of};
use std::os::unix::fs::FileExt;

const BLOCK_LEN: u64 = 512;
const FAR: u64 = (BLOCK_LEN << 32) + 77 * BLOCK_LEN;

/// A form of a file, with the codec and the options that make it.
type Row = (FileForm, &'static str, &'static [(&'static str, &'static str)]);

const FORMS: &[Row] = &[
    (FileForm::Flat, "none", &[]),
    (FileForm::Chunks { chunk_bits: 12 }, "none", &[("chunks", "4096")]),
    (FileForm::Clusters { recipe: 0 }, "lz4", &[("index", "extents"), ("fragments", "off")]),
];

#[test]
fn what_lies_beyond_2_to_the_32_blocks_is_found() {
    if !is_root() {
        return skip("mounting needs root");
    }
    for &(form, codec, more) in FORMS {
        let bytes = Random::new(5).noise(40 * 512);
        let (tree, contents) = tree_of([("dir/file", bytes.clone())]);
        let options = [&[("block", "512"), ("48bit", "on"), ("epoch", "0")], more].concat();
        let settings = PackSettings {
            codec: Some(codec.into()),
            made_at: 0,
            options: options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            ..PackSettings::default()
        };
        let packer = packfs_formats::by_name("erofs").unwrap().packer(&settings).unwrap();
        let AnyLayout::Clusters { layout, .. } = packer.layout() else { panic!("erofs fills clusters") };
        let plan = layout.plan(&tree, &[]).unwrap();
        let len = bytes.len() as u32;
        let row = Cluster {
            offset: FAR,
            len: len.into(),
            stored_len: len,
            form: ClusterForm::Plain,
            second: false,
        };
        let clusters = if form == FileForm::Flat { Vec::new() } else { vec![row] };
        let mut files = vec![FilePlace::default(); tree.node_count() as usize];
        files[plan.files[0].node.index()] =
            FilePlace { start: FAR, count: clusters.len() as u32, form, ..FilePlace::default() };
        let placed = Placed {
            files,
            data_end: FAR + u64::from(len),
            data: ClustersPlaced { clusters, ..ClustersPlaced::default() },
            ..Placed::default()
        };

        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("far.erofs");
        let file = std::fs::File::create_new(&image).unwrap();
        if let Err(error) = file.write_all_at(&bytes, FAR) {
            return skip(&format!("files of 2 TiB: {error}"));
        }
        layout
            .lay_out(&tree, &plan, &placed, &mut |section| {
                file.write_all_at(&section.bytes, section.offset).unwrap();
                Ok(())
            })
            .unwrap();
        let what = format!("{form:?}");
        let expected = snapshot_tree(&tree, &contents);
        let mount = Mount::new(&image, "erofs").unwrap_or_else(|e| panic!("{what}: {e}"));
        expected.assert_same(&snapshot_dir(&mount.path()), Compare::default(), &what);
        drop(mount);
        let (read, findings) = read_image(&image);
        expected.assert_same(&read, Compare::default(), &what);
        assert_eq!(findings, [], "{what}");
    }
}
