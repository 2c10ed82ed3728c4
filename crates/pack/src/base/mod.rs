//! Reuse of compressed blocks of an earlier image (the base) for unchanged data.
//!
//! Matching paths only selects candidates (`matches.rs`). Every copied block was compared with the
//! source (`old.rs`), unless the caller trusts times. Blocks that hold tails of several files are
//! kept or dropped whole, before anything is placed (`shared.rs`). No format is known here: an
//! image is a [`Volume`], and its values are checked again before memory is allocated for them.

mod blocks;
mod matches;
mod old;
mod shared;
mod stream;

pub(crate) use blocks::BaseReader;
pub(crate) use matches::Trust;
pub(crate) use old::OldBlocks;
pub(crate) use shared::{KeptBlocks, find as find_blocks};
pub(crate) use stream::{KeptStream, find as find_stream, is_second, is_whole_cluster};

use crate::context::Context;
use matches::{Match, Matches};
use packfs_core::{ContentDigest, Error, Image, NodeId, Progress, Result, Tree};
use packfs_format::{Coding, DataKind, InodeId, PackFormat, Volume};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Proof required that the source's data equals a block of the base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// Contents: the source is read, the block is decoded, and both are compared.
    #[default]
    Contents,
    /// Path, length and time: if they equal those of a file of the base, neither file is read.
    /// Other files are compared.
    Times,
    /// The source is the base itself: blocks are decoded to find damage, but not compared.
    Source,
    /// The source is the base itself: blocks are copied without being decoded.
    SourceUnread,
}

/// Unused bytes may take at most 1 / `DEAD_SHARE` of the base.
const DEAD_SHARE: u64 = 128;

/// An earlier image whose compressed blocks can be reused.
pub struct Base {
    volume: Arc<dyn Volume>,
    image: Arc<dyn Image>,
    tree: Tree,
    inodes: Vec<InodeId>,
    proof: Proof,
}

impl Base {
    /// Creates a base from the whole `tree` of `volume`, which was opened from `image`; `tree`
    /// holds the inode of each node.
    pub fn new(
        volume: Arc<dyn Volume>,
        image: Arc<dyn Image>,
        tree: Tree,
        inodes: Vec<InodeId>,
        proof: Proof,
    ) -> Self {
        let image = volume.data_image().unwrap_or(image);
        Base { volume, image, tree, inodes, proof }
    }

    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.image.check_unchanged()
    }

    fn waste_max(&self) -> u64 {
        self.image.len() / DEAD_SHARE
    }

    /// Checks that blocks of the base are valid in an image that `format` writes.
    ///
    /// Errors: `Usage`, naming both encodings.
    pub fn check(&self, format: &dyn PackFormat) -> Result<()> {
        let words = |coding: &Option<Coding>| {
            coding.as_ref().map_or("of a kind whose blocks cannot be copied".to_owned(), Coding::describe)
        };
        let (base, wanted) = (self.volume.coding(), format.coding());
        match (&base, &wanted) {
            (Some(base), Some(wanted)) if base.serves(wanted) => Ok(()),
            _ => {
                let (base, wanted) = (words(&base), words(&wanted));
                let name = self.image.name();
                let message =
                    format!("cannot use {name} as the base: it is {base}, the new image is {wanted}");
                let hint = "the base must have the requested format, codec, level and block size";
                Err(Error::usage(message).hint(hint))
            }
        }
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.image.name(), self.proof)
    }
}

pub(crate) struct Reuse<'a, T> {
    pub base: &'a Base,
    matches: Matches,
    /// Fragment blocks, or parts of the packed stream.
    pub kept: T,
    pub copied: Tally,
    pub damaged: AtomicU64,
}

/// Parts of the base that hold tails of several files and are kept.
pub(crate) trait Kept: Default {
    fn keeps_tail_of(&self, node: NodeId) -> bool;
}

/// Counts of all workers; sums do not depend on their order.
#[derive(Default)]
pub(crate) struct Tally {
    blocks: AtomicU64,
    bytes: AtomicU64,
}

impl Tally {
    pub(crate) fn get(&self) -> (u64, u64) {
        (self.blocks.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    pub(crate) fn add(&self, stored_len: u64) {
        self.blocks.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(stored_len, Ordering::Relaxed);
    }
}

impl<'a, T: Kept> Reuse<'a, T> {
    pub(crate) fn is_blind(&self) -> bool {
        matches!(self.base.proof, Proof::Times | Proof::SourceUnread) && self.copied.get().0 > 0
    }

    /// Finds reusable parts of the base; `find_kept` does so for blocks shared by several files.
    pub(crate) fn find<K: DataKind>(
        context: &Context<'_, K>,
        base: &'a Base,
        find_kept: impl FnOnce(&Self) -> Result<T>,
    ) -> Result<Self> {
        let matches = Matches::find(base, context);
        let (copied, damaged) = (Tally::default(), AtomicU64::new(0));
        let mut reuse = Reuse { base, matches, kept: T::default(), copied, damaged };
        reuse.kept = find_kept(&reuse)?;
        Ok(reuse)
    }

    pub(crate) fn match_of(&self, node: NodeId) -> Option<Match> {
        self.matches.of(node)
    }

    /// Proof about bytes of a file that keep their offset in the base.
    pub(crate) fn digest_of_kept(&self, node: NodeId) -> ContentDigest {
        match self.match_of(node).map(|found| found.trust) {
            Some(Trust::Blind) => ContentDigest::Nothing,
            _ => ContentDigest::Decodable,
        }
    }

    pub(crate) fn warn(&self, progress: &dyn Progress) {
        let damaged = self.damaged.load(Ordering::Relaxed);
        if damaged > 0 {
            let name = self.base.image.name();
            progress.warn(&format!(
                "{name} is damaged: {damaged} of its blocks could not be used, and were compressed anew"
            ));
        }
    }
}
