//! Same input, same bytes: whatever the number of threads.

use crate::common::{Wish, squash};
use packfs_testkit::{odd_tree, plain_tree};

#[test]
fn packs_the_same_bytes_with_1_2_and_16_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (odd, odd_contents) = odd_tree(4096, true);
    let (plain, plain_contents) = plain_tree();
    for codec in ["gzip", "lzo:1", "lz4", "xz", "zstd:3"] {
        for (tree, contents) in [(&odd, &odd_contents), (&plain, &plain_contents)] {
            let image = |jobs| {
                let wish = Wish { codec, jobs, ..Wish::default() };
                std::fs::read(squash(tree, contents, wish, folder.path(), "image")).unwrap()
            };
            let one = image(1);
            assert!(one == image(2), "{codec}: 1 and 2 threads differ");
            assert!(one == image(16), "{codec}: 1 and 16 threads differ");
        }
    }
}
