//! Trees read from directories, archives, and manifests.

mod dir;
mod limits;
mod manifest;
mod tar;
mod tar_agrees;
mod tar_as_others;
mod tar_gaps;
