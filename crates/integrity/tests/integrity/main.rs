//! Digests of trees, and recovery files.

mod digest;
mod recovery;
