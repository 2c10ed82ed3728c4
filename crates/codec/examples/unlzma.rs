//! Decodes every .xz stream found in an image with this crate and with liblzma in turn:
//! `unlzma IMAGE ROUNDS` prints the least processor time of each.
#![allow(clippy::print_stdout, reason = "a program of developers")]

use liblzma::stream::{Action, Status, Stream};
use packfs_codec::{Algorithm, decoder};
use rustix::time::{ClockId, clock_gettime};

const MAGIC: &[u8] = b"\xFD7zXZ\0";
const PLAIN_LEN_MAX: usize = 1 << 20;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, image, rounds] = &args[..] else { panic!("unlzma IMAGE ROUNDS") };
    let image = std::fs::read(image).expect("a readable image");
    let blocks = streams(&image);
    let (src_len, dst_len) = blocks.iter().fold((0, 0), |(a, b), (src, len)| (a + src.len(), b + len));
    println!("{} blocks, {src_len} bytes, decoded {dst_len}", blocks.len());
    let mut dst = vec![0; PLAIN_LEN_MAX];
    let mut ours = decoder(Algorithm::Xz);
    let mut best = [f64::MAX; 2];
    for _ in 0..rounds.parse().expect("a number") {
        let time = timed(|| {
            blocks.iter().for_each(|(src, len)| assert_eq!(ours.decompress(src, &mut dst), Ok(*len)))
        });
        best[0] = best[0].min(time);
        let time =
            timed(|| blocks.iter().for_each(|(src, len)| assert_eq!(liblzma_decode(src, &mut dst).1, *len)));
        best[1] = best[1].min(time);
    }
    println!("ours {:.3} s, liblzma {:.3} s: {:.3}", best[0], best[1], best[0] / best[1]);
}

/// In seconds of this process, whatever else the machine does.
fn timed(run: impl FnOnce()) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let start = now();
    run();
    now() - start
}

/// The sound .xz streams anywhere in `image`, and their decoded lengths.
fn streams(image: &[u8]) -> Vec<(&[u8], usize)> {
    let mut dst = vec![0; PLAIN_LEN_MAX];
    let mut streams = Vec::new();
    let mut at = 0;
    while let Some(found) = image[at..].windows(MAGIC.len()).position(|window| window == MAGIC) {
        at += found;
        let (src_len, dst_len) = liblzma_decode(&image[at..], &mut dst);
        streams.push((&image[at..at + src_len], dst_len));
        at += src_len.max(1);
    }
    streams
}

fn liblzma_decode(src: &[u8], dst: &mut [u8]) -> (usize, usize) {
    let mut stream = Stream::new_stream_decoder(u64::MAX, 0).expect("memory");
    while let Ok(Status::Ok) = stream.process(
        &src[stream.total_in() as usize..],
        &mut dst[stream.total_out() as usize..],
        Action::Finish,
    ) {}
    (stream.total_in() as usize, stream.total_out() as usize)
}
