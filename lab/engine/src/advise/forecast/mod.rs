//! From a sample to the whole: how long the image will be, how long making it takes, and how long
//! reading.

pub(crate) mod build;
pub(crate) mod device;
pub(crate) mod pattern;
pub(crate) mod size;
pub(crate) mod time;
