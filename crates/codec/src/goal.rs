//! Which level of a codec a goal means, where none was typed.

use packfs_core::Goal;
use std::borrow::Cow;

/// Codecs as typed, and what they mean for the smallest image and for the one that is made soonest; other goals mean the
/// codec's own default.
const ROWS: &[(&str, &str, &str)] = &[
    // Size: as much as takes no longer than zlib's own level 9.
    ("gzip", "gzip:11", "gzip:5"),
    ("deflate", "deflate:12", "deflate:5"),
    ("lzo", "lzo:9", "lzo,variant=1"),
    ("lz4hc", "lz4hc:12", "lz4hc:3"),
    ("xz", "xz:9,extreme,bcj=auto", "xz:1"),
    ("lzma", "lzma:9,extreme", "lzma:1"),
    ("zstd", "zstd:22", "zstd:3"),
];

/// A codec as typed, or two joined by `+`; a name without level and options gets those that the goal means.
pub fn codec_for_goal(typed: &str, goal: Goal) -> Cow<'_, str> {
    let meant = |name: &str| {
        let row = ROWS.iter().find(|row| row.0 == name)?;
        match goal {
            Goal::Size => Some(row.1),
            Goal::Build => Some(row.2),
            Goal::Balanced | Goal::Read => None,
        }
    };
    if !typed.split('+').any(|name| meant(name).is_some()) {
        return typed.into();
    }
    typed.split('+').map(|name| meant(name).unwrap_or(name)).collect::<Vec<_>>().join("+").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CodecSpec;

    #[test]
    fn only_a_bare_name_gets_a_level() {
        assert_eq!(codec_for_goal("zstd", Goal::Size), "zstd:22");
        assert_eq!(codec_for_goal("zstd", Goal::Build), "zstd:3");
        assert_eq!(codec_for_goal("zstd", Goal::Balanced), "zstd");
        assert_eq!(codec_for_goal("zstd:9", Goal::Size), "zstd:9");
        assert_eq!(codec_for_goal("xz,bcj=arm", Goal::Size), "xz,bcj=arm");
        assert_eq!(codec_for_goal("zstd+lz4", Goal::Size), "zstd:22+lz4");
        assert_eq!(codec_for_goal("none", Goal::Size), "none");
    }

    #[test]
    fn every_row_means_something() {
        for row in ROWS {
            for text in [row.0, row.1, row.2] {
                assert!(text.parse::<CodecSpec>().is_ok(), "{text}");
            }
        }
    }
}
