//! Reasons why a test is not passed.

/// Suite, test, and reason.
const REASONS: [(&str, &str, &str); 1] = [(
    "erofs-utils",
    "029",
    "it damages the root inode at a place computed for images of mkfs.erofs, and hits other bytes",
)];

/// Returns the reason of a test.
pub fn of(suite: &str, test: &str) -> Option<&'static str> {
    REASONS.iter().find(|row| (row.0, row.1) == (suite, test)).map(|row| row.2)
}
