//! Reasons why a test is not passed.

/// Suite, test, and reason.
const REASONS: [(&str, &str, &str); 6] = [
    ("erofs-utils", "007", "it tests liblz4 alone"),
    ("erofs-utils", "028", "the kernel lacks shared page caches"),
    (
        "erofs-utils",
        "029",
        "it damages the root inode at a place computed for images of mkfs.erofs, and hits other bytes",
    ),
    (
        "squashfs-tools-ng",
        "test_tar_sqfs.sh",
        "it compares SHA-512 sums of images, and packfs compresses to other bytes",
    ),
    (
        "squashfs-tools-ng",
        "tar2sqfs xattr/acl.tar",
        "packfs keeps the ACL, whose mask Linux shows as the mode of the group; tar2sqfs drops it",
    ),
    ("squashfuse", "umount-test.sh", "it looks for the driver's command line among the processes"),
];

pub fn of(suite: &str, test: &str) -> Option<&'static str> {
    REASONS.iter().find(|row| (row.0, row.1) == (suite, test)).map(|row| row.2)
}
