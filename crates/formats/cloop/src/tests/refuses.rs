//! Refusal of files with one fault each.

use super::*;
use packfs_core::ErrorKind;
use packfs_format::{Check, Directories, Space};
use packfs_testkit::assert_refused;

/// Opening, or reading all of it, has to fail and say so.
#[track_caller]
fn refused(image: &Made, kind: ErrorKind, expected: &str) {
    assert_refused(image.read_all(), kind, expected);
}

/// One test each: name, version, label of a structure, offset within it, bytes written there, what
/// is said.
macro_rules! rejects {
    ($($name:ident: $version:ident $label:literal + $within:literal = $bytes:expr => $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            refused(&made(Version::$version).patch($label, $within, &$bytes), ErrorKind::Corrupt, $expected);
        }
    )*};
}

const U32_MAX: [u8; 4] = [0xff; 4];
const U64_MAX: [u8; 8] = [0xff; 8];

rejects! {
    rejects_block_size_zero: V2_0 "head" + 128 = [0; 4] => "block size 0";
    rejects_block_size_off_the_unit: V2_0 "head" + 128 = 513_u32.to_be_bytes() => "block size 513";
    rejects_huge_block_size: V2_0 "head" + 128 = 0x4000_0000_u32.to_be_bytes() => "block size 1073741824";
    rejects_more_blocks_than_the_file_has_room_for: V2_0 "head" + 132 = U32_MAX => "4294967296 rows of 8 bytes";
    rejects_more_blocks_in_a_footer: V4Footer "head" + 132 = U32_MAX => "4294967296 rows of 8 bytes";
    rejects_more_blocks_in_a_tail: V3_0 "tail" + 4 = U32_MAX => "4294967295 rows of 4 bytes";
    rejects_more_blocks_in_a_table: Alpha3 "table" + 0 = U32_MAX => "4294967296 rows of 8 bytes";
    rejects_more_accelerated_blocks: Accelerated "head" + 132 = U32_MAX => "4294967295 rows of 16 bytes";
    rejects_first_block_in_the_head: V2_0 "index" + 0 = [0; 8] => "block 0: starts at 0x0";
    rejects_block_behind_the_file: V2_0 "index" + 8 = U64_MAX => "ends at 0xffffffffffffffff";
    rejects_offsets_that_fall: V2_0 "index" + 16 = 177_u64.to_be_bytes() => "ends at 0xb1, after";
    rejects_empty_block: V1_0 "index" + 8 = 176_u64.to_le_bytes() => "ends at 0xb0, after 0xb0";
    rejects_method_that_nobody_has: V4Header "index" + 0 = [0x50] => "block 0: method 5";
    rejects_flags_that_nobody_has: Alpha3 "flags" + 0 = 3_u32.to_be_bytes() => "block 0: flags 0x3";
    rejects_stored_block_of_another_length: V4Footer "index" + 0 = [0x10] => "stored uncompressed in";
    rejects_sizes_longer_than_the_file: V3_0 "index" + 0 = U32_MAX => "all blocks together end at";
    rejects_size_zero: V3_0 "index" + 4 = [0; 4] => "block 1: ends at";
    rejects_accelerated_block_behind_the_file: Accelerated "index" + 8 = 0x7fff_ffff_u32.to_be_bytes() => "block 0: ends at";
    rejects_accelerated_offset_that_overflows: Accelerated "index" + 17 = [0xff; 7] => "block 1: starts at";
    rejects_table_behind_the_file: Alpha3 "tail" + 0 = U64_MAX => "table at 0xffffffffffffffff";
    rejects_disk_longer_than_its_blocks: Alpha3 "table" + 8 = 2049_u64.to_be_bytes() => "a disk of 2049 bytes";
    rejects_disk_shorter_than_its_blocks: Alpha3 "table" + 8 = 1536_u64.to_be_bytes() => "a disk of 1536 bytes";
}

#[test]
fn rejects_blocks_longer_than_any_codec_makes_them() {
    let mut image = made(Version::V2_0);
    image.bytes.extend([0; 4000]);
    let end = image.bytes.len() as u64;
    refused(&image.patch("index", 32, &end.to_be_bytes()), ErrorKind::Corrupt, "1 to 672 allowed");
}

#[test]
fn rejects_every_cut_without_panic() {
    for version in VERSIONS {
        let whole = made(version);
        for len in 0..whole.bytes.len() {
            let mut image = whole.clone();
            image.bytes.truncate(len);
            let refused = image.read_all();
            // A 3.0 file may find another tail in the rest, but no valid one.
            assert!(refused.is_err(), "{version:?} cut to {len}");
        }
    }
}

#[test]
fn truncated_files_get_a_hint() {
    let mut image = made(Version::V2_0);
    image.bytes.truncate(image.bytes.len() - 1);
    let error = image.read_all().unwrap_err();
    assert!(error.hints().iter().any(|hint| hint.contains("truncated")), "{error}");
}

#[test]
fn names_versions_it_does_not_read() {
    refused(&made(Version::V2_0).patch("head", 12, b"7.5"), ErrorKind::Unsupported, "version \"V7.5\"");
    refused(
        &made(Version::Alpha3).patch("tail", 8, &[0, 0, 0, 4]),
        ErrorKind::Unsupported,
        "CLOOP3 version 4",
    );
    refused(
        &made(Version::V3_0).patch("tail", 0, &[0, 0, 0, 0x14]),
        ErrorKind::Unsupported,
        "index kind 0x14",
    );
    refused(
        &made(Version::V3_0).patch("head", 132, &[0, 0, 0, 4]),
        ErrorKind::Unsupported,
        "4 blocks in its head",
    );
}

#[test]
fn names_forks() {
    for fork in ["bzloop", "gcloop"] {
        let mut image = made(Version::V2_0);
        image.bytes[..PREAMBLE_LEN].fill(0);
        let script = format!("#!/bin/sh\nmodprobe {fork} file=$0\n");
        image.bytes[..script.len()].copy_from_slice(script.as_bytes());
        assert!(crate::open::looks_like_cloop(&BytesImage(image.bytes.clone())).unwrap());
        refused(&image, ErrorKind::Unsupported, fork);
    }
}

#[test]
fn refuses_files_that_are_no_cloop() {
    for bytes in [vec![0; 1000], b"#!/bin/sh\necho cloop\n".repeat(20)] {
        let mut image = LabelledImage::new(CloopVolume::open);
        image.bytes = bytes;
        refused(&image, ErrorKind::Corrupt, "neither the head at 0x0");
    }
}

#[test]
fn asking_the_disk_for_entries_is_no_corruption() {
    let volume = made(Version::V2_0).open().unwrap();
    assert_eq!(volume.lookup(DISK, b"x").unwrap_err().kind(), ErrorKind::Failed);
    assert_eq!(volume.read_link(volume.root()).unwrap_err().kind(), ErrorKind::Failed);
    let visit = &mut |_| ControlFlow::Continue(());
    assert_eq!(volume.extents(InodeId(7), 0..1, visit).unwrap_err().kind(), ErrorKind::Failed);
}

#[test]
fn any_byte_may_be_anything() {
    for version in VERSIONS {
        let whole = made(version);
        for at in 0..whole.bytes.len() {
            for change in [0x01, 0x10, 0x7f, 0x80, 0xff] {
                let mut image = whole.clone();
                image.bytes[at] ^= change;
                let Ok(volume) = image.open() else { continue };
                let _ = read_all(&volume, 10);
                let _ = (volume.facts(), volume.image_len());
                volume.check(&mut |_| {}).unwrap();
                if let Ok(owners) = volume.space() {
                    let owned = owners.iter().map(|owner| owner.len).sum::<u64>();
                    assert_eq!(owned, image.bytes.len() as u64, "{version:?} at {at}");
                }
            }
        }
    }
}
