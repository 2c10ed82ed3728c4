//! Answers requests without a mount, as one serving thread would. For tests and fuzzing.

use super::FuseOptions;
use super::abi::{InHeader, opcode};
use super::device::Device;
use super::handshake::Features;
use super::room::Room;
use super::served::{Answer, AnswerBuffers, Served};
use packfs_core::{Result, ResultExt};
use packfs_read::ReadEngine;
use rustix::fs::{Mode, OFlags};
use std::sync::Arc;
use zerocopy::FromBytes;

/// Server without a mount. Unlike a mount, it does not survive a panic.
pub struct DryRun {
    served: Served,
    buffers: AnswerBuffers,
    contents: Vec<u8>,
    nowhere: Device,
}

impl DryRun {
    /// Serves the image of `engine`.
    ///
    /// Errors: `Io` if this machine has no `/dev/null`.
    pub fn new(engine: Arc<ReadEngine>, options: &FuseOptions) -> Result<Self> {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .or_io(|| "cannot open /dev/null")?;
        let served = Served::new(engine, options, Features::default(), None);
        Ok(DryRun {
            served,
            buffers: AnswerBuffers::default(),
            contents: Vec::new(),
            nowhere: Device::new(null),
        })
    }

    /// Returns the answer to a request as read from the device, with its header, or an error
    /// number; `None` for requests without an answer.
    pub fn answer(&mut self, request: &[u8]) -> Option<std::result::Result<&[u8], i32>> {
        let (header, asked) = InHeader::read_from_prefix(request).ok()?;
        let busy = self.served.busy();
        let answer =
            self.served.answer(&header, asked, &mut self.buffers, &mut Room::Growing(&mut self.contents));
        if let Some(after) = self.buffers.after.take() {
            self.served.afterwards(&self.nowhere, after);
        }
        drop(busy);
        match answer {
            Ok(Answer::None) => None,
            Ok(Answer::Body) => Some(Ok(&self.buffers.body)),
            Ok(Answer::Contents(range)) => Some(Ok(self.contents.get(range).unwrap_or_default())),
            Err(error) => Some(Err(error.raw_os_error())),
        }
    }

    /// Returns the node id of an inode in requests; `None` if it has none.
    pub fn node(&self, id: packfs_format::InodeId) -> Option<u64> {
        self.served.node(id).ok()
    }

    /// Request types that get an answer.
    pub const ASKING: [u32; 12] = [
        opcode::LOOKUP,
        opcode::GETATTR,
        opcode::READLINK,
        opcode::OPEN,
        opcode::READ,
        opcode::STATFS,
        opcode::GETXATTR,
        opcode::LISTXATTR,
        opcode::OPENDIR,
        opcode::READDIR,
        opcode::READDIRPLUS,
        opcode::LSEEK,
    ];
}
