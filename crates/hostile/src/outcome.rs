//! Outcome of reading an input.

/// Outcome of an input that is either read or refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was read as this, told by a hash.
    Read(u64),
    /// It was refused, for this reason.
    Refused(String),
}
