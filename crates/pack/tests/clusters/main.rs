//! Tests of the engine for clusters without a format: a plan goes in, and every file is reassembled
//! from the resulting places and the bytes of the image.

mod check;
mod determinism;
mod failures;
mod fake;
mod order;
mod ranges;
mod round_trip;
mod sharing;
mod sparse;
