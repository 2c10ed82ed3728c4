//! Data common to files that are not equal.

use crate::check::{check, place};
use crate::determinism::same_with_any_number_of_threads;
use crate::fake::{CLUSTER_LEN, Fake, Files, Packed, cut, pack_with};
use crate::round_trip::codecs;
use packfs_codec::{CodecSettings, Lz4Settings};
use packfs_format::{ClusterForm, ClusterPlan, FileForm, Tail};
use packfs_testkit::Random;

const LZ4: CodecSettings = CodecSettings::Lz4(Lz4Settings { acceleration: 1 });

fn sharing(codec: CodecSettings) -> ClusterPlan {
    ClusterPlan { share_ranges: true, segment_len: 64 << 10, ..cut(codec, CLUSTER_LEN) }
}

/// Files with long common parts at different offsets.
fn related_files() -> Files {
    let mut random = Random::new(20);
    let text = random.text(300_000);
    let noise = random.noise(200_000);
    let all = vec![
        text.clone(),
        [random.text(1234).as_slice(), &text[50_000..250_000], &random.text(4321)].concat(),
        noise.clone(),
        [&noise[..99_999], &random.noise(777), &noise[99_999..]].concat(),
        [&random.text(70_000), &noise[1000..101_000], &text[..100_000], &random.text(10)].concat(),
        // Recurs within the same file, in later segments.
        [&random.text(150_000)[..], &vec![0; 100_000]].concat(),
        [random.noise(80_000), random.text(80_000)].concat().repeat(3),
        [&text[200_000..], &text[..100_000]].concat(),
        text[..299_999].to_vec(),
    ];
    Files::new(all)
}

fn len(packed: &Packed) -> u64 {
    packed.report.data_len
}

#[test]
fn shared_ranges_give_back_every_file_with_any_codec_and_tail() {
    let files = related_files();
    for codec in codecs() {
        let job = |i| ([Tail::Own, Tail::Inline, Tail::Shared][i as usize % 3], 0);
        let apart = pack_with(&Fake::new(cut(codec.clone(), CLUSTER_LEN), job), &files, 2);
        let shared = pack_with(&Fake::new(sharing(codec), job), &files, 2);
        check(&shared, &files);
        assert!(len(&shared) < len(&apart) * 6 / 10, "{} of {}", len(&shared), len(&apart));
    }
}

#[test]
fn incompressible_ranges_are_shared_too() {
    let mut random = Random::new(21);
    let noise = random.noise(500_000);
    for (shift, byte_aligned) in [(0, false), (6 * 512, false), (100, true)] {
        let files = Files::new(vec![
            noise.clone(),
            [&random.noise(5120 + shift), &noise[10_240..400_000], &random.noise(5000)].concat(),
        ]);
        let cut = ClusterPlan { byte_aligned, ..sharing(LZ4) };
        let packed = pack_with(&Fake::new(cut, |_| (Tail::Own, 0)), &files, 2);
        check(&packed, &files);
        assert_eq!(place(&packed, 0).form, FileForm::Flat);
        assert!(len(&packed) < 540_000, "{}", len(&packed));
    }
}

#[test]
fn a_part_of_a_cluster_is_marked_as_such() {
    let mut random = Random::new(22);
    let text = random.text(60_000);
    let files =
        Files::new(vec![text.clone(), [&random.text(5000), &text[..50_000], &random.text(9000)].concat()]);
    let packed = pack_with(&Fake::new(sharing(LZ4), |_| (Tail::Own, 0)), &files, 2);
    check(&packed, &files);
    let (first, second) = (place(&packed, 0), place(&packed, 1));
    let stored: Vec<_> = packed.placed.clusters_of(&first).iter().map(|row| (row.offset, row.len)).collect();
    let rows = packed.placed.clusters_of(&second);
    let whole = rows.iter().filter(|row| stored.contains(&(row.offset, row.len)));
    assert!(whole.clone().count() > 5 && whole.clone().all(|row| row.form == ClusterForm::Compressed));
    let part = |row: &&packfs_format::Cluster| row.form == ClusterForm::CompressedPart;
    assert!(rows.iter().filter(part).all(|row| stored.iter().any(|s| s.0 == row.offset && s.1 > row.len)));
}

#[test]
fn byte_aligned_clusters_share_ranges() {
    let files = related_files();
    let aligned = |share_ranges| ClusterPlan { byte_aligned: true, share_ranges, ..sharing(LZ4) };
    let apart = pack_with(&Fake::new(aligned(false), |_| (Tail::Own, 0)), &files, 2);
    let shared = pack_with(&Fake::new(aligned(true), |_| (Tail::Own, 0)), &files, 2);
    check(&shared, &files);
    assert!(len(&shared) < len(&apart) * 6 / 10, "{} of {}", len(&shared), len(&apart));
}

#[test]
fn shared_ranges_are_the_same_with_1_2_and_16_threads() {
    let mut files = related_files();
    let mut random = Random::new(23);
    for i in 0..60 {
        let (from, to) = (&files.all[i % 9], &files.all[(i * 5 + 1) % 9]);
        let cut_at = random.below(from.len() as u64) as usize;
        let goes_on = random.below(to.len() as u64) as usize;
        let file = [&from[cut_at..], &to[goes_on..]].concat();
        files.all.push(file);
    }
    let job = |i| ([Tail::Own, Tail::Inline, Tail::Shared][i as usize % 3], 0);
    same_with_any_number_of_threads(|| Fake::new(sharing(LZ4), job), &files);
}
