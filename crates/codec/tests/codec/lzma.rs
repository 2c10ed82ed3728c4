//! The LZMA decoder against liblzma: all that its encoders write decodes to the same, and of
//! damaged streams both take the same.

use crate::common::{Noise, noise, program, text};
use liblzma::stream::{Action, Check, Filters, LzmaOptions, Status, Stream};
use packfs_codec::{Algorithm, Decoder, decoder};

/// Returns bytes with the instructions that branch filters of every processor convert, as often as
/// code has them.
fn code(len: usize) -> Vec<u8> {
    const OPCODES: [u8; 16] =
        [0xE8, 0xE9, 0x48, 0x4B, 0xEB, 0x40, 0x7F, 0x94, 0x90, 0xB0, 0xF0, 0xF8, 0xEF, 0x17, 0x00, 0xFF];
    let mut noise = Noise(len as u64);
    let mut code: Vec<u8> = (0..len)
        .map(|_| match noise.below(4) {
            0 | 1 => OPCODES[noise.below(OPCODES.len())],
            2 => noise.below(8) as u8,
            _ => noise.next() as u8,
        })
        .collect();
    // AUIPC and a load of the same register, and Itanium bundles with calls.
    for _ in 0..len / 64 {
        let at = noise.below(len - 16) & !1;
        let register = noise.below(32) as u32;
        let (upper, lower) = (0x17 | register << 7 | (noise.next() as u32) << 12, 0x3003 | register << 15);
        code[at..at + 4].copy_from_slice(&upper.to_le_bytes());
        code[at + 4..at + 8].copy_from_slice(&lower.to_le_bytes());
        let at = noise.below(len - 16) & !15;
        let call = 5u128 << 37 | u128::from(noise.next() & 0x1F_FFFF) << 13;
        let template = [0x10u128, 0x12, 0x16, 0x18, 0x1C][noise.below(5)];
        code[at..at + 16].copy_from_slice(&(template | call << 5 | call << 46 | call << 87).to_le_bytes());
    }
    code
}

fn encode(mut stream: Stream, plain: &[u8]) -> Vec<u8> {
    let mut packed = vec![0; plain.len() * 2 + 1000];
    while stream.process(
        &plain[stream.total_in() as usize..],
        &mut packed[stream.total_out() as usize..],
        Action::Finish,
    ) != Ok(Status::StreamEnd)
    {}
    packed.truncate(stream.total_out() as usize);
    packed
}

fn options(preset: u32, (lc, lp, pb): (u32, u32, u32)) -> LzmaOptions {
    let mut options = LzmaOptions::new_preset(preset).unwrap();
    options.dict_size(1 << 20).literal_context_bits(lc).literal_position_bits(lp).position_bits(pb);
    options
}

const USUAL: (u32, u32, u32) = (3, 0, 2);
const EXTREME: u32 = 1 << 31;

fn xz(check: Check, chain: impl FnOnce(&mut Filters), options: &LzmaOptions, plain: &[u8]) -> Vec<u8> {
    let mut filters = Filters::new();
    chain(&mut filters);
    filters.lzma2(options);
    encode(Stream::new_stream_encoder(&filters, check).unwrap(), plain)
}

/// Decodes exactly these bytes with liblzma; `None` if it does not consume all of them.
fn reference(mut stream: Stream, packed: &[u8], plain_len: usize) -> Option<Vec<u8>> {
    let mut plain = vec![0; plain_len];
    loop {
        let (read, written) = (stream.total_in() as usize, stream.total_out() as usize);
        match stream.process(&packed[read..], &mut plain[written..], Action::Finish) {
            Ok(Status::Ok) => {}
            Ok(Status::StreamEnd) if stream.total_in() as usize == packed.len() => break,
            _ => return None,
        }
    }
    plain.truncate(stream.total_out() as usize);
    Some(plain)
}

#[track_caller]
fn assert_decodes(algorithm: Algorithm, packed: &[u8], plain: &[u8]) {
    let mut decoder = decoder(algorithm);
    for room in [0, 1, 1000] {
        let mut dst = vec![0x5A; plain.len() + room];
        assert_eq!(
            decoder.decompress(packed, &mut dst),
            Ok(plain.len()),
            "{algorithm}, {} bytes",
            plain.len()
        );
        assert!(dst[..plain.len()] == *plain, "{algorithm}, {} bytes: other bytes came out", plain.len());
    }
    assert_prefixes(&mut *decoder, packed, plain);
}

#[track_caller]
fn assert_prefixes(decoder: &mut dyn Decoder, packed: &[u8], plain: &[u8]) {
    let mut noise = Noise(plain.len() as u64);
    for _ in 0..6 {
        let len = noise.below(plain.len() + 1);
        let mut dst = vec![0x5A; len];
        assert_eq!(decoder.decompress_prefix(packed, &mut dst), Ok(len));
        assert!(dst == plain[..len], "{len} of {} bytes", plain.len());
    }
}

#[test]
fn every_choice_of_contexts_decodes() {
    for plain in [program(30_000), text(30_000), noise(5000)] {
        for pb in 0..=4 {
            for (lc, lp) in (0..=4).flat_map(|lc| (0..=4 - lc).map(move |lp| (lc, lp))) {
                let options = options(1, (lc, lp, pb));
                assert_decodes(Algorithm::Xz, &xz(Check::Crc32, |_| {}, &options, &plain), &plain);
                let alone = encode(Stream::new_lzma_encoder(&options).unwrap(), &plain);
                assert_decodes(Algorithm::LzmaAlone, &alone, &plain);
            }
        }
    }
}

#[test]
fn every_preset_and_length_decodes() {
    let data = [program(3 << 20), text(400_000), vec![0; 300_000], noise(200_000)].concat();
    let lens =
        [1, 2, 3, 15, 16, 17, 31, 32, 33, 47, 48, 272, 273, 274, 320, 321, 4096, 65_535, 65_536, 65_537];
    for preset in [0, 4, 6, 9, 6 | EXTREME] {
        for len in lens {
            let plain = &data[data.len() - 200_000 - len / 2..][..len];
            let options = options(preset, USUAL);
            assert_decodes(Algorithm::Xz, &xz(Check::Crc32, |_| {}, &options, plain), plain);
            let alone = encode(Stream::new_lzma_encoder(&options).unwrap(), plain);
            assert_decodes(Algorithm::LzmaAlone, &alone, plain);
        }
    }
    // Chunks of LZMA2 end after 2 MiB decoded and 64 KiB encoded; noise is stored in chunks of its
    // own.
    assert_decodes(Algorithm::Xz, &xz(Check::Crc32, |_| {}, &options(1, USUAL), &data), &data);
}

#[test]
fn short_and_long_patterns_are_repeated_rightly() {
    let mut noise = Noise(5);
    for period in (1..40).chain([63, 64, 65, 255, 256, 300]) {
        let pattern: Vec<u8> = (0..period).map(|_| noise.next() as u8).collect();
        for len in [period + 2, period + 50, period * 3 + 7, 3000] {
            let mut plain: Vec<u8> = pattern.iter().copied().cycle().take(len).collect();
            plain.extend((0..noise.below(60)).map(|at| at as u8 ^ 0x55));
            let packed = xz(Check::Crc32, |_| {}, &options(6, USUAL), &plain);
            assert_decodes(Algorithm::Xz, &packed, &plain);
        }
    }
}

#[test]
fn every_check_is_verified() {
    let plain = text(5000);
    for check in [Check::None, Check::Crc32, Check::Crc64, Check::Sha256] {
        let packed = xz(check, |_| {}, &options(6, USUAL), &plain);
        assert_decodes(Algorithm::Xz, &packed, &plain);
        for bit in 0..packed.len() * 8 {
            let mut damaged = packed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let result = decoder(Algorithm::Xz).decompress(&damaged, &mut vec![0; plain.len()]);
            assert!(result.is_err() || matches!(check, Check::None), "{check:?}, bit {bit}");
        }
    }
}

#[test]
fn every_filter_is_undone() {
    type Add = for<'a> fn(&'a mut Filters, &[u8]) -> Result<&'a mut Filters, liblzma::stream::Error>;
    let chains: [(Add, u32); 8] = [
        (Filters::x86_properties, 1),
        (Filters::powerpc_properties, 4),
        (Filters::ia64_properties, 16),
        (Filters::arm_properties, 4),
        (Filters::arm_thumb_properties, 2),
        (Filters::sparc_properties, 4),
        (Filters::arm64_properties, 4),
        (Filters::riscv_properties, 2),
    ];
    let options = options(0, USUAL);
    for (at, (add, alignment)) in chains.into_iter().enumerate() {
        for plain in [code(40_000), program(100_000), code(20), code(3001), code(16_384), noise(70_000)] {
            for start in [0, alignment, 0x1234_5670, 0xFFFF_FFF0] {
                let packed = xz(
                    Check::Crc32,
                    |filters| assert!(add(filters, &start.to_le_bytes()).is_ok()),
                    &options,
                    &plain,
                );
                assert_decodes(Algorithm::Xz, &packed, &plain);
            }
        }
        // Three of them, and one is the delta filter.
        let add_other = chains[(at + 3) % chains.len()].0;
        let plain = code(30_000);
        let packed = xz(
            Check::Crc32,
            |filters| {
                add(filters, &[]).unwrap();
                filters.delta_properties(&[at as u8 * 30]).unwrap();
                add_other(filters, &[]).unwrap();
            },
            &options,
            &plain,
        );
        assert_decodes(Algorithm::Xz, &packed, &plain);
    }
}

#[test]
fn streams_of_several_blocks_and_of_none_decode() {
    let plain = text(50_000);
    let mut filters = Filters::new();
    filters.lzma2(&options(1, USUAL));
    let mut stream = Stream::new_stream_encoder(&filters, Check::Crc32).unwrap();
    let mut packed = vec![0; 60_000];
    for part in plain.chunks(7000) {
        let end = stream.total_in() as usize + part.len();
        while (stream.total_in() as usize) < end
            || stream.process(&[], &mut packed[stream.total_out() as usize..], Action::FullFlush)
                != Ok(Status::StreamEnd)
        {
            let (read, written) = (stream.total_in() as usize, stream.total_out() as usize);
            stream.process(&plain[read..end], &mut packed[written..], Action::Run).unwrap();
        }
    }
    while stream.process(&[], &mut packed[stream.total_out() as usize..], Action::Finish)
        != Ok(Status::StreamEnd)
    {}
    packed.truncate(stream.total_out() as usize);
    assert_decodes(Algorithm::Xz, &packed, &plain);
    assert_eq!(
        reference(Stream::new_stream_decoder(u64::MAX, 0).unwrap(), &packed, plain.len()),
        Some(plain)
    );
    let empty = encode(Stream::new_easy_encoder(0, Check::Crc64).unwrap(), &[]);
    assert_decodes(Algorithm::Xz, &empty, &[]);
}

/// Both decoders take a damaged stream or both do not, and if they do, for the same bytes.
fn assert_agrees(algorithm: Algorithm, decoder: &mut dyn Decoder, damaged: &[u8], plain_len: usize) -> bool {
    let stream = match algorithm {
        Algorithm::Xz => Stream::new_stream_decoder(64 << 20, 0),
        _ => Stream::new_lzma_decoder(64 << 20),
    };
    let expected = reference(stream.unwrap(), damaged, plain_len);
    let mut dst = vec![0; plain_len];
    let found = decoder.decompress(damaged, &mut dst).map(|len| dst[..len].to_vec()).ok();
    assert!(
        found == expected,
        "{algorithm}: {:?}, liblzma {:?}",
        found.map(|x| x.len()),
        expected.map(|x| x.len())
    );
    found.is_some()
}

#[test]
fn damage_is_taken_where_liblzma_takes_it() {
    let mut random = Noise(9);
    let mut taken = 0;
    for plain in [text(3000), program(6000), [noise(300), vec![3; 2000], text(500)].concat(), code(4000)] {
        for (lc, lp, pb) in [USUAL, (0, 2, 4), (4, 0, 0)] {
            let options = options(6, (lc, lp, pb));
            let alone = encode(Stream::new_lzma_encoder(&options).unwrap(), &plain);
            let mut stated = alone.clone();
            stated[5..13].copy_from_slice(&(plain.len() as u64).to_le_bytes());
            let filtered = xz(
                Check::None,
                |filters| {
                    filters.x86();
                },
                &options,
                &plain,
            );
            for (algorithm, packed) in [
                (Algorithm::Xz, xz(Check::None, |_| {}, &options, &plain)),
                (Algorithm::Xz, filtered),
                (Algorithm::LzmaAlone, alone),
                (Algorithm::LzmaAlone, stated),
            ] {
                let mut decoder = decoder(algorithm);
                for _ in 0..1500 {
                    let mut damaged = packed.clone();
                    match random.below(8) {
                        0 => damaged.truncate(random.below(packed.len())),
                        1 => damaged[random.below(packed.len())] = random.next() as u8,
                        2 => damaged.insert(random.below(packed.len()), random.next() as u8),
                        3 => drop(damaged.remove(random.below(packed.len()))),
                        _ => {
                            let bit = random.below(packed.len() * 8);
                            damaged[bit / 8] ^= 1 << (bit % 8);
                        }
                    }
                    let room =
                        [plain.len(), plain.len(), plain.len() + 100, plain.len() / 2][random.below(4)];
                    taken += usize::from(assert_agrees(algorithm, &mut *decoder, &damaged, room));
                }
            }
        }
    }
    assert!(taken > 50, "only {taken} damaged streams were taken");
}
