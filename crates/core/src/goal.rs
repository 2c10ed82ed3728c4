//! The goal of packing: size, balance, read speed or build speed.

use crate::words;

/// Goal of packing, which sets all options that the caller leaves unset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// Smallest image, whatever the cost of packing and reading.
    Size,
    /// Small, and fast to read.
    #[default]
    Balanced,
    /// Fast to read.
    Read,
    /// Fast to build.
    Build,
}

words!(Goal: "goal", { Size: "size", Balanced: "balanced", Read: "read", Build: "build" });
