//! Candidates of a recommendation: format, codec, level, block size and order.
//!
//! The purpose of an image decides the candidates that are worth measuring. Formats that know their
//! driver decide if the kernel can mount a candidate.

use super::Want;
use super::kernels::Kernel;
use crate::results::spelled_len;
use packfs::{Order, Pack, PackSettings, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

/// The layout of an image, whatever compresses it: what decides which blocks a file needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Layout {
    /// Name of the format.
    pub format: &'static str,
    /// Block, or cluster, in bytes; none: the format's own.
    pub block: Option<u32>,
    /// Files placed as the tree goes, instead of beside what is alike.
    pub path_order: bool,
    /// Small files placed beside what is alike however far away.
    pub far: bool,
    /// All of all files in one stream (EROFS).
    pub all_packed: bool,
    /// No stream for the tails of files, as old kernels want it (EROFS).
    pub no_tails: bool,
}

/// One way to make the image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// The layout.
    pub layout: Layout,
    /// Codec as typed; none: the format's own.
    pub codec: Option<String>,
    /// The kernel named for EROFS.
    pub kernel: Option<String>,
}

/// A candidate that is not measured, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The candidate.
    pub candidate: String,
    /// The reason.
    pub reason: String,
}

/// The first kernel that shares tails between files in EROFS.
const FRAGMENTS: Kernel = Kernel(6, 1);

/// A layout of `candidates.toml`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Row {
    format: String,
    block_kib: u32,
    #[serde(default)]
    order: String,
    #[serde(default)]
    all_packed: bool,
    #[serde(default)]
    quick: Vec<String>,
    /// Codecs that are measured if there is time.
    #[serde(default)]
    more: Vec<String>,
}

/// Layouts by what is wanted; a test reads them.
static ROWS: LazyLock<HashMap<Want, Vec<Row>>> =
    LazyLock::new(|| toml::from_str(include_str!("../../candidates.toml")).unwrap_or_default());

impl Candidate {
    /// The options of `packfs pack` that make it, without source and image.
    pub fn options(&self) -> Vec<String> {
        let layout = &self.layout;
        let mut words = vec!["--format".to_string(), layout.format.to_string()];
        if let Some(codec) = &self.codec {
            words.extend(["--codec".to_string(), codec.clone()]);
        }
        if let Some(block) = layout.block {
            words.extend(["--block-size".to_string(), spelled_len(block)]);
        }
        if layout.path_order {
            words.extend(["--order".to_string(), "path".to_string()]);
        }
        if layout.far {
            words.extend(["--order".to_string(), "similarity:all".to_string()]);
        }
        if layout.all_packed {
            words.extend(["-O".to_string(), "fragments=all".to_string()]);
        }
        if let Some(kernel) = &self.kernel {
            words.extend(["--kernel".to_string(), kernel.clone()]);
        }
        words
    }

    /// Has `packing` make it.
    pub(crate) fn apply(&self, packing: Pack) -> Pack {
        let layout = &self.layout;
        let mut packing = packing.format(layout.format);
        if let Some(codec) = &self.codec {
            packing = packing.codec(codec);
        }
        if let Some(block) = layout.block {
            packing = packing.block_size(block);
        }
        if layout.path_order {
            packing = packing.order(Order::Path);
        }
        if layout.far {
            packing = packing.order(Order::EVERYWHERE);
        }
        for (name, value) in self.format_options() {
            packing = packing.option(name, value);
        }
        packing
    }

    /// The same layout, compressed quickly: what tells how the whole differs from a sample.
    pub(crate) fn reference(&self) -> Candidate {
        let known = matches!(self.layout.format, "squashfs" | "erofs");
        Candidate { layout: self.layout, codec: known.then(|| "zstd:3".to_string()), kernel: None }
    }

    fn format_options(&self) -> Vec<(&'static str, String)> {
        let mut options = Vec::new();
        if self.layout.all_packed {
            options.push(("fragments", "all".to_string()));
        } else if self.layout.no_tails {
            options.push(("fragments", "off".to_string()));
        }
        if let Some(kernel) = &self.kernel {
            options.push(("kernel", kernel.clone()));
        }
        options
    }

    /// True if the format takes these settings.
    ///
    /// Errors: `Usage` saying what it does not take, such as a codec that the named kernel lacks.
    fn check(&self) -> Result<()> {
        let Some(format) = packfs::formats::by_name(self.layout.format) else { return Ok(()) };
        let mut settings = PackSettings::default();
        settings.codec.clone_from(&self.codec);
        settings.block_size = self.layout.block;
        let options = self.format_options().into_iter();
        settings.options = options.map(|(name, value)| (name.to_string(), value)).collect();
        format.packer(&settings).map(|_| ())
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.layout.format)?;
        if let Some(codec) = &self.codec {
            write!(f, " {codec}")?;
        }
        if let Some(block) = self.layout.block {
            write!(f, " {}", spelled_len(block))?;
        }
        if self.layout.path_order {
            f.write_str(", path order")?;
        }
        if self.layout.far {
            f.write_str(", similarity:all")?;
        }
        if self.layout.all_packed {
            f.write_str(", all packed")?;
        }
        Ok(())
    }
}

/// Returns the candidates for a want, and those that the kernel cannot mount.
///
/// Errors: `Usage` for a format that there is not, or that cannot be packed.
pub fn candidates(
    want: Want,
    formats: &[String],
    kernel: Kernel,
    quick: bool,
) -> Result<(Vec<Candidate>, Vec<LeftOut>)> {
    let mut all = Vec::new();
    for row in ROWS.get(&want).into_iter().flatten() {
        let layout = Layout {
            format: &row.format,
            block: Some(row.block_kib << 10),
            path_order: row.order == "path",
            far: row.order == "far",
            all_packed: row.all_packed,
            no_tails: false,
        };
        let more = row.more.iter().filter(|_| !quick);
        all.extend(row.quick.iter().chain(more).map(|codec| plain(layout, Some(codec.clone()))));
    }
    let first = all.first().map(|candidate: &Candidate| candidate.layout);
    // Noise is best stored.
    all.extend(first.map(|layout| plain(layout, Some("none".into()))));
    if !formats.is_empty() {
        all.retain(|candidate| formats.iter().any(|format| format == candidate.layout.format));
        for format in formats.iter().filter(|name| !matches!(name.as_str(), "squashfs" | "erofs")) {
            all.push(plain(of_format(format)?, None));
        }
    }
    let mut left_out = Vec::new();
    let mut kept = Vec::new();
    for mut candidate in all {
        let reason = match candidate.layout.format {
            "squashfs" => kernel.refuses_squashfs(candidate.codec.as_deref().unwrap_or("gzip")),
            "erofs" => match kernel.erofs_target() {
                None => Some("erofs needs Linux 5.4".to_string()),
                Some(target) => {
                    candidate.kernel = Some(target.to_string());
                    candidate.layout.no_tails = target < FRAGMENTS && !candidate.layout.all_packed;
                    candidate.check().err().map(|error| error.to_string())
                }
            },
            _ => candidate.check().err().map(|error| error.to_string()),
        };
        match reason {
            Some(reason) => left_out.push(LeftOut { candidate: candidate.to_string(), reason }),
            None => kept.push(candidate),
        }
    }
    Ok((kept, left_out))
}

fn plain(layout: Layout, codec: Option<String>) -> Candidate {
    Candidate { layout, codec, kernel: None }
}

/// A layout that a format decides alone.
fn of_format(name: &str) -> Result<Layout> {
    let known = packfs::formats::all();
    let found = known.iter().find(|format| format.name() == name);
    let Some(format) = found else {
        let names = known.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
        return Err(packfs::Error::usage(format!("there is no format {name:?}; there are: {names}")));
    };
    format.packer(&PackSettings::default())?;
    let format = format.name();
    Ok(Layout { format, block: None, path_order: false, far: false, all_packed: false, no_tails: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_cannot_mount_is_left_out_and_named() {
        let (kept, left_out) = candidates(Want::Boot, &[], Kernel(6, 1), false).unwrap();
        assert!(kept.iter().any(|it| it.layout.format == "erofs" && it.codec.as_deref() == Some("lzma:6")));
        let zstd = |name: &str| name.starts_with("erofs zstd");
        assert!(!kept.iter().any(|it| zstd(&it.to_string())));
        let row = left_out.iter().find(|row| zstd(&row.candidate)).unwrap();
        assert!(row.reason.contains("6.10"), "{}", row.reason);
        let (kept, _) = candidates(Want::Boot, &[], Kernel(6, 12), false).unwrap();
        assert!(kept.iter().any(|it| zstd(&it.to_string())));
    }

    #[test]
    fn a_kernel_without_erofs_gets_squashfs() {
        for want in Want::ALL {
            let (kept, left_out) = candidates(want, &[], Kernel(4, 9), true).unwrap();
            assert!(!kept.is_empty(), "{want:?}");
            assert!(kept.iter().all(|it| it.layout.format == "squashfs"), "{want:?}");
            assert!(kept.iter().all(|it| !it.codec.as_deref().unwrap_or("").starts_with("zstd")), "{want:?}");
            assert!(!left_out.is_empty());
        }
    }

    #[test]
    fn every_candidate_can_be_packed() {
        for want in Want::ALL {
            let (kept, left_out) = candidates(want, &[], Kernel(6, 18), false).unwrap();
            assert_eq!(left_out, []);
            for candidate in kept {
                candidate.check().unwrap_or_else(|error| panic!("{candidate}: {error}"));
                candidate.reference().check().unwrap_or_else(|error| panic!("{candidate}: {error}"));
            }
        }
    }

    #[test]
    fn formats_can_be_chosen() {
        let only = |name: &str| candidates(Want::Size, &[name.into()], Kernel(6, 18), true);
        assert!(only("erofs").unwrap().0.iter().all(|it| it.layout.format == "erofs"));
        assert_eq!(only("cramfs").unwrap().0.len(), 1);
        assert!(only("vfat").err().unwrap().to_string().contains("squashfs"));
    }

    #[test]
    fn options_are_those_of_pack() {
        let (kept, _) = candidates(Want::Size, &[], Kernel(6, 18), false).unwrap();
        let erofs = kept.iter().find(|it| it.layout.all_packed).unwrap();
        let words = erofs.options().join(" ");
        let wanted = "--format erofs --codec lzma:9,extreme --block-size 1M --order similarity:all -O fragments=all --kernel 6.18";
        assert_eq!(words, wanted);
    }
}
