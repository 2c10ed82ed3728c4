//! Targets of symbolic links, which are compressed like files.

use crate::corruption::{Corruption, Place};
use crate::data::{Block, StoredAs};
use crate::inode::{RawInode, not_a};
use crate::volume::CramfsVolume;
use packfs_core::{FileType, Result};
use packfs_format::InodeId;
use std::ops::ControlFlow;

impl CramfsVolume {
    pub(crate) fn link_target(&self, id: InodeId) -> Result<Vec<u8>> {
        let inode = self.raw_inode(id)?;
        if inode.file_type != FileType::Symlink {
            return Err(not_a("symbolic link", &inode));
        }
        self.target_of(&inode)
    }

    pub(crate) fn target_of(&self, inode: &RawInode) -> Result<Vec<u8>> {
        let place = inode.place;
        let count = inode.block_count(&self.geometry);
        let mut target = Vec::with_capacity(inode.raw.size as usize);
        let mut decoded = Ok(());
        let _ = self.each_block(inode, 0..count, &mut |block| {
            decoded = self.decode_part(&block, place, &mut target);
            if decoded.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        decoded?;
        if target.contains(&0) {
            return Err(Corruption::LinkNul { place }.into());
        }
        Ok(target)
    }

    /// Appends the decoded data of a block.
    fn decode_part(&self, block: &Block, place: Place, target: &mut Vec<u8>) -> Result<()> {
        let mut bytes = vec![0; block.decoded_len as usize];
        if block.stored_as != StoredAs::Hole {
            let mut stored = vec![0; block.len as usize];
            self.image.read_exact_at(block.at, &mut stored)?;
            if let StoredAs::Compressed(algorithm) = block.stored_as {
                let found = self
                    .with_decoders(|decoders| decoders.decompress(algorithm, &stored, &mut bytes))
                    .map_err(|reason| Corruption::LinkDecode { place, algorithm, reason })?;
                if found != bytes.len() {
                    let wanted = block.decoded_len;
                    return Err(Corruption::LinkDecodedLength { place, found, wanted }.into());
                }
            } else {
                bytes.iter_mut().zip(stored).for_each(|(to, byte)| *to = byte);
            }
        }
        target.extend_from_slice(&bytes);
        Ok(())
    }
}
