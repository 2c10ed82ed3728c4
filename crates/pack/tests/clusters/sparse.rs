//! Runs of zeros take next to no space, in every form.

use crate::check::{check, place};
use crate::fake::{BLOCK_LEN, CLUSTER_LEN, Fake, Files, cut, pack_with};
use packfs_codec::{CodecSettings, Lz4Settings};
use packfs_format::{ClusterForm, FileForm, Recipe, Tail};
use packfs_testkit::Random;

/// Holes of many blocks between a little text.
fn sparse_files() -> Files {
    let mut random = Random::new(9);
    let mut all = vec![vec![0; 300_000], vec![0; 64 << 10]];
    for hole in [1 << 10, 70_000, 200_000, 333_333] {
        let mut file = random.text(5000);
        file.resize(5000 + hole, 0);
        file.extend(random.text(700));
        file.resize(file.len() + hole, 0);
        all.push(file);
    }
    Files { sparse: true, ..Files::new(all) }
}

const LZ4: CodecSettings = CodecSettings::Lz4(Lz4Settings { acceleration: 1 });

#[test]
fn flat_files_with_holes_become_chunks_if_the_format_can() {
    let files = sparse_files();
    let mut cut = cut(LZ4, CLUSTER_LEN);
    cut.recipes[1] = Recipe::Flat { sparse_chunk_len: Some(2 * u64::from(BLOCK_LEN)) };
    let packed = pack_with(&Fake::new(cut.clone(), |_| (Tail::Inline, 1)), &files, 2);
    check(&packed, &files);
    for index in [0, 1, 3, 4, 5] {
        let place = place(&packed, index);
        assert!(matches!(place.form, FileForm::Chunks { .. }));
        let hole_len = packed.placed.hole_len(&place);
        assert!(hole_len >= 64 << 10, "{index}: {hole_len}");
    }
    assert!(packed.report.data_len < 50_000, "{}", packed.report.data_len);

    let without = pack_with(&Fake { holes: false, ..Fake::new(cut, |_| (Tail::Inline, 1)) }, &files, 2);
    check(&without, &files);
    assert_eq!(place(&without, 3).form, FileForm::Flat);
}

#[test]
fn zeros_in_compressed_files_share_one_cluster() {
    let files = sparse_files();
    let mut cut = cut(LZ4, CLUSTER_LEN);
    cut.segment_len = 1 << 20;
    cut.decoded_len_max = 128 << 10;
    let packed = pack_with(&Fake::new(cut, |_| (Tail::Own, 0)), &files, 2);
    check(&packed, &files);
    let rows: Vec<_> = (0..6).flat_map(|i| packed.placed.clusters_of(&place(&packed, i)).to_vec()).collect();
    let first = rows.iter().find(|row| row.len == 128 * u64::from(BLOCK_LEN)).unwrap();
    let sharing = rows.iter().filter(|row| row.offset == first.offset && row.len == first.len).count();
    assert!(sharing > 10, "{sharing}");
    assert!(packed.report.data_len < 60_000, "{}", packed.report.data_len);
}

#[test]
fn byte_aligned_clusters_know_holes() {
    let files = sparse_files();
    let mut cut = cut(LZ4, CLUSTER_LEN);
    cut.byte_aligned = true;
    let packed = pack_with(&Fake::new(cut, |_| (Tail::Own, 0)), &files, 2);
    check(&packed, &files);
    let place = place(&packed, 5);
    let rows = packed.placed.clusters_of(&place);
    assert!(rows.iter().any(|row| row.form == ClusterForm::Hole && row.len > 100 * u64::from(CLUSTER_LEN)));
    assert!(packed.placed.hole_len(&place) > 600_000);
}
