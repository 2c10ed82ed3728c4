//! Our high compression encoder for LZ4 beside liblz4's: `lz4hc FILE LEN LEVEL...` compresses every
//! eighth MiB of the file in blocks of LEN bytes and into clusters of LEN bytes, and says sizes and
//! processor time.
#![allow(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a program of developers")]

use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

use packfs_codec::{CodecSettings, Lz4HcSettings, encoder, fit_encoder};

// Linked with `lz4-sys`, which declares none of them.
unsafe extern "C" {
    fn LZ4_sizeofStateHC() -> c_int;
    fn LZ4_compress_HC_destSize(
        state: *mut c_void,
        src: *const c_char,
        dst: *mut c_char,
        src_len: *mut c_int,
        dst_len: c_int,
        level: c_int,
    ) -> c_int;
    fn LZ4_compress_HC_extStateHC(
        state: *mut c_void,
        src: *const c_char,
        dst: *mut c_char,
        src_len: c_int,
        dst_len: c_int,
        level: c_int,
    ) -> c_int;
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, path, len, levels @ ..] = &args[..] else { panic!("lz4hc FILE LEN LEVEL...") };
    let file = std::fs::read(path).expect("a readable file");
    let len: usize = len.parse().expect("a length");
    let segments: Vec<&[u8]> = file.chunks(1 << 20).step_by(8).collect();
    for level in levels {
        let level: u8 = level.parse().expect("a level");
        let settings = CodecSettings::Lz4Hc(Lz4HcSettings { level });
        let mut ours = (encoder(&settings).unwrap(), fit_encoder(&settings).unwrap());
        // SAFETY: a constant of the library.
        let mut state = vec![0_u64; unsafe { LZ4_sizeofStateHC() } as usize / 8 + 1];
        let mut dst = vec![0; len + len / 128 + 64];
        let mut sums = [(0, Duration::ZERO); 4];
        for segment in &segments {
            add(&mut sums[0], || {
                segment.chunks(len).map(|src| theirs_whole(&mut state, src, &mut dst, level)).sum()
            });
            add(&mut sums[1], || {
                segment.chunks(len).map(|src| ours.0.compress(src, &mut dst).unwrap().unwrap()).sum()
            });
            add(&mut sums[2], || {
                fill(segment, len, |src| theirs_fit(&mut state, src, &mut dst[..len], level))
            });
            add(&mut sums[3], || {
                fill(segment, len, |src| {
                    let fit = ours.1.compress_to_fit(src, &mut dst[..len]).unwrap();
                    (fit.consumed, fit.written)
                })
            });
        }
        let plain: usize = segments.iter().map(|segment| segment.len()).sum();
        for (use_, [theirs, ours]) in
            ["blocks", "clusters"].into_iter().zip([[sums[0], sums[1]], [sums[2], sums[3]]])
        {
            println!(
                "{level:2} {use_:8} liblz4 {:10} {:6.1} MB/s   ours {:10} {:6.1} MB/s   size {:.4} time {:.3}",
                theirs.0,
                plain as f64 / 1e6 / theirs.1.as_secs_f64(),
                ours.0,
                plain as f64 / 1e6 / ours.1.as_secs_f64(),
                ours.0 as f64 / theirs.0 as f64,
                ours.1.as_secs_f64() / theirs.1.as_secs_f64(),
            );
        }
    }
}

fn add(sum: &mut (usize, Duration), work: impl FnOnce() -> usize) {
    let start = processor_time();
    sum.0 += work();
    sum.1 += processor_time() - start;
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let figures = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    Duration::from_nanos(figures.split(' ').next().unwrap().parse().unwrap())
}

/// Bytes in clusters of `len`, the last of a segment as long as it is.
fn fill(segment: &[u8], len: usize, mut fit: impl FnMut(&[u8]) -> (usize, usize)) -> usize {
    let (mut rest, mut sum) = (segment, 0);
    while !rest.is_empty() {
        let (consumed, written) = fit(rest);
        rest = &rest[consumed..];
        sum += if rest.is_empty() { written } else { len };
    }
    sum
}

fn theirs_whole(state: &mut [u64], src: &[u8], dst: &mut [u8], level: u8) -> usize {
    // SAFETY: the state is as long as it has to be, the pointers are valid for the lengths given.
    let written = unsafe {
        LZ4_compress_HC_extStateHC(
            state.as_mut_ptr().cast(),
            src.as_ptr().cast(),
            dst.as_mut_ptr().cast(),
            src.len() as c_int,
            dst.len() as c_int,
            c_int::from(level),
        )
    };
    usize::try_from(written).unwrap()
}

fn theirs_fit(state: &mut [u64], src: &[u8], dst: &mut [u8], level: u8) -> (usize, usize) {
    let mut consumed = src.len() as c_int;
    // SAFETY: as above, and the consumed length is written to a local.
    let written = unsafe {
        LZ4_compress_HC_destSize(
            state.as_mut_ptr().cast(),
            src.as_ptr().cast(),
            dst.as_mut_ptr().cast(),
            &mut consumed,
            dst.len() as c_int,
            c_int::from(level),
        )
    };
    (usize::try_from(consumed).unwrap(), usize::try_from(written).unwrap())
}
