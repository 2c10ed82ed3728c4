//! The engine for clusters of fixed output, without a format: a plan goes in, and every file is put
//! together again from the places that come out and the bytes of the image.

mod check;
mod determinism;
mod failures;
mod fake;
mod order;
mod ranges;
mod round_trip;
mod sharing;
mod sparse;
