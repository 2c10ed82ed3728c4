//! Findings of the check.

use super::*;
use packfs_format::Severity;
use packfs_testkit::assert_found;

#[track_caller]
fn found(image: &Made, severity: Severity, expected: &str) {
    assert_found(&image.findings(), severity, expected);
}

#[test]
fn true_files_have_no_faults() {
    for version in VERSIONS {
        let findings = made(version).findings();
        let worst = findings.iter().map(|finding| finding.severity).max();
        assert!(worst < Some(Severity::Error), "{version:?}: {findings:?}");
    }
    assert_eq!(made(Version::V2_0).findings(), []);
}

#[test]
fn reports_every_bad_row_and_continues() {
    let image = made(Version::V2_0).patch("index", 8, &[0xff]).patch("index", 24, &[0xff]);
    let findings = image.findings();
    let errors: Vec<_> = findings.iter().filter(|it| it.severity == Severity::Error).collect();
    assert_eq!(errors.len(), 4, "{errors:?}");
    for block in ["block 0: ends", "block 1: starts", "block 2: ends", "block 3: starts"] {
        assert!(errors.iter().any(|it| it.fault.starts_with(block)), "{block} in {errors:?}");
    }
}

#[test]
fn notices_what_modules_of_linux_cannot_read() {
    found(&made(Version::V4Header), Severity::Warning, "stored uncompressed, which the 4.3 module");
    found(&made(Version::V0_68), Severity::Note, "version 0.68");
}

#[test]
fn notices_a_block_at_the_very_start() {
    // The footer version has nothing before its first block.
    let mut image = made(Version::V4Footer);
    let block = encoded(Some(Algorithm::Xz), &[b'a'; BLOCK_LEN]);
    image.bytes[..16].copy_from_slice(&block[..16]);
    let image = image.patch("index", 0, &0x2000_0000_0000_0000_u64.to_be_bytes());
    found(&image, Severity::Warning, "block 0 starts at 0");
}

#[test]
fn notices_large_blocks_and_bytes_behind_the_end() {
    let mut image = made(Version::V2_0);
    image.bytes.extend([0; 100]);
    found(&image, Severity::Note, "100 bytes in 1 places that nothing refers to");
    let image = made(Version::V2_0).patch("head", 128, &(1_u32 << 20).to_be_bytes());
    found(&image, Severity::Note, "block size 1048576");
    found(&made(Version::V0_68), Severity::Note, "current modules");
}

#[test]
fn notices_that_no_blocks_over_data_lose_the_disk() {
    let image = made(Version::V2_0).patch("head", 132, &[0; 4]);
    found(&image, Severity::Error, "no blocks, but data after them");
}
