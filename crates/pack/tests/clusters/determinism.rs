//! Checks that the bytes do not depend on the number of threads, nor on the window, which grows
//! with it.

use crate::check::check;
use crate::fake::{CLUSTER_LEN, Fake, Files, cut, pack_with};
use crate::round_trip::{codecs, files_of_every_length};
use packfs_codec::{CodecSettings, Lz4Settings};
use packfs_format::Tail;
use packfs_testkit::Random;

pub fn same_with_any_number_of_threads(format: impl Fn() -> Fake, files: &Files) {
    let one = pack_with(&format(), files, 1);
    check(&one, files);
    for jobs in [2, 16] {
        let other = pack_with(&format(), files, jobs);
        assert!(one.image == other.image, "1 and {jobs} threads differ");
        assert_eq!(one.placed.files, other.placed.files);
        assert_eq!(one.placed.data.clusters, other.placed.data.clusters);
        assert_eq!(one.placed.data.packed, other.placed.data.packed);
        assert_eq!(one.inline, other.inline);
    }
}

#[test]
fn small_files_are_placed_the_same_with_1_2_and_16_threads() {
    let files = files_of_every_length(7);
    for codec in codecs() {
        let job = |i| (if i % 2 == 0 { Tail::Shared } else { Tail::Inline }, (i / 3 % 3) as u16);
        same_with_any_number_of_threads(|| Fake::new(cut(codec.clone(), CLUSTER_LEN), job), &files);
    }
}

#[test]
fn more_data_than_any_window_is_placed_the_same() {
    let mut random = Random::new(8);
    let text = random.text(1 << 20);
    let mut all: Vec<Vec<u8>> = Vec::new();
    for i in 0..70 {
        let mut file = text[i * 7000..].to_vec();
        file.extend(random.noise(i * 5000));
        file.extend_from_slice(&text[..(i * 11_000) % text.len()]);
        all.push(file);
    }
    let files = Files::new(all);
    let mut cut = cut(CodecSettings::Lz4(Lz4Settings { acceleration: 1 }), CLUSTER_LEN);
    cut.segment_len = 1 << 20;
    same_with_any_number_of_threads(|| Fake::new(cut.clone(), |_| (Tail::Shared, 0)), &files);
}
