//! Number, size, or beginnings of the shards that a plan is to have.

/// Most shards of a plan.
pub(crate) const SHARDS_MAX: usize = 100_000;

/// Number or size of shards.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shards {
    /// Number of shards, of about equal weight.
    Count(u32),
    /// Most bytes of a shard. An entry counts 20,000 bytes besides its data, and a longer file has
    /// a shard of its own.
    Size(u64),
    /// Cuts of an earlier plan: shards begin at the same paths.
    Like(Vec<Cut>),
}

/// Beginning of a shard; `None` for one without entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut(pub(crate) Option<Vec<u8>>);
