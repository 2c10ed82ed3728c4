//! Cuts a file into clusters of a fixed length and says how well and how fast:
//! `fit FILE CLUSTER_LEN CODEC...`; `bisect/CODEC` is a plain bisection with the same library, to
//! compare with. The members of a plain tar archive are cut one by one.
#![allow(clippy::print_stdout, reason = "a program of developers")]

use std::time::{Duration, Instant};

use packfs_codec::{
    Algorithm, CodecSettings, CodecSpec, DictLens, Encoder, Fit, FitEncoder, ZstdSettings, fit_encoder,
};

const SEGMENT_LEN: usize = 16 << 20;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, path, cluster_len, codecs @ ..] = &args[..] else { panic!("fit FILE CLUSTER_LEN CODEC...") };
    let file = std::fs::read(path).expect("a readable file");
    let cluster_len: usize = cluster_len.parse().expect("a length");
    let files = if path.ends_with(".tar") { members(&file) } else { vec![&file[..]] };
    for codec in codecs {
        let (codec, bisected) = match codec.strip_prefix("bisect/") {
            Some(codec) => (codec, true),
            None => (&codec[..], false),
        };
        let settings = settings(codec, cluster_len);
        let mut encoder = fit_encoder(&settings).expect("sound settings");
        let mut bisection = Bisection { encoder: packfs_codec::encoder(&settings).unwrap() };
        let chosen: &mut dyn FitEncoder = if bisected { &mut bisection } else { &mut *encoder };
        let report = run(chosen, &files, cluster_len);
        let plain_len: usize = files.iter().map(|file| file.len()).sum();
        println!(
            "{:9} {codec:12} {:8} clusters {:10} blocks {:6.2} bytes left in a full cluster {:8.1} MB/s",
            if bisected { "bisection" } else { "fit" },
            report.clusters,
            report.blocks,
            report.slack as f64 / report.full.max(1) as f64,
            plain_len as f64 / 1e6 / report.time.as_secs_f64(),
        );
    }
}

fn settings(codec: &str, cluster_len: usize) -> CodecSettings {
    let algorithms = [Algorithm::Lz4, Algorithm::MicroLzma, Algorithm::Deflate, Algorithm::Zstd];
    let usual = (cluster_len as u32 * 4).clamp(32 << 10, 8 << 20);
    let spec: CodecSpec = codec.parse().expect("a codec");
    match spec.resolve(&algorithms, DictLens { usual, max: 8 << 20 }).unwrap().expect("no stored clusters") {
        CodecSettings::Zstd(ZstdSettings { level, .. }) => {
            CodecSettings::Zstd(ZstdSettings { level, window_log_max: Some(20) })
        }
        settings => settings,
    }
}

/// The files of a plain tar archive.
fn members(tar: &[u8]) -> Vec<&[u8]> {
    let mut members = Vec::new();
    let mut at = 0;
    while at + 512 <= tar.len() && tar[at] != 0 {
        let digits = std::str::from_utf8(&tar[at + 124..at + 135]).unwrap_or("0");
        let len = usize::from_str_radix(digits.trim(), 8).unwrap_or(0);
        if matches!(tar[at + 156], b'0' | 0) && len > 0 {
            members.push(&tar[at + 512..at + 512 + len]);
        }
        at += 512 + len.next_multiple_of(512);
    }
    members
}

#[derive(Default)]
struct Report {
    clusters: usize,
    full: usize,
    slack: usize,
    blocks: usize,
    time: Duration,
}

fn run(encoder: &mut dyn FitEncoder, files: &[&[u8]], cluster_len: usize) -> Report {
    let mut report = Report::default();
    let mut dst = vec![0; cluster_len];
    let start = Instant::now();
    for segment in files.iter().flat_map(|file| file.chunks(SEGMENT_LEN)) {
        encoder.begin_segment();
        let mut rest = segment;
        while !rest.is_empty() {
            let Fit { consumed, written } = encoder.compress_to_fit(rest, &mut dst).expect("memory");
            if written >= consumed.min(cluster_len) && consumed < cluster_len {
                let stored = rest.len().min(consumed.max(4096));
                report.blocks += 1;
                rest = &rest[stored..];
                continue;
            }
            report.clusters += 1;
            report.blocks += written.div_ceil(4096);
            if consumed < rest.len() {
                report.full += 1;
                report.slack += cluster_len - written;
            }
            rest = &rest[consumed..];
        }
    }
    report.time = start.elapsed();
    report
}

/// The usual way: whole encodes of shorter and longer inputs.
struct Bisection {
    encoder: Box<dyn Encoder>,
}

impl FitEncoder for Bisection {
    fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, packfs_codec::EncodeError> {
        let (mut best, mut best_bytes) = (Fit::default(), Vec::new());
        let mut too_long = src.len() + 1;
        let mut consumed = src.len().min(dst.len() * 4);
        while consumed > best.consumed {
            match self.encoder.compress(&src[..consumed], dst)? {
                Some(written) => {
                    best = Fit { consumed, written };
                    best_bytes = dst[..written].to_vec();
                    if written + 1 >= dst.len() || consumed == src.len() {
                        break;
                    }
                }
                None => too_long = consumed,
            }
            consumed = if too_long > src.len() {
                src.len().min(best.consumed * 2)
            } else {
                best.consumed + (too_long - best.consumed) / 2
            };
        }
        dst[..best.written].copy_from_slice(&best_bytes);
        Ok(best)
    }
}
