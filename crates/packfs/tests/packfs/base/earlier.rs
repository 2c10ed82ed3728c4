//! `--base`: an earlier image gives what did not change.

use super::fixture::{Fixture, WAYS, Way, fixture, put, set_time};
use packfs::ErrorKind;
use std::fs;

fn by_times(options: &mut packfs::PackOptions) {
    options.base_check = packfs::BaseCheck::Times;
}

#[test]
fn what_did_not_change_is_copied_and_what_did_is_not() {
    for &way in WAYS {
        let fixture = fixture();
        fixture.pack(way, "old");
        fixture.change();
        let full = fixture.pack(way, "full");
        let based = fixture.packing(way, "based").base(fixture.path("old")).run().unwrap();
        fixture.assert_same("based", "full", way);
        // With long clusters the stream has few parts, and what changed is too much of each.
        let wanted = if way.block_len > 16 << 10 && way.format == "erofs" { 0 } else { full.data_len / 2 };
        assert!(based.base_bytes >= wanted, "{way:?}: {based:?}");
        let has_own = !way.options.contains(&("fragments", "all"));
        assert!(based.base_blocks > 0 || !has_own, "{way:?}: {based:?}");
        assert!(based.base_bytes < based.data_len, "{way:?}: {based:?}");
        // Dead parts of blocks that stayed, and what is new not beside what it is like.
        let len_max = full.image_len + full.image_len / 20;
        assert!(based.image_len <= len_max, "{way:?}: {} of {}", based.image_len, full.image_len);
    }
}

#[test]
fn nothing_is_compressed_again_where_nothing_changed() {
    for &way in WAYS {
        let fixture = fixture();
        let old = fixture.pack(way, "old");
        let based = fixture.packing(way, "old").base(fixture.path("old")).run().unwrap();
        fixture.pack(way, "full");
        fixture.assert_same("old", "full", way);
        assert!(based.image_len <= old.image_len + old.image_len / 100, "{way:?}");
        // What is stored as it is may be written again as well as copied.
        let compressed = old.data_len - old.plain_bytes;
        assert!(based.base_bytes >= compressed / 4 * 3, "{way:?}: {based:?}");
        if way.format == "squashfs" {
            // Every tail is counted, whether its block stayed or not.
            assert_eq!(based.fragments.bytes, old.fragments.bytes, "{way:?}");
        }
    }
}

#[test]
fn the_same_bytes_come_out_with_1_2_and_16_threads() {
    for &way in WAYS {
        let fixture = fixture();
        fixture.pack(way, "old");
        fixture.change();
        let image = |jobs, name: &str| {
            fixture.packing(way, name).base(fixture.path("old")).jobs(jobs).run().unwrap();
            fs::read(fixture.path(name)).unwrap()
        };
        let one = image(1, "one");
        assert!(one == image(2, "two"), "{way:?}");
        assert!(one == image(16, "sixteen"), "{way:?}");
    }
}

#[test]
fn images_on_images_on_images_do_not_grow() {
    for &way in WAYS {
        let fixture = fixture();
        fixture.pack(way, "image");
        for round in 0..8 {
            for file in 0..8 {
                let path = fixture.source.join(format!("dir{}/small{}", round % 6, (round * 5 + file) % 40));
                if let Ok(bytes) = fs::read(&path) {
                    put(&path, &[&bytes[..], b"one more line\n"].concat());
                }
            }
            fixture.packing(way, "image").base(fixture.path("image")).run().unwrap();
        }
        let full = fixture.pack(way, "full");
        fixture.assert_same("image", "full", way);
        let len = fs::metadata(fixture.path("image")).unwrap().len();
        assert!(len <= full.image_len + full.image_len / 10, "{way:?}: {len} of {}", full.image_len);
    }
}

/// Files whose contents are changed. Of one that has no whole cluster and no place in a packed
/// stream nothing can be copied.
fn unseen(way: Way) -> &'static [&'static str] {
    if way.options.contains(&("kernel", "5.4")) { &["dir2/large"] } else { &["dir2/small9", "dir2/large"] }
}

/// Changes files, but neither their lengths nor their times.
fn change_unseen(fixture: &Fixture, way: Way) {
    for name in unseen(way) {
        let path = fixture.source.join(name);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        put(&path, &bytes);
    }
}

#[test]
fn times_are_trusted_only_on_request() {
    for &way in WAYS {
        let fixture = fixture();
        fixture.pack(way, "old");
        change_unseen(&fixture, way);
        fixture.pack(way, "full");
        fixture.packing(way, "compared").base(fixture.path("old")).run().unwrap();
        fixture.assert_same("compared", "full", way);
        fixture.packing(way, "believed").base(fixture.path("old")).with(by_times).run().unwrap();
        fixture.assert_same("believed", "old", way);
        // Another time, and the file is read.
        for name in unseen(way) {
            set_time(&fixture.source.join(name), 1_650_000_000);
        }
        fixture.pack(way, "full");
        fixture.packing(way, "seen").base(fixture.path("old")).with(by_times).run().unwrap();
        fixture.assert_same("seen", "full", way);
    }
}

#[test]
fn refuses_a_base_that_is_encoded_otherwise() {
    let fixture = fixture();
    fixture.pack(WAYS[0], "old");
    fs::write(fixture.path("text"), "no image").unwrap();
    let others = [
        Way { codec: "zstd:5", ..WAYS[0] },
        Way { codec: "gzip", ..WAYS[0] },
        Way { block_len: 32 << 10, ..WAYS[0] },
        Way { format: "erofs", ..WAYS[0] },
    ];
    for way in others {
        let error = fixture.packing(way, "new").base(fixture.path("old")).run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{way:?}: {error}");
        assert!(error.to_string().contains("squashfs zstd:3 with blocks of 16384 bytes"), "{error}");
        assert!(!fixture.path("new").exists());
    }
    let error = fixture.packing(WAYS[0], "new").base(fixture.path("text")).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let error = fixture.packing(WAYS[0], "new").base(fixture.path("missing")).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
}
