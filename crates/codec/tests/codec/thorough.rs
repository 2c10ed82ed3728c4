//! Encoders that try several ways: what they make is decoded as any other block, and is no longer.

use crate::common::{program, settings, text};
use packfs_codec::{
    BranchFilter, BranchSet, Encoder, decoder, encoder, fit_encoder, thorough_encoder, thorough_fit_encoder,
};

const BLOCK_LEN: usize = 64 << 10;

fn compressed(encoder: &mut dyn Encoder, block: &[u8]) -> Vec<u8> {
    let mut out = vec![0; block.len() - 1];
    let len = encoder.compress(block, &mut out).unwrap().expect("it shrinks");
    out.truncate(len);
    out
}

#[test]
fn a_search_never_gives_more_than_the_highest_level() {
    for spec in ["gzip:12", "lzo:9", "lz4hc:12", "xz:9,extreme,bcj=x86", "lzma:9,extreme", "zstd:22"] {
        let settings = settings(spec, BLOCK_LEN);
        let mut usual = encoder(&settings).unwrap();
        let mut thorough = thorough_encoder(&settings).unwrap();
        let mut decoder = decoder(settings.algorithm());
        let mut totals = [0, 0];
        for block in [program(3 * BLOCK_LEN), text(2 * BLOCK_LEN)].concat().chunks(BLOCK_LEN) {
            let found = compressed(&mut *thorough, block);
            let mut plain = vec![0; block.len()];
            assert_eq!(decoder.decompress(&found, &mut plain), Ok(block.len()), "{spec}");
            assert!(plain == block, "{spec}: other bytes came out");
            totals[0] += compressed(&mut *usual, block).len();
            totals[1] += found.len();
        }
        assert!(totals[1] <= totals[0], "{spec}: {totals:?}");
    }
}

#[test]
fn a_search_takes_in_at_least_as_much() {
    let data = [text(200_000), program(200_000)].concat();
    for spec in ["microlzma:9,extreme", "zstd:22", "deflate:12", "lz4hc:12"] {
        let settings = settings(spec, BLOCK_LEN);
        let mut room = vec![0; 16 << 10];
        let usual = fit_encoder(&settings).unwrap().compress_to_fit(&data, &mut room).unwrap();
        let mut thorough = thorough_fit_encoder(&settings).unwrap();
        let found = thorough.compress_to_fit(&data, &mut room).unwrap();
        assert!(found.consumed >= usual.consumed, "{spec}: {found:?} {usual:?}");
        let mut plain = vec![0; found.consumed];
        let decoded = decoder(settings.algorithm()).decompress(&room[..found.written], &mut plain);
        assert_eq!(decoded, Ok(found.consumed), "{spec}");
        assert!(plain == data[..found.consumed], "{spec}: other bytes came out");
    }
}

#[test]
fn a_filter_is_tried_only_on_code_it_is_meant_for() {
    let settings = settings("xz:6,bcj=x86+arm", BLOCK_LEN);
    let block = &program(BLOCK_LEN)[..];
    let mut xz = encoder(&settings).unwrap();
    let untold = compressed(&mut *xz, block);
    let mut told = |branches| {
        xz.expect_code(branches);
        compressed(&mut *xz, block)
    };
    let [x86, arm] = [BranchFilter::X86, BranchFilter::Arm].map(|filter| BranchSet::of(&[filter]));
    assert_eq!(told(x86.union(arm)), untold);
    let none = told(BranchSet::NONE);
    // Two filters were requested: unknown data gets neither.
    assert_eq!(told(BranchSet::UNKNOWN), none);
    assert!(told(x86).len() <= none.len());
}
