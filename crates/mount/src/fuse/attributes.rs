use super::abi::Attr;
use super::served::{Served, errno};
use packfs_core::DeviceNumber;
use packfs_format::{Inode, InodeId, InodeKind};
use rustix::io::Errno;

/// Images store no length of directories.
const DIRECTORY_LEN: u64 = 4096;

impl Served {
    pub(crate) fn attr(&self, node: u64, id: InodeId, inode: &Inode) -> Result<Attr, Errno> {
        let size = match inode.kind {
            InodeKind::File { len } => len,
            InodeKind::Symlink => self.volume().read_link(id).map_err(errno)?.len() as u64,
            InodeKind::Directory => DIRECTORY_LEN,
            _ => 0,
        };
        let rdev = match inode.kind {
            InodeKind::BlockDevice(number) | InodeKind::CharDevice(number) => number,
            _ => DeviceNumber::default(),
        };
        let owner = self.owner(inode);
        // The kernel takes seconds as signed.
        let seconds = inode.meta.mtime.seconds as u64;
        let nanos = inode.meta.mtime.nanos;
        Ok(Attr {
            ino: if inode.number == 0 { node } else { inode.number },
            size,
            blocks: inode.sectors,
            atime: seconds,
            mtime: seconds,
            ctime: seconds,
            atimensec: nanos,
            mtimensec: nanos,
            ctimensec: nanos,
            mode: inode.kind.file_type().mode_bits() | u32::from(inode.meta.mode),
            nlink: inode.links,
            uid: owner.uid,
            gid: owner.gid,
            rdev: rdev.encode(),
            blksize: 4096,
            flags: 0,
        })
    }
}
