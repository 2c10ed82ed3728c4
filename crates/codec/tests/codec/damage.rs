//! Blocks that no encoder wrote: decoders answer with an error or with bytes within bounds, and
//! never panic.

use crate::common::{Noise, noise, settings, text};
use packfs_codec::{Algorithm, DICT_LEN_MAX, DecodeError, Decoder, decoder, encoder};

const PLAIN_LEN: usize = 5000;

/// One sound block of every algorithm.
fn samples() -> Vec<(Algorithm, Vec<u8>)> {
    ["gzip", "lzma", "lzo", "xz", "lz4", "zstd", "deflate", "microlzma"]
        .into_iter()
        .map(|spec| {
            let settings = settings(spec, 8192);
            let mut packed = vec![0; PLAIN_LEN];
            let len = encoder(&settings).unwrap().compress(&text(PLAIN_LEN), &mut packed).unwrap().unwrap();
            packed.truncate(len);
            (settings.algorithm(), packed)
        })
        .collect()
}

/// Decodes into the middle of a larger buffer and sees to it that nothing was written around it.
fn decode_guarded(decoder: &mut dyn Decoder, src: &[u8], dst_len: usize) -> Result<usize, DecodeError> {
    let mut dst = vec![0x5A; dst_len + 128];
    let result = decoder.decompress(src, &mut dst[64..64 + dst_len]);
    assert!(dst[..64].iter().chain(&dst[64 + dst_len..]).all(|&byte| byte == 0x5A), "wrote out of bounds");
    if let Ok(len) = result {
        assert!(len <= dst_len);
    }
    result
}

#[test]
fn every_truncation_is_an_error() {
    for (algorithm, packed) in samples() {
        let mut decoder = decoder(algorithm);
        for len in 0..packed.len() {
            // LZ4 has no end marker: a block cut between two sequences is a shorter block.
            match decode_guarded(&mut *decoder, &packed[..len], PLAIN_LEN) {
                Ok(plain_len) => {
                    assert!(algorithm == Algorithm::Lz4 && plain_len < PLAIN_LEN, "{algorithm} {len}");
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

#[test]
fn every_destination_that_is_too_small_is_an_error() {
    for (algorithm, packed) in samples() {
        let mut decoder = decoder(algorithm);
        for dst_len in [0, 1, 2, 100, PLAIN_LEN / 2, PLAIN_LEN - 1] {
            let result = decode_guarded(&mut *decoder, &packed, dst_len);
            // Neither says how long it is.
            let told_apart = !matches!(algorithm, Algorithm::Lz4 | Algorithm::MicroLzma);
            match result {
                Err(DecodeError::TooLong) => {}
                Err(_) if !told_apart => {}
                other => panic!("{algorithm} into {dst_len} bytes: {other:?}"),
            }
        }
        assert_eq!(decode_guarded(&mut *decoder, &packed, PLAIN_LEN), Ok(PLAIN_LEN));
    }
}

#[test]
fn bytes_after_the_end_are_an_error() {
    for (algorithm, packed) in samples() {
        for garbage in [&[0][..], &[0; 12], &[0x78, 0x9C, 1, 2, 3]] {
            let padded = [&packed[..], garbage].concat();
            let result = decode_guarded(&mut *decoder(algorithm), &padded, PLAIN_LEN + 100);
            assert!(result.is_err(), "{algorithm}: {result:?}");
        }
    }
}

#[test]
fn flipped_bits_never_panic_and_checksums_find_them() {
    for (algorithm, packed) in samples() {
        let mut decoder = decoder(algorithm);
        let mut plain = vec![0; PLAIN_LEN];
        for bit in 0..packed.len() * 8 {
            let mut damaged = packed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let result = decoder.decompress(&damaged, &mut plain);
            // A checksum leaves damage unseen only where it does not matter, such as the padding of
            // the last byte.
            if result.is_ok() && matches!(algorithm, Algorithm::Xz | Algorithm::Zlib) {
                assert_eq!(result, Ok(PLAIN_LEN), "{algorithm}, bit {bit}");
                assert!(plain == text(PLAIN_LEN), "{algorithm}, bit {bit}: other bytes came out");
            }
        }
        assert_eq!(
            decode_guarded(&mut *decoder, &packed, PLAIN_LEN),
            Ok(PLAIN_LEN),
            "{algorithm} is usable after"
        );
    }
}

#[test]
fn random_damage_never_panics() {
    let mut random = Noise(1);
    for (algorithm, packed) in samples() {
        let mut decoder = decoder(algorithm);
        for _ in 0..3000 {
            let mut damaged = packed.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(damaged.len());
                match random.below(3) {
                    0 => damaged[at] = random.next() as u8,
                    1 => damaged[at] = [0, 0xFF, 0x7F, 0x80][random.below(4)],
                    _ => damaged.truncate(at.max(1)),
                }
            }
            let _ = decode_guarded(&mut *decoder, &damaged, PLAIN_LEN);
        }
    }
}

#[test]
fn garbage_never_panics() {
    for algorithm in Algorithm::ALL {
        let mut decoder = decoder(algorithm);
        for len in 0..600 {
            let _ = decode_guarded(&mut *decoder, &noise(len), PLAIN_LEN);
            let _ = decode_guarded(&mut *decoder, &vec![0xFF; len], PLAIN_LEN);
            let _ = decode_guarded(&mut *decoder, &vec![0; len], PLAIN_LEN);
        }
    }
}

/// One sound `.lzma` block with the given header fields instead of the stored ones.
fn lzma_with(dict_len: u32, stated_len: u64) -> Vec<u8> {
    let (_, mut packed) =
        samples().into_iter().find(|(algorithm, _)| *algorithm == Algorithm::LzmaAlone).unwrap();
    packed[1..5].copy_from_slice(&dict_len.to_le_bytes());
    packed[5..13].copy_from_slice(&stated_len.to_le_bytes());
    packed
}

#[test]
fn lzma_dictionaries_are_taken_up_to_the_limit() {
    let mut decoder = decoder(Algorithm::LzmaAlone);
    for dict_len in [8192, 8 << 20, DICT_LEN_MAX] {
        let packed = lzma_with(dict_len, PLAIN_LEN as u64);
        assert_eq!(decode_guarded(&mut *decoder, &packed, PLAIN_LEN), Ok(PLAIN_LEN));
    }
    for dict_len in [128 << 20, u32::MAX] {
        let packed = lzma_with(dict_len, PLAIN_LEN as u64);
        assert_eq!(
            decode_guarded(&mut *decoder, &packed, PLAIN_LEN),
            Err(DecodeError::DictionaryTooLarge),
            "{dict_len}"
        );
    }
}

#[test]
fn lzma_header_states_the_length_and_is_held_to_it() {
    let mut decoder = decoder(Algorithm::LzmaAlone);
    assert_eq!(lzma_with(8192, PLAIN_LEN as u64), samples()[1].1);
    for stated_len in [PLAIN_LEN as u64 + 1, 1 << 40, u64::MAX - 1] {
        let packed = lzma_with(8192, stated_len);
        assert_eq!(decode_guarded(&mut *decoder, &packed, PLAIN_LEN), Err(DecodeError::TooLong));
    }
    for stated_len in [0, 1, PLAIN_LEN as u64 - 1] {
        let packed = lzma_with(8192, stated_len);
        assert!(decode_guarded(&mut *decoder, &packed, PLAIN_LEN).is_err(), "{stated_len}");
    }
}

const SENTENCE: &[u8] = b"packfs packfs packfs packfs\n";

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

#[test]
fn reads_lzma_blocks_of_unknown_length_with_end_marker() {
    // From `xz --format=lzma`.
    let packed = hex("5d00008000ffffffffffffffff 0038184899cd6c779146fdbf5c4343ffffed1b8000");
    let mut decoder = decoder(Algorithm::LzmaAlone);
    let mut dst = [0; SENTENCE.len()];
    assert_eq!(decoder.decompress(&packed, &mut dst), Ok(SENTENCE.len()));
    assert_eq!(dst, *SENTENCE);
    assert_eq!(decode_guarded(&mut *decoder, &packed, SENTENCE.len() - 1), Err(DecodeError::TooLong));
    // mksquashfs writes the length into the header and keeps the end marker.
    let mut stated = packed.clone();
    stated[5..13].copy_from_slice(&(SENTENCE.len() as u64).to_le_bytes());
    assert_eq!(decode_guarded(&mut *decoder, &stated, SENTENCE.len()), Ok(SENTENCE.len()));
}

#[test]
fn reads_xz_blocks_of_other_writers() {
    // From `xz`: another dictionary (8 MiB) and another check (CRC64) than ours.
    let packed = hex(
        "fd377a585a000004e6d6b446 020021011600000074 2fe5a3 e0001b000f5d0038184899cd6c779146fdbf341400000000 \
         43c756bb28553f89 00012b1c0d14f742 1fb6f37d010000000004595a",
    );
    let mut dst = [0; SENTENCE.len()];
    assert_eq!(decoder(Algorithm::Xz).decompress(&packed, &mut dst), Ok(SENTENCE.len()));
    assert_eq!(dst, *SENTENCE);
}

#[test]
fn xz_blocks_that_demand_a_huge_dictionary_are_refused() {
    let (_, mut packed) = samples().into_iter().find(|(algorithm, _)| *algorithm == Algorithm::Xz).unwrap();
    // Block header at 12: length, flags, filter id 0x21, property length 1, dictionary, padding,
    // CRC32.
    assert_eq!(packed[14..16], [0x21, 1]);
    packed[16] = 40; // 4 GiB - 1
    let crc = crc32(&packed[12..20]);
    packed[20..24].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(
        decode_guarded(&mut *decoder(Algorithm::Xz), &packed, PLAIN_LEN),
        Err(DecodeError::DictionaryTooLarge)
    );
}

fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}
