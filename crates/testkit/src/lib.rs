//! Shared parts of packfs's tests: odd trees, the facts of a hierarchy wherever it lives, kernel
//! mounts, peers, damage.
//!
//! A dev-dependency only. It imports `packfs-core` and the frame of formats but no format, so it
//! judges formats from outside.
#![forbid(unsafe_code)]

mod bucket_server;
mod bytes_image;
mod damage;
mod everything;
mod faults;
mod files;
mod host;
mod kernel;
mod labelled_image;
mod made_up;
mod nobody;
mod odd;
mod old_kernel;
mod peers;
mod random;
mod range_server;
mod reach;
mod read_all;
mod settings;
mod snapshot;
mod uring_switch;
mod verdicts;

pub use bucket_server::{BucketFault, BucketServer};
pub use bytes_image::BytesImage;
pub use damage::{Action, Damage, damages};
pub use everything::{Fact, Field, SparseFiles, everything};
pub use faults::{Countdown, FaultyContents, FaultyImage, ReadFault};
pub use files::{path, tree_of};
pub use host::{snapshot_dir, write_dir};
pub use kernel::{LoopDevice, Mount, unmount};
pub use labelled_image::LabelledImage;
pub use made_up::{MadeUpImage, MadeUpNode, MadeUpVolume};
pub use nobody::{as_nobody, output_of_copy};
pub use odd::{odd_tree, plain_tree};
pub use old_kernel::{Disk, OldKernel};
pub use peers::{Peer, is_root, peer, peer_since, serves, skip};
pub use random::Random;
pub use range_server::{RangeServer, Reply, Request, Served};
pub use read_all::{read_all, read_range};
pub use settings::settings;
pub use snapshot::{Compare, Row, Snapshot, snapshot_tree};
pub use uring_switch::UringSwitch;
pub use verdicts::{assert_found, assert_refused};
