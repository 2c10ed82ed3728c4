//! An earlier image whose compressed blocks are copied where the source still holds the same bytes.
//!
//! A match of paths only says where to look (`matches.rs`); what is copied was compared with the
//! source, block by block (`old.rs`), unless the user took the word of times for it. Blocks that
//! hold tails of many files are decided on as wholes before anything is placed (`shared.rs`). Knows
//! no format: an image is a [`Volume`] here, and its figures are checked once more before anything
//! is allocated for them.

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
use packfs_core::{Error, Image, NodeId, Progress, Result, Tree, Witnessed};
use packfs_format::{Coding, DataKind, InodeId, PackFormat, Volume};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What proves that bytes of the source are those that a block of the base holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// The bytes: the source is read, the block decoded, and both compared.
    #[default]
    Contents,
    /// A file with the path, length and time of one in the base is that one: neither is read.
    /// Others are compared.
    Times,
    /// The source is the base itself. Blocks are decoded, so that damage is found, but not
    /// compared.
    Source,
    /// The source is the base itself, and blocks are copied without a look.
    SourceUnread,
}

/// Dead bytes may take one part in so many of the base.
const DEAD_SHARE: u64 = 128;

/// An earlier image; see the module.
pub struct Base {
    volume: Arc<dyn Volume>,
    image: Arc<dyn Image>,
    tree: Tree,
    inodes: Vec<InodeId>,
    proof: Proof,
}

impl Base {
    /// `volume` was opened from `image`; `tree` is all of it, with the inode of each of its nodes.
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

    /// How many bytes that nobody wants may be kept with others.
    fn waste_max(&self) -> u64 {
        self.image.len() / DEAD_SHARE
    }

    /// Whether blocks of the base can stand in an image as `format` makes it.
    ///
    /// Errors: `Usage`, saying how both are encoded.
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
                let what =
                    format!("{name} cannot be the base: it is {base}, the new image is to be {wanted}");
                let hint = "the base must have the format, codec, level and block size that are asked for";
                Err(Error::usage(what).hint(hint))
            }
        }
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.image.name(), self.proof)
    }
}

/// What of a base is used for one image.
pub(crate) struct Reuse<'a, T> {
    pub base: &'a Base,
    matches: Matches,
    /// Shared blocks, or the parts of the packed stream, that stay as they are.
    pub kept: T,
    /// Copied so far: blocks, and their stored bytes.
    pub copied: Tally,
    /// Blocks of the base that could not be decoded.
    pub damaged: AtomicU64,
}

/// What of the base stays as it is, in which tails of several files lie.
pub(crate) trait Kept: Default {
    /// Returns true if the tail of a file stays where it is.
    fn keeps_tail_of(&self, node: NodeId) -> bool;
}

/// Counted by all workers; sums do not depend on who comes first.
#[derive(Default)]
pub(crate) struct Tally {
    blocks: AtomicU64,
    bytes: AtomicU64,
}

impl Tally {
    /// Blocks and bytes.
    pub(crate) fn get(&self) -> (u64, u64) {
        (self.blocks.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    pub(crate) fn add(&self, stored_len: u64) {
        self.blocks.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(stored_len, Ordering::Relaxed);
    }
}

impl<'a, T: Kept> Reuse<'a, T> {
    /// Finds what can be used; `find_kept` does so for what several files share.
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

    /// The file of the base that may hold what a file of the source holds.
    pub(crate) fn match_of(&self, node: NodeId) -> Option<Match> {
        self.matches.of(node)
    }

    /// Returns what is known of bytes of a file that stay where they are in the base.
    pub(crate) fn kept_is_known(&self, node: NodeId) -> Witnessed {
        match self.match_of(node).map(|found| found.trust) {
            Some(Trust::Blind) => Witnessed::Nothing,
            _ => Witnessed::Decodable,
        }
    }

    /// Tells of damage, once.
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
