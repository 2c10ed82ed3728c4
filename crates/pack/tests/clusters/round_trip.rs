//! Every recipe with every tail and several codecs, over lengths around every boundary.

use crate::check::{check, place};
use crate::fake::{BLOCK_LEN, CLUSTER_LEN, Fake, Files, SEGMENT_LEN, cut, pack_with};
use packfs_codec::{
    CodecSettings, DeflateSettings, Lz4HcSettings, Lz4Settings, LzmaFraming, LzmaSettings, ZstdSettings,
};
use packfs_format::{ClusterRecipe, FileForm, Recipe, Tail, TailPlace};
use packfs_testkit::Random;

pub fn codecs() -> Vec<CodecSettings> {
    vec![
        CodecSettings::Lz4(Lz4Settings { acceleration: 1 }),
        CodecSettings::Lz4Hc(Lz4HcSettings { level: 9 }),
        CodecSettings::Zstd(ZstdSettings { level: 3, window_log_max: Some(20) }),
        CodecSettings::Deflate(DeflateSettings { level: 6 }),
        CodecSettings::Lzma(LzmaSettings {
            framing: LzmaFraming::Micro,
            preset: 1,
            extreme: false,
            dict_len: 64 << 10,
        }),
    ]
}

/// Lengths around every boundary of the small format, each as text, noise, zeros and a mixture.
pub fn files_of_every_length(seed: u64) -> Files {
    let mut random = Random::new(seed);
    let block = u64::from(BLOCK_LEN);
    let cluster = u64::from(CLUSTER_LEN);
    let mut lens = vec![1, 2, 100, 3 * SEGMENT_LEN + 100, 10 * SEGMENT_LEN];
    for edge in [block, 2 * block, 4 * block, cluster, 2 * cluster, 3 * cluster, SEGMENT_LEN, 2 * SEGMENT_LEN]
    {
        lens.extend([edge - 1, edge, edge + 1]);
    }
    let mut all = Vec::new();
    for len in lens.into_iter().map(|len| len as usize) {
        all.push(random.text(len));
        all.push(random.noise(len));
        all.push(vec![0; len]);
        let mut mixed = random.text(len / 3);
        mixed.extend(random.noise(len / 4));
        mixed.resize(len * 3 / 4, 0);
        mixed.extend(random.text(len - mixed.len()));
        all.push(mixed);
    }
    Files::new(all)
}

const TAILS: [Tail; 4] = [Tail::Own, Tail::Inline, Tail::Shared, Tail::SharedWhole];

#[test]
fn every_recipe_and_tail_gives_back_every_file() {
    let files = files_of_every_length(1);
    for codec in codecs() {
        for cluster_len in [BLOCK_LEN, CLUSTER_LEN, 8 * CLUSTER_LEN] {
            let mut cut = cut(codec.clone(), cluster_len);
            cut.decoded_len_max = 8 * cluster_len;
            check(&pack_with(&Fake::new(cut, |i| (TAILS[i as usize % 4], 0)), &files, 2), &files);
        }
    }
    let cut = cut(CodecSettings::Lz4(Lz4Settings { acceleration: 1 }), CLUSTER_LEN);
    for job in [
        |i| (TAILS[i as usize / 4 % 4], (i % 3) as u16),
        |_| (Tail::Own, 0),
        |_| (Tail::Inline, 0),
        |_| (Tail::Shared, 0),
        |_| (Tail::SharedWhole, 0),
        |_| (Tail::Own, 1),
        |_| (Tail::Inline, 1),
        |_| (Tail::Shared, 1),
        |_| (Tail::Own, 2),
    ] as [fn(u64) -> (Tail, u16); 9]
    {
        for holes in [false, true] {
            for inline_flat_max in [0, BLOCK_LEN / 4 * 3] {
                let mut cut = cut.clone();
                cut.inline_flat_max = inline_flat_max;
                check(&pack_with(&Fake { holes, ..Fake::new(cut, job) }, &files, 3), &files);
            }
        }
    }
}

#[test]
fn a_second_codec_takes_the_clusters_that_it_makes_hardly_larger() {
    let mut files = files_of_every_length(9);
    let mut random = Random::new(10);
    for len in [3000, 40_000] {
        let noise = random.noise(len / 8);
        files.all.push([random.text(len), noise.repeat(8), random.text(len)].concat());
    }
    for byte_aligned in [false, true] {
        for share_ranges in [false, true] {
            let first = CodecSettings::Zstd(ZstdSettings { level: 3, window_log_max: Some(20) });
            let mut cut = cut(first, CLUSTER_LEN);
            if let Recipe::Clusters(ClusterRecipe { second, .. }) = &mut cut.recipes[0] {
                *second = Some(CodecSettings::Lz4(Lz4Settings { acceleration: 1 }));
            }
            (cut.byte_aligned, cut.share_ranges) = (byte_aligned, share_ranges);
            let packed = pack_with(&Fake::new(cut, |i| (TAILS[i as usize % 4], 0)), &files, 2);
            check(&packed, &files);
            let seconds = packed.placed.data.clusters.iter().filter(|row| row.second).count();
            assert!(seconds > 0 && seconds < packed.placed.data.clusters.len(), "{seconds}");
        }
    }
}

#[test]
fn interlaced_blocks_give_back_every_file() {
    let files = files_of_every_length(12);
    for tail in [Tail::Own, Tail::Shared] {
        let mut cut =
            cut(CodecSettings::Zstd(ZstdSettings { level: 3, window_log_max: Some(20) }), CLUSTER_LEN);
        let job: fn(u64) -> (Tail, u16) = match tail {
            Tail::Own => |_| (Tail::Own, 0),
            _ => |_| (Tail::Shared, 0),
        };
        let shifted = pack_with(&Fake::new(cut.clone(), job), &files, 2);
        cut.interlaced = true;
        let packed = pack_with(&Fake::new(cut, job), &files, 2);
        check(&packed, &files);
        assert!(packed.image.len() == shifted.image.len() && packed.image != shifted.image);
    }
}

#[test]
fn byte_aligned_clusters_give_back_every_file() {
    let files = files_of_every_length(2);
    for codec in codecs() {
        let mut cut = cut(codec, CLUSTER_LEN);
        cut.byte_aligned = true;
        for job in
            [|_| (Tail::Own, 0), |_| (Tail::Shared, 0), |i| (TAILS[i as usize / 4 % 4], (i % 3) as u16)]
                as [fn(u64) -> (Tail, u16); 3]
        {
            let packed = pack_with(&Fake::new(cut.clone(), job), &files, 2);
            check(&packed, &files);
        }
    }
}

#[test]
fn a_packed_stream_may_be_stored_flat() {
    let files = files_of_every_length(3);
    let mut cut = cut(CodecSettings::Lz4(Lz4Settings { acceleration: 1 }), CLUSTER_LEN);
    cut.packed_recipe = 1;
    let packed = pack_with(&Fake::new(cut, |_| (Tail::SharedWhole, 0)), &files, 2);
    check(&packed, &files);
    assert_eq!(packed.placed.data.packed.unwrap().0.form, FileForm::Flat);
}

#[test]
fn files_that_do_not_shrink_are_stored_flat_unless_their_tails_waste_a_block() {
    let mut random = Random::new(4);
    let lens = [3000, 4096, 20_000, 40_961, 100_000];
    let files = Files::new(lens.iter().map(|&len| random.noise(len)).collect());
    for tail in [|_| (Tail::Own, 0), |_| (Tail::Inline, 0), |_| (Tail::Shared, 0)] as [fn(u64) -> _; 3] {
        for inline_flat_max in [0, BLOCK_LEN / 4 * 3] {
            let mut cut =
                cut(CodecSettings::Zstd(ZstdSettings { level: 3, window_log_max: Some(20) }), CLUSTER_LEN);
            cut.inline_flat_max = inline_flat_max;
            let packed = pack_with(&Fake::new(cut, tail), &files, 2);
            check(&packed, &files);
            for (index, &len) in lens.iter().enumerate() {
                let tail_len = len as u32 % BLOCK_LEN;
                let wastes = tail_len > 0 && (BLOCK_LEN - tail_len) as usize > len / 64;
                let is_elsewhere = tail(0).0 == Tail::Shared && tail_len > inline_flat_max && wastes;
                let form = if is_elsewhere { FileForm::Clusters { recipe: 0 } } else { FileForm::Flat };
                assert_eq!(place(&packed, index).form, form, "{index}");
            }
        }
    }
}

#[test]
fn small_files_go_to_the_packed_stream_as_a_whole() {
    let mut random = Random::new(5);
    let files = Files::new((1..100).map(|len| random.text(len * 20)).collect());
    let cut = cut(CodecSettings::Zstd(ZstdSettings { level: 3, window_log_max: Some(20) }), CLUSTER_LEN);
    let packed = pack_with(&Fake::new(cut, |_| (Tail::Shared, 0)), &files, 2);
    check(&packed, &files);
    for index in 0..files.all.len() {
        let place = place(&packed, index);
        assert!(matches!(place.tail, Some(TailPlace::Packed { .. })) && place.count == 0);
    }
    let len: u64 = files.all.iter().map(|file| file.len() as u64).sum();
    assert_eq!(packed.placed.data.packed.unwrap().1, len);
}

#[test]
fn clusters_are_filled() {
    let mut random = Random::new(6);
    let files = Files::new(vec![random.text(SEGMENT_LEN as usize * 4)]);
    for codec in codecs() {
        let packed = pack_with(&Fake::new(cut(codec, CLUSTER_LEN), |_| (Tail::Own, 0)), &files, 2);
        let place = place(&packed, 0);
        let rows = packed.placed.clusters_of(&place);
        let full = rows.iter().filter(|row| row.stored_len > CLUSTER_LEN - 64).count();
        // The last cluster of each segment may be short.
        assert!(full >= rows.len() - 4, "{full} of {}", rows.len());
    }
}

#[test]
fn refuses_plans_that_do_not_add_up() {
    let files = Files::new(vec![vec![1; 10]]);
    let good = cut(CodecSettings::Lz4(Lz4Settings { acceleration: 1 }), CLUSTER_LEN);
    let broken: [fn(&mut packfs_format::ClusterPlan); 6] = [
        |cut| cut.block_len = 500,
        |cut| cut.segment_len += 1,
        |cut| cut.packed_recipe = 3,
        |cut| cut.recipes[2] = Recipe::Chunks { chunk_len: 0 },
        |cut| cut.recipes.truncate(0),
        |cut| cut.decoded_len_max = CLUSTER_LEN,
    ];
    for damage in broken {
        let mut cut = good.clone();
        damage(&mut cut);
        let format = Fake::new(cut, |_| (Tail::Own, 0));
        let options = packfs_pack::PackOptions::default();
        assert!(crate::fake::try_pack(&format, &files, &options, &packfs_core::Silent).is_err());
    }
}
