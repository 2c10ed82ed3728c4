//! Storage of files, and rules that select it by path.

use crate::codec::{self, Codecs};
use crate::globs::Globs;
use crate::sizes::len_32;
use packfs_core::{ImagePath, NodeKind, Result, Tree};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// Uncompressed.
    Flat,
    Chunks {
        chunk_len: u32,
    },
    Clusters {
        codecs: Codecs,
        cluster_len: u32,
    },
}

impl Storage {
    /// Errors: `Usage`.
    pub(crate) fn of_codec(text: &str, cluster_len: u32) -> Result<Self> {
        Ok(match codec::parse(text, cluster_len)?.1 {
            Some(codecs) => Storage::Clusters { codecs, cluster_len },
            None => Storage::Flat,
        })
    }

    pub(crate) fn codecs(&self) -> Option<(&Codecs, u32)> {
        match self {
            Storage::Clusters { codecs, cluster_len } => Some((codecs, *cluster_len)),
            _ => None,
        }
    }
}

/// Value of a rule on the command line: `CODEC[+CODEC][@SIZE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypedRule {
    codec: String,
    pub cluster_len: Option<u32>,
}

impl TypedRule {
    /// `None` for an invalid length.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (codec, cluster_len) = match text.rsplit_once('@') {
            Some((codec, len)) => (codec, Some(len_32(len)?)),
            None => (text, None),
        };
        Some(TypedRule { codec: codec.into(), cluster_len })
    }

    /// Returns the codecs' settings, `None` for uncompressed; `usual_len` applies if the rule has
    /// no length.
    ///
    /// Errors: `Usage`.
    pub(crate) fn codecs(&self, usual_len: u32) -> Result<Option<Codecs>> {
        Ok(codec::parse(&self.codec, self.cluster_len.unwrap_or(usual_len))?.1)
    }

    /// Returns the storage of matching files; uncompressed ones are chunk-based if `chunk_len` is
    /// set.
    ///
    /// Errors: `Usage`.
    pub(crate) fn storage(&self, usual_len: u32, chunk_len: Option<u32>) -> Result<Storage> {
        let cluster_len = self.cluster_len.unwrap_or(usual_len);
        Ok(match (self.codecs(usual_len)?, chunk_len) {
            (Some(codecs), _) => Storage::Clusters { codecs, cluster_len },
            (None, Some(chunk_len)) => Storage::Chunks { chunk_len },
            (None, None) => Storage::Flat,
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ByPath<T>(Vec<Row<T>>);

pub(crate) type Rules = ByPath<Storage>;

#[derive(Clone, Debug)]
struct Row<T> {
    /// The glob as given.
    glob: String,
    globs: Globs,
    what: T,
}

impl Rules {
    /// Rules of globs; uncompressed files become chunk-based if `chunk_len` is set.
    ///
    /// Errors: `Usage`.
    pub(crate) fn of_rules(
        typed: &[(String, TypedRule)],
        usual_len: u32,
        chunk_len: Option<u32>,
    ) -> Result<Self> {
        let rule = |(glob, rule): &(String, TypedRule)| {
            Ok(Row {
                glob: glob.clone(),
                globs: Globs::compile(glob)?,
                what: rule.storage(usual_len, chunk_len)?,
            })
        };
        typed.iter().map(rule).collect::<Result<_>>().map(ByPath)
    }

    pub(crate) fn storages(&self) -> impl Iterator<Item = &Storage> {
        self.0.iter().map(|row| &row.what)
    }
}

impl<T> ByPath<T> {
    /// Errors: `Usage` for an invalid glob.
    pub(crate) fn new<'a>(rows: impl Iterator<Item = (&'a str, T)>) -> Result<Self> {
        rows.map(|(glob, what)| Ok(Row { glob: glob.into(), globs: Globs::compile(glob)?, what }))
            .collect::<Result<_>>()
            .map(ByPath)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn unmatched(&self, tree: &Tree) -> Vec<&str> {
        let mut rows: Vec<&Row<T>> = self.0.iter().collect();
        let mut walk = tree.walk();
        while let Some((path, id)) = walk.next().filter(|_| !rows.is_empty()) {
            if matches!(tree.node(id).kind, NodeKind::File { .. }) {
                rows.retain(|row| !row.globs.match_path(path));
            }
        }
        rows.iter().map(|row| &*row.glob).collect()
    }

    /// Returns the value of the last matching glob.
    pub(crate) fn find(&self, path: &ImagePath) -> Option<&T> {
        self.0.iter().rev().find(|row| row.globs.match_path(path)).map(|row| &row.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_codec::{CodecSettings, Lz4HcSettings};

    fn storage(rules: &[(&str, &str)], path: &str) -> Option<Storage> {
        let typed: Vec<(String, TypedRule)> =
            rules.iter().map(|(glob, rule)| (glob.to_string(), TypedRule::parse(rule).unwrap())).collect();
        Rules::of_rules(&typed, 4096, None)
            .unwrap()
            .find(&ImagePath::parse(path.as_bytes()).unwrap())
            .cloned()
    }

    #[test]
    fn globs_match_names_anywhere_paths_from_the_root_and_all_below_a_directory() {
        let is_flat = |glob: &str, path: &str| storage(&[(glob, "none")], path) == Some(Storage::Flat);
        assert!(is_flat("*.so", "usr/lib/a.so"));
        assert!(is_flat("usr/lib", "usr/lib/deep/a.so"));
        assert!(is_flat("/usr/*/a.so", "usr/lib/a.so"));
        assert!(is_flat("doc", "usr/share/doc/a/b"));
        assert!(!is_flat("usr/*.so", "usr/lib/a.so"));
        assert!(!is_flat("lib/*", "usr/lib/a.so"));
    }

    #[test]
    fn the_last_rule_that_matches_counts() {
        let rules = [("**", "lz4hc:9@8K"), ("*.png", "none")];
        assert_eq!(storage(&rules, "a/b.png"), Some(Storage::Flat));
        let codecs = Codecs { first: CodecSettings::Lz4Hc(Lz4HcSettings { level: 9 }), second: None };
        assert_eq!(storage(&rules, "a/b.txt"), Some(Storage::Clusters { codecs, cluster_len: 8192 }));
        assert_eq!(storage(&[("*.png", "none")], "a/b.txt"), None);
    }

    #[test]
    fn globs_that_are_none_are_refused() {
        assert!(Rules::of_rules(&[("[".into(), TypedRule::parse("none").unwrap())], 4096, None).is_err());
        assert_eq!(TypedRule::parse("lz4@many"), None);
    }
}
