//! Outputs of a fixed length hold as much input as fits, and decode to exactly that.

use crate::common::{Noise, noise, program, settings, text};
use packfs_codec::{
    Algorithm, CodecSettings, Decoders, Fit, FitEncoder, ZstdSettings, decoder, encoder, fit_encoder,
};

/// Every codec that can fill an output, at the edges of its levels.
const SPECS: [&str; 16] = [
    "lz4",
    "lz4,acceleration=9",
    "lz4hc:0",
    "lz4hc:3",
    "lz4hc:12",
    "microlzma:0",
    "microlzma:6",
    "deflate:0",
    "deflate:1",
    "deflate:6",
    "deflate:9",
    "deflate:12",
    "zstd:-5",
    "zstd:1",
    "zstd:3",
    "zstd:15",
];

fn settings_of(spec: &str) -> CodecSettings {
    match settings(spec, 256 << 10) {
        CodecSettings::Zstd(ZstdSettings { level, .. }) => {
            CodecSettings::Zstd(ZstdSettings { level, window_log_max: Some(20) })
        }
        settings => settings,
    }
}

/// Easy, hard and changing inputs.
fn inputs() -> Vec<Vec<u8>> {
    let mixed: Vec<u8> =
        (0..12).flat_map(|i| [noise(3000 + i * 511), text(20_000), vec![i as u8; 7000]].concat()).collect();
    let few_symbols: Vec<u8> = noise(300_000).into_iter().map(|byte| byte & 3).collect();
    vec![text(400_000), program(900_000), mixed, few_symbols, vec![0; 2 << 20], noise(100_000)]
}

/// Fits, and checks that the output decodes to the consumed input.
fn fit(
    encoder: &mut dyn FitEncoder,
    decoders: &mut Decoders,
    algorithm: Algorithm,
    src: &[u8],
    room: usize,
) -> Fit {
    let mut dst = vec![0x5A; room + 64];
    let fit = encoder.compress_to_fit(src, &mut dst[..room]).unwrap();
    assert!(dst[room..].iter().all(|&byte| byte == 0x5A), "{algorithm}: wrote out of bounds");
    assert!(fit.consumed <= src.len() && fit.written <= room);
    assert_eq!(fit.consumed == 0, fit.written == 0);
    if fit.written > 0 {
        assert_ne!(dst[0], 0, "{algorithm}: begins like padding");
        let mut plain = vec![0; fit.consumed];
        let decoded = decoders.decompress(algorithm, &dst[..fit.written], &mut plain);
        assert_eq!(decoded, Ok(fit.consumed), "{algorithm}, {room} bytes of room");
        assert!(plain == src[..fit.consumed], "{algorithm}: other bytes came out");
        // Prefixes are read by other decoders than whole blocks: zlib-rs, and zstd's through a
        // window.
        plain.fill(0);
        let decoded = decoders.decompress_prefix(algorithm, &dst[..fit.written], &mut plain);
        assert_eq!(decoded, Ok(fit.consumed), "{algorithm}, {room} bytes of room");
        assert!(plain == src[..fit.consumed], "{algorithm}: other bytes came out");
    }
    fit
}

#[test]
fn clusters_of_all_lengths_round_trip_and_are_well_filled() {
    let mut decoders = Decoders::new();
    for spec in SPECS {
        let settings = settings_of(spec);
        let mut encoder = fit_encoder(&settings).unwrap();
        for (number, input) in inputs().iter().enumerate() {
            for room in [512, 4096, 10_000, 64 << 10] {
                encoder.begin_segment();
                let (mut at, mut clusters, mut slack) = (0, 0, 0);
                while at < input.len() && clusters < 12 {
                    let rest = &input[at..];
                    let fit = fit(&mut *encoder, &mut decoders, settings.algorithm(), rest, room);
                    assert!(fit.consumed > 0, "{spec}, input {number}: nothing went into {room} bytes");
                    at += fit.consumed;
                    if fit.consumed < rest.len() {
                        slack += room - fit.written;
                        clusters += 1;
                    }
                }
                // LZ4 has at times no way to end a block where its output ends, MicroLZMA a few
                // bytes before.
                assert!(
                    slack <= clusters * (24 + room / 200),
                    "{spec}, input {number}, {room} bytes of room: {slack} bytes left in {clusters} clusters"
                );
            }
        }
    }
}

#[test]
fn a_shortened_output_is_as_good_as_a_new_one() {
    let mut decoders = Decoders::new();
    for spec in SPECS {
        let settings = settings_of(spec);
        let mut encoder = fit_encoder(&settings).unwrap();
        let (mut shortened_sum, mut new_sum) = (0, 0);
        for input in inputs() {
            for src_len in [300, 5000, 20_000, 70_000] {
                let src = &input[input.len() - src_len..];
                encoder.begin_segment();
                encoder.expect_shortening(true);
                let mut whole = vec![0; src_len * 2 + 200];
                let fit = encoder.compress_to_fit(src, &mut whole).unwrap();
                assert_eq!(fit.consumed, src_len);
                for room in [7, 40, 300, fit.written / 2, fit.written - 1] {
                    let room = room.min(fit.written - 1);
                    let mut dst = vec![0x5A; room + 64];
                    encoder.begin_segment();
                    encoder.expect_shortening(true);
                    assert_eq!(encoder.compress_to_fit(src, &mut whole).unwrap(), fit);
                    let short = encoder.shorten(src, &whole[..fit.written], &mut dst[..room]).unwrap();
                    assert!(dst[room..].iter().all(|&byte| byte == 0x5A), "{spec}: wrote out of bounds");
                    assert!(short.consumed <= src_len && short.written <= room);
                    assert_eq!(short.consumed == 0, short.written == 0);
                    if short.written > 0 {
                        assert_ne!(dst[0], 0, "{spec}: begins like padding");
                        let mut plain = vec![0; short.consumed];
                        let algorithm = settings.algorithm();
                        let decoded = decoders.decompress(algorithm, &dst[..short.written], &mut plain);
                        assert_eq!(decoded, Ok(short.consumed), "{spec}, {src_len} to {room} bytes");
                        assert!(plain == src[..short.consumed], "{spec}: other bytes came out");
                    }
                    let new = encoder.compress_to_fit(src, &mut dst[..room]).unwrap();
                    shortened_sum += short.consumed;
                    new_sum += new.consumed;
                }
            }
        }
        assert!(
            shortened_sum * 100 >= new_sum * 98,
            "{spec}: {shortened_sum} bytes shortened, {new_sum} bytes anew"
        );
    }
}

#[test]
fn a_fit_is_as_good_as_a_whole_encode_of_what_it_consumed() {
    for spec in SPECS {
        let settings = settings_of(spec);
        for (number, input) in inputs().iter().enumerate() {
            let room = 32 << 10;
            let mut dst = vec![0; room];
            let fit = fit_encoder(&settings).unwrap().compress_to_fit(input, &mut dst).unwrap();
            let mut whole = vec![0; fit.consumed * 2 + 1000];
            let whole_len =
                encoder(&settings).unwrap().compress(&input[..fit.consumed], &mut whole).unwrap().unwrap();
            assert!(
                fit.written <= whole_len + whole_len / 50 + 32,
                "{spec}, input {number}: {} bytes, {whole_len} in one encode",
                fit.written
            );
        }
    }
}

#[test]
fn inputs_that_fit_are_consumed_whole() {
    let mut decoders = Decoders::new();
    for spec in SPECS {
        let settings = settings_of(spec);
        let mut encoder = fit_encoder(&settings).unwrap();
        for len in (1..40).chain([255, 4095, 40_000]) {
            for src in [noise(len), text(len), vec![0; len], vec![b'x'; len]] {
                let fit = fit(&mut *encoder, &mut decoders, settings.algorithm(), &src, len * 2 + 200);
                assert_eq!(fit.consumed, len, "{spec}");
            }
        }
    }
}

#[test]
fn no_room_and_no_input_are_no_error() {
    for spec in SPECS {
        let settings = settings_of(spec);
        let mut encoder = fit_encoder(&settings).unwrap();
        assert_eq!(encoder.compress_to_fit(&text(1000), &mut []).unwrap(), Fit::default(), "{spec}");
        let mut decoders = Decoders::new();
        for room in 1..80 {
            fit(&mut *encoder, &mut decoders, settings.algorithm(), &text(1000), room);
            fit(&mut *encoder, &mut decoders, settings.algorithm(), &noise(1000), room);
            fit(&mut *encoder, &mut decoders, settings.algorithm(), &[0; 1000], room);
        }
        let empty = encoder.compress_to_fit(&[], &mut [0; 100]).unwrap();
        assert_eq!(empty, Fit::default(), "{spec}");
    }
}

#[test]
fn a_segment_begins_as_with_a_fresh_encoder() {
    for spec in SPECS {
        let settings = settings_of(spec);
        let mut used = fit_encoder(&settings).unwrap();
        for input in &inputs() {
            let clusters = |encoder: &mut dyn FitEncoder| {
                encoder.begin_segment();
                let (mut at, mut all) = (0, Vec::new());
                for _ in 0..4 {
                    let mut dst = vec![0; 8192];
                    let fit = encoder.compress_to_fit(&input[at..], &mut dst).unwrap();
                    dst.truncate(fit.written);
                    at += fit.consumed;
                    all.push((fit, dst));
                }
                all
            };
            let fresh = clusters(&mut *fit_encoder(&settings).unwrap());
            assert!(clusters(&mut *used) == fresh, "{spec}");
        }
    }
}

#[test]
fn damaged_clusters_never_panic() {
    let mut random = Noise(9);
    for spec in ["lz4hc:12", "microlzma:6", "deflate:9", "zstd:3"] {
        let settings = settings_of(spec);
        let mut dst = vec![0; 4096];
        let fit = fit_encoder(&settings).unwrap().compress_to_fit(&program(100_000), &mut dst).unwrap();
        let mut decoder = decoder(settings.algorithm());
        let mut plain = vec![0; fit.consumed];
        for _ in 0..2000 {
            let mut damaged = dst[..fit.written].to_vec();
            for _ in 0..1 + random.below(4) {
                let at = random.below(damaged.len());
                damaged[at] = random.next() as u8;
            }
            let _ = decoder.decompress(&damaged, &mut plain);
            let _ = decoder.decompress_prefix(&damaged, &mut plain[..fit.consumed / 2]);
        }
    }
}

/// The window that a decoder of this frame has to keep (RFC 8878, 3.1.1.1).
fn window_len(frame: &[u8]) -> u64 {
    let descriptor = frame[4];
    if descriptor & 0x20 == 0 {
        let (exponent, mantissa) = (frame[5] >> 3, u64::from(frame[5] & 7));
        let base = 1 << (10 + exponent);
        return base + base / 8 * mantissa;
    }
    let mut content_len = [0; 8];
    let field_len = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    content_len[..field_len].copy_from_slice(&frame[5..5 + field_len]);
    u64::from_le_bytes(content_len) + if field_len == 2 { 256 } else { 0 }
}

#[test]
fn zstd_frames_keep_to_the_window() {
    for level in [1, 3, 15, 19] {
        for log in [17, 20] {
            let settings = CodecSettings::Zstd(ZstdSettings { level, window_log_max: Some(log) });
            let src = [program(300_000), vec![0; 3 << 20]].concat();
            let mut dst = vec![0; 1 << 20];
            let len = encoder(&settings).unwrap().compress(&src, &mut dst).unwrap().unwrap();
            assert!(window_len(&dst[..len]) <= 1 << log);
            for room in [4096, 64 << 10, 1 << 20] {
                let mut encoder = fit_encoder(&settings).unwrap();
                for src in [&src[..], &src[300_000..]] {
                    let fit = encoder.compress_to_fit(src, &mut dst[..room]).unwrap();
                    assert!(
                        window_len(&dst[..fit.written]) <= 1 << log,
                        "level {level}, {room} bytes of room"
                    );
                }
            }
        }
    }
}

#[test]
fn refuses_codecs_that_cannot_fill_an_output() {
    for spec in ["gzip", "xz", "lzo", "lzma"] {
        let error = fit_encoder(&settings(spec, 128 << 10)).err().unwrap().to_string();
        assert!(error.ends_with("one that can fill an output allowed"), "{error}");
    }
}
