//! What is measured: one verb on one corpus with one compressor and block size.

use crate::corpus::Corpus;
use crate::failure::{Failure, Result};
use crate::rivals::{Codec, Format, Sharing};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    Pack,
    Unpack,
    Tar,
}

impl Verb {
    pub const ALL: [Self; 3] = [Self::Pack, Self::Unpack, Self::Tar];

    pub fn name(self) -> &'static str {
        match self {
            Self::Pack => "pack",
            Self::Unpack => "unpack",
            Self::Tar => "tar",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    pub verb: Verb,
    pub corpus: Corpus,
    pub format: Format,
    pub sharing: Sharing,
    pub codec: Codec,
    pub block_len: u32,
}

impl Case {
    /// Runs of the rival that are worth waiting for: some packs take it most of a minute, some many.
    pub fn rival_runs_max(&self) -> Option<usize> {
        match (self.verb, self.corpus, self.sharing) {
            (Verb::Pack, _, Sharing::Dedupe) => Some(1),
            (Verb::Pack, Corpus::Same60k, _) => Some(2),
            (Verb::Pack, ..) if self.format == Format::Erofs && self.codec == CLUSTERS[3].0 => Some(1),
            _ => None,
        }
    }

    pub fn label(&self) -> String {
        let (verb, corpus, format) = (self.verb.name(), self.corpus.name(), self.format.name());
        format!("{verb} {corpus} {format} {} {}", self.codec.label(), self.layout())
    }

    /// Block size, and what is shared.
    pub fn layout(&self) -> String {
        let block = spell_block_len(self.block_len);
        if self.sharing == Sharing::Plain { block } else { format!("{block} {}", self.sharing.name()) }
    }
}

const fn codec(name: &'static str, level: Option<u32>) -> Codec {
    Codec { name, level }
}

/// Each at the level that is the peers' default, so that all mean the same; LZ4HC has only its highest in mksquashfs.
const CODECS: [Codec; 6] = [
    codec("gzip", Some(9)),
    codec("lzo", Some(8)),
    codec("lz4", None),
    codec("lz4hc", Some(12)),
    codec("xz", None),
    codec("zstd", Some(15)),
];
const ZSTD: Codec = CODECS[5];
const XZ: Codec = CODECS[4];
const LZ4: Codec = CODECS[2];
const GZIP: Codec = CODECS[0];

const SMALL: u32 = 128 << 10;
const LARGE: u32 = 1 << 20;

/// Everything `all` measures, in the order of the report.
fn cases() -> Vec<Case> {
    [squashfs_cases(), erofs_cases()].concat()
}

fn squashfs_cases() -> Vec<Case> {
    let (format, sharing) = (Format::Squashfs, Sharing::Plain);
    let case = |verb, corpus, codec, block_len| Case { verb, corpus, format, sharing, codec, block_len };
    let mut cases: Vec<_> =
        CODECS.iter().map(|codec| case(Verb::Pack, Corpus::Debian, *codec, SMALL)).collect();
    cases.extend([XZ, ZSTD].map(|codec| case(Verb::Pack, Corpus::Debian, codec, LARGE)));
    cases.extend([LZ4, ZSTD].map(|codec| case(Verb::Pack, Corpus::Small100k, codec, SMALL)));
    cases.push(case(Verb::Pack, Corpus::Same60k, GZIP, SMALL));
    for verb in [Verb::Unpack, Verb::Tar] {
        // To a reader both modes of LZ4 are one format.
        let readable = CODECS.iter().filter(|codec| codec.name != "lz4hc");
        cases.extend(readable.map(|codec| case(verb, Corpus::Debian, *codec, SMALL)));
    }
    cases.push(case(Verb::Unpack, Corpus::Small100k, ZSTD, SMALL));
    cases
}

/// Codec and cluster of each EROFS image.
const CLUSTERS: [(Codec, u32); 6] = [
    (codec("lz4", None), CLUSTER),
    (codec("lz4hc", Some(12)), CLUSTER),
    (codec("zstd", Some(3)), CLUSTER),
    (codec("zstd", Some(15)), CLUSTER),
    (codec("deflate", Some(9)), CLUSTER),
    (codec("lzma", Some(6)), LARGE),
];
const CLUSTER: u32 = 64 << 10;

fn erofs_cases() -> Vec<Case> {
    let case = |verb, sharing, (codec, block_len)| {
        let (corpus, format) = (Corpus::Debian, Format::Erofs);
        Case { verb, corpus, format, sharing, codec, block_len }
    };
    let pack = |sharing| CLUSTERS.map(|cluster| case(Verb::Pack, sharing, cluster));
    let unpack = |sharing| CLUSTERS.map(|cluster| case(Verb::Unpack, sharing, cluster));
    let dedupe = [CLUSTERS[1], CLUSTERS[0], CLUSTERS[2]]
        .map(|cluster| Case { corpus: Corpus::Releases, ..case(Verb::Pack, Sharing::Dedupe, cluster) });
    [
        &pack(Sharing::Plain)[..],
        &pack(Sharing::InlineTails),
        &pack(Sharing::Fragments),
        &dedupe,
        &unpack(Sharing::Plain),
        &unpack(Sharing::Fragments),
    ]
    .concat()
}

/// What to leave out: an empty list leaves nothing out.
#[derive(Default)]
pub struct Filter {
    pub formats: Vec<String>,
    pub codecs: Vec<String>,
    pub corpora: Vec<String>,
    /// Replaces the block size of every case.
    pub block_len: Option<u32>,
}

/// The cases of the verbs named (none or `all`: every verb) that pass the filter.
pub fn select(verbs: &[String], filter: &Filter) -> Result<Vec<Case>> {
    check_known("command", verbs, &[&["all"][..], &Verb::ALL.map(Verb::name)].concat())?;
    check_known("format", &filter.formats, &Format::ALL.map(Format::name))?;
    let mut codecs: Vec<_> = cases().iter().map(|case| case.codec.name).collect();
    codecs.sort_unstable();
    codecs.dedup();
    check_known("codec", &filter.codecs, &codecs)?;
    check_known("corpus", &filter.corpora, &Corpus::ALL.map(Corpus::name))?;
    let has = |words: &[String], word: &str| words.is_empty() || words.iter().any(|known| known == word);
    let every = has(verbs, "all");
    let mut selected: Vec<Case> = vec![];
    for mut case in cases() {
        case.block_len = filter.block_len.unwrap_or(case.block_len);
        let wanted = (every || has(verbs, case.verb.name()))
            && has(&filter.formats, case.format.name())
            && has(&filter.codecs, case.codec.name)
            && has(&filter.corpora, case.corpus.name());
        if wanted && !selected.contains(&case) {
            selected.push(case);
        }
    }
    if selected.is_empty() {
        return Err(Failure::usage("no case of the benchmark is all of that"));
    }
    Ok(selected)
}

fn check_known(what: &str, words: &[String], known: &[&str]) -> Result<()> {
    match words.iter().find(|word| !known.contains(&word.as_str())) {
        Some(word) => Err(Failure::usage(format!("no {what} {word:?}; there are {}", known.join(", ")))),
        None => Ok(()),
    }
}

/// Reads `131072`, `128K` or `1M`: a power of two from 4K to 1M.
pub fn parse_block_len(text: &str) -> Result<u32> {
    let (digits, shift) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 10),
        None => text.strip_suffix(['M', 'm']).map_or((text, 0), |digits| (digits, 20)),
    };
    let len = digits.parse::<u32>().ok().and_then(|number| number.checked_mul(1 << shift));
    len.filter(|len| len.is_power_of_two() && (4096..=LARGE).contains(len)).ok_or_else(|| {
        Failure::usage(format!("block size {text:?}: a power of two from 4K to 1M is allowed"))
    })
}

pub fn spell_block_len(len: u32) -> String {
    if len >= 1 << 20 { format!("{}M", len >> 20) } else { format!("{}K", len >> 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select_labels(verbs: &[&str], codecs: &[&str], block_len: Option<u32>) -> Vec<String> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let filter =
            Filter { formats: owned(&["squashfs"]), codecs: owned(codecs), corpora: vec![], block_len };
        select(&owned(verbs), &filter).unwrap().iter().map(Case::label).collect()
    }

    #[test]
    fn measures_every_kernel_compressor_in_every_verb() {
        let all = select_labels(&[], &[], None);
        for verb in Verb::ALL {
            for name in ["gzip", "lzo", "lz4", "xz", "zstd"] {
                let start = format!("{} debian squashfs {name}", verb.name());
                assert!(all.iter().any(|label| label.starts_with(&start)), "{start}");
            }
        }
    }

    #[test]
    fn selects_by_verb_and_codec() {
        assert_eq!(select_labels(&["tar"], &["xz"], None), ["tar debian squashfs xz 128K"]);
    }

    #[test]
    fn measures_a_case_once_when_block_sizes_become_equal() {
        assert_eq!(select_labels(&["pack"], &["xz"], Some(4096)), ["pack debian squashfs xz 4K"]);
    }

    #[test]
    fn refuses_names_it_does_not_know() {
        assert!(select(&["pakc".to_owned()], &Filter::default()).is_err());
        let filter = Filter { codecs: vec!["brotli".to_owned()], ..Filter::default() };
        assert!(select(&[], &filter).is_err());
    }

    #[test]
    fn reads_block_sizes() {
        assert_eq!(parse_block_len("128K").unwrap(), 131_072);
        assert_eq!(parse_block_len("1M").unwrap(), 1 << 20);
        assert_eq!(parse_block_len("4096").unwrap(), 4096);
        for wrong in ["2M", "3K", "100K", "", "K", "-4K", "99999999999K"] {
            assert!(parse_block_len(wrong).is_err(), "{wrong}");
        }
    }
}
