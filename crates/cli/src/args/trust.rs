//! Root hash that an image must have.

use packfs::OpenOptions;
use packfs::integrity::{from_hex, root_hash_path, signature_path};
use std::path::{Path, PathBuf};

/// Options of verbs that read an image.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TrustArgs {
    /// Check every block that is read against this root hash
    ///
    /// The image needs a dm-verity hash tree at its end, as packfs verity appends it. A changed
    /// block is an error, and none of its bytes is used.
    #[arg(long, value_name = "HEX", value_parser = parse_root_hash, hide_short_help = true)]
    root_hash: Option<RootHash>,

    /// Check every block that is read; KEY signs the root hash
    ///
    /// The root hash is read from IMAGE.roothash, and its signature from IMAGE.roothash.minisig,
    /// as packfs verity --root-hash-file and packfs sign write them. KEY is a public key file.
    #[arg(long, value_name = "KEY", conflicts_with = "root_hash", hide_short_help = true)]
    trust: Option<PathBuf>,
}

/// Bytes of a root hash.
#[derive(Clone, Debug)]
struct RootHash(Vec<u8>);

fn parse_root_hash(text: &str) -> Result<RootHash, String> {
    let bytes = from_hex(text).filter(|bytes| matches!(bytes.len(), 32 | 64));
    bytes.map(RootHash).ok_or_else(|| {
        format!("{} characters; 64 hexadecimal digits (sha256) or 128 (sha512) needed", text.len())
    })
}

impl TrustArgs {
    /// True if the image is checked while it is read.
    pub fn is_given(&self) -> bool {
        self.root_hash.is_some() || self.trust.is_some()
    }

    /// Returns the files that are read beside an image.
    pub fn files(&self, image: &Path) -> Vec<PathBuf> {
        let Some(key) = &self.trust else { return Vec::new() };
        let hash = root_hash_path(image);
        vec![key.clone(), signature_path(&hash), hash]
    }

    /// Opens the image with these options.
    pub fn apply(&self, options: OpenOptions) -> OpenOptions {
        match (&self.root_hash, &self.trust) {
            (Some(hash), _) => options.root_hash(hash.0.clone()),
            (None, Some(key)) => options.trust(key),
            (None, None) => options,
        }
    }
}
