//! Which images are mounted for which workload.

use super::workload::Workload;
use crate::bench::case::{Case, Filter, Verb, spell_block_len};
use crate::failure::{Failure, Result};
use crate::rivals::{Codec, Format, Sharing};

/// One workload on one image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MountCase {
    pub workload: Workload,
    pub format: Format,
    pub codec: Codec,
    pub block_len: u32,
}

impl MountCase {
    pub fn label(&self) -> String {
        format!("{} {}", self.workload.name(), self.image_label())
    }

    /// Format, codec and block size.
    pub fn image_label(&self) -> String {
        format!("{} {} {}", self.format.name(), self.codec.label(), spell_block_len(self.block_len))
    }
}

/// All that `bench read` measures.
#[derive(Debug, Default)]
pub struct Selection {
    pub extract: Vec<Case>,
    pub mount: Vec<MountCase>,
}

/// One image of each codec; the flag says whether it is mounted unless codecs are named.
///
/// As the peers make them by default: what a reader meets outside.
const IMAGES: [(Format, Codec, u32, bool); 8] = [
    (Format::Squashfs, codec("zstd", Some(15)), 128 << 10, true),
    (Format::Squashfs, codec("gzip", Some(9)), 128 << 10, false),
    (Format::Squashfs, codec("lz4", None), 128 << 10, false),
    (Format::Squashfs, codec("xz", None), 128 << 10, false),
    (Format::Erofs, codec("lz4hc", Some(12)), 64 << 10, true),
    (Format::Erofs, codec("zstd", Some(3)), 64 << 10, true),
    (Format::Erofs, codec("deflate", Some(9)), 64 << 10, false),
    (Format::Erofs, codec("lzma", Some(6)), 1 << 20, false),
];

const fn codec(name: &'static str, level: Option<u32>) -> Codec {
    Codec { name, level }
}

/// The works named: none means all, and `mount` all that mount.
pub fn select(works: &[String], formats: &[String], codecs: &[String]) -> Result<Selection> {
    let verbs = [Verb::Unpack, Verb::Tar];
    let known: Vec<_> = verbs.map(Verb::name).into_iter().chain(Workload::ALL.map(Workload::name)).collect();
    let starts = |name: &str, work: &str| name == work || name.starts_with(&format!("{work}-"));
    if let Some(work) = works.iter().find(|work| !known.iter().any(|name| starts(name, work))) {
        return Err(Failure::usage(format!("no work {work:?}; there are mount, {}", known.join(", "))));
    }
    let works_on = |name: &str| works.is_empty() || works.iter().any(|work| starts(name, work));
    let has = |words: &[String], word: &str| words.is_empty() || words.iter().any(|known| known == word);

    let mut selection = Selection::default();
    let images =
        IMAGES.iter().filter(|(format, codec, ..)| has(formats, format.name()) && has(codecs, codec.name));
    for (format, codec, block_len, is_usual) in images {
        let mounted = Workload::ALL
            .into_iter()
            .filter(|workload| (*is_usual || !codecs.is_empty()) && works_on(workload.name()));
        selection.mount.extend(mounted.map(|workload| MountCase {
            workload,
            format: *format,
            codec: *codec,
            block_len: *block_len,
        }));
        let extracted = verbs.into_iter().filter(|verb| works_on(verb.name()));
        selection.extract.extend(extracted.flat_map(|verb| extract_cases(verb, *format, *codec, *block_len)));
    }
    if selection.mount.is_empty() && selection.extract.is_empty() {
        return Err(Failure::usage("nothing that is read is all of that"));
    }
    Ok(selection)
}

/// The plain case of `bench` with the same image, if there is one.
fn extract_cases(verb: Verb, format: Format, codec: Codec, block_len: u32) -> Vec<Case> {
    let filter = Filter {
        formats: vec![format.name().to_owned()],
        codecs: vec![codec.name.to_owned()],
        corpora: vec!["debian".to_owned()],
        block_len: None,
    };
    let mut cases = crate::bench::case::select(&[verb.name().to_owned()], &filter).unwrap_or_default();
    cases.retain(|case| (case.codec, case.block_len, case.sharing) == (codec, block_len, Sharing::Plain));
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(works: &[&str], codecs: &[&str]) -> Vec<String> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let selection = select(&owned(works), &[], &owned(codecs)).unwrap();
        let extracted = selection.extract.iter().map(Case::label);
        extracted.chain(selection.mount.iter().map(MountCase::label)).collect()
    }

    #[test]
    fn unpacks_an_image_of_every_codec() {
        let labels = labels(&["unpack"], &[]);
        assert_eq!(labels.len(), IMAGES.len(), "{labels:?}");
    }

    #[test]
    fn mounts_the_usual_codecs_unless_others_are_named() {
        assert_eq!(labels(&["mount-cat"], &[]).len(), 3);
        assert_eq!(labels(&["mount-cat"], &["xz"]), ["mount-cat squashfs xz 128K"]);
    }

    #[test]
    fn takes_a_work_for_all_whose_names_go_on_after_it() {
        let find = labels(&["mount-find"], &["lz4hc"]);
        assert_eq!(find, ["mount-find-cold erofs lz4hc:12 64K", "mount-find-warm erofs lz4hc:12 64K"]);
        assert_eq!(labels(&["mount"], &["gzip"]).len(), Workload::ALL.len());
        assert!(select(&["moun".to_owned()], &[], &[]).is_err());
    }

    #[test]
    fn makes_a_tar_of_squashfs_only() {
        assert_eq!(labels(&["tar"], &[]).len(), 4);
    }
}
