//! Channels between the kernel and a server of mounts.

use packfs_core::words;

/// Channel for requests of the kernel and their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Channel {
    /// io_uring if it is available, otherwise `/dev/fuse`.
    #[default]
    Auto,
    /// Reads and writes of `/dev/fuse`, which all kernels have.
    Classic,
    /// io_uring, since Linux 6.14, if root has enabled it. It is faster.
    Uring,
}

words!(Channel: "channel", { Auto: "auto", Classic: "classic", Uring: "uring" });
