//! Every codec decodes what it encoded; equal input gives equal output on every call.

use crate::common::{BLOCK_LENS, HARDLY_SHRINKING, SPECS, noise, program, settings, text};
use packfs_codec::{Algorithm, Decoders, decoder, encoder};

/// Compresses every block of `data`, decodes what shrank, and returns the compressed length.
fn round_trip(spec: &str, block_len: usize, data: &[u8]) -> usize {
    let settings = settings(spec, block_len);
    let (mut encoder, mut decoder) = (encoder(&settings).unwrap(), decoder(settings.algorithm()));
    let mut packed = vec![0; block_len];
    let mut plain = vec![0xAA; block_len];
    let mut total = 0;
    for block in data.chunks(block_len) {
        let room = &mut packed[..block.len() - 1];
        let Some(len) = encoder.compress(block, room).unwrap() else {
            total += block.len();
            continue;
        };
        assert!(len <= room.len(), "{spec}: {len} bytes in room for {}", room.len());
        total += len;
        // The exact room is enough, and more room changes nothing.
        // MicroLZMA takes none but the exact.
        let more = if settings.algorithm() == Algorithm::MicroLzma { block.len() } else { block_len };
        for plain_len in [block.len(), more] {
            let decoded = decoder.decompress(&packed[..len], &mut plain[..plain_len]);
            assert_eq!(decoded, Ok(block.len()), "{spec}, block length {block_len}");
            assert!(plain[..block.len()] == *block, "{spec}, block length {block_len}: other bytes came out");
        }
    }
    total
}

#[test]
fn programs_round_trip_and_shrink() {
    // Two whole blocks of the largest length would be slow; one and a tail show the same.
    let data = program((1 << 20) + 5000);
    for spec in SPECS {
        for block_len in BLOCK_LENS {
            let total = round_trip(spec, block_len, &data);
            let shrinks = total < data.len() * 9 / 10;
            assert!(shrinks || HARDLY_SHRINKING.contains(spec), "{spec}, block length {block_len}: {total}");
        }
    }
}

#[test]
fn text_shrinks_to_less_than_half() {
    let data = text(300_000);
    for spec in SPECS {
        let total = round_trip(spec, 128 << 10, &data);
        let shrinks = total < data.len() / 2;
        assert!(shrinks || HARDLY_SHRINKING.contains(spec), "{spec}: {total} of {}", data.len());
    }
}

#[test]
fn zeros_shrink_to_almost_nothing() {
    for spec in SPECS {
        for block_len in BLOCK_LENS {
            let total = round_trip(spec, block_len, &vec![0; block_len]);
            let shrinks = total < block_len / 10;
            assert!(shrinks || HARDLY_SHRINKING.contains(spec), "{spec}: {total} of {block_len}");
        }
    }
}

#[test]
fn noise_and_single_bytes_do_not_fit() {
    for spec in SPECS {
        for block_len in BLOCK_LENS {
            let mut encoder = encoder(&settings(spec, block_len)).unwrap();
            let data = noise(block_len);
            assert_eq!(encoder.compress(&data, &mut vec![0; block_len - 1]), Ok(None), "{spec}");
            assert_eq!(encoder.compress(&[7], &mut []), Ok(None), "{spec}");
            assert_eq!(encoder.compress(&[7, 7, 7], &mut [0; 2]), Ok(None), "{spec}");
        }
    }
}

#[test]
fn short_blocks_round_trip_when_there_is_room() {
    for spec in SPECS {
        let settings = settings(spec, 128 << 10);
        let (mut encoder, mut decoder) = (encoder(&settings).unwrap(), decoder(settings.algorithm()));
        for len in (1..40).chain([100, 511, 4095]) {
            let data = noise(len);
            let mut packed = vec![0; len * 2 + 200];
            let packed_len = encoder.compress(&data, &mut packed).unwrap().unwrap();
            let mut plain = vec![0; len];
            assert_eq!(decoder.decompress(&packed[..packed_len], &mut plain), Ok(len), "{spec}, {len}");
            assert_eq!(plain, data, "{spec}, {len}");
        }
    }
}

#[test]
fn a_used_encoder_writes_the_bytes_of_a_fresh_one() {
    let block_len = 128 << 10;
    let blocks =
        [program(block_len), noise(block_len), vec![0; 5000], text(70_000), noise(3), text(block_len)];
    for spec in SPECS {
        let settings = settings(spec, block_len);
        let compress = |encoder: &mut dyn packfs_codec::Encoder, block: &[u8]| {
            let mut packed = vec![0; block.len() - 1];
            encoder.compress(block, &mut packed).unwrap().map(|len| packed[..len].to_vec())
        };
        let mut used = encoder(&settings).unwrap();
        for block in blocks.iter().chain(blocks.iter().rev()) {
            let fresh = compress(&mut *encoder(&settings).unwrap(), block);
            assert!(compress(&mut *used, block) == fresh, "{spec}, block of {}", block.len());
        }
    }
}

#[test]
fn more_filters_and_strategies_are_never_larger() {
    let data = program(512 << 10);
    for (one, more) in [
        ("xz:1", "xz:1,bcj=x86+arm64"),
        ("gzip:6,window=14", "gzip:6,window=14,strategy=default+rle+filtered"),
    ] {
        let (one, more) = (round_trip(one, 128 << 10, &data), round_trip(more, 128 << 10, &data));
        assert!(more <= one, "{more} bytes with more attempts, {one} with one");
    }
}

#[test]
fn one_set_of_decoders_reads_blocks_of_all_algorithms_in_turn() {
    let mut decoders = Decoders::new();
    let data = text(8192);
    for spec in SPECS.iter().chain(SPECS) {
        let settings = settings(spec, 8192);
        let mut packed = [0; 10_000];
        let len = encoder(&settings).unwrap().compress(&data, &mut packed).unwrap().unwrap();
        let mut plain = [0; 8192];
        assert_eq!(decoders.decompress(settings.algorithm(), &packed[..len], &mut plain), Ok(8192));
        assert!(plain == *data, "{spec}");
    }
}
