//! Extended attributes.

use super::abi::{GetXattrIn, GetXattrOut};
use super::served::{Served, errno, name};
use packfs_format::InodeId;
use rustix::io::Errno;
use zerocopy::{FromBytes, IntoBytes};

impl Served {
    /// Errors: `NODATA` if the attribute does not exist, `RANGE` if it does not fit.
    pub(crate) fn xattr(&self, id: InodeId, asked: &[u8], body: &mut Vec<u8>) -> Result<(), Errno> {
        let (asked, rest) = GetXattrIn::read_from_prefix(asked).map_err(|_| Errno::INVAL)?;
        let name = name(rest)?;
        if !self.volume().inode(id).map_err(errno)?.has_xattrs {
            return Err(Errno::NODATA);
        }
        let xattrs = self.volume().xattrs(id).map_err(errno)?;
        sized(xattrs.get(name).ok_or(Errno::NODATA)?, asked.size, body)
    }

    /// Errors: `RANGE` if the names do not fit.
    pub(crate) fn xattr_names(&self, id: InodeId, asked: &[u8], body: &mut Vec<u8>) -> Result<(), Errno> {
        let (asked, _) = GetXattrIn::read_from_prefix(asked).map_err(|_| Errno::INVAL)?;
        let mut names = Vec::new();
        if self.volume().inode(id).map_err(errno)?.has_xattrs {
            for name in self.volume().xattrs(id).map_err(errno)?.keys() {
                names.extend_from_slice(name);
                names.push(0);
            }
        }
        sized(&names, asked.size, body)
    }
}

/// Answers with the length if the request has a length of 0.
fn sized(bytes: &[u8], len_max: u32, body: &mut Vec<u8>) -> Result<(), Errno> {
    if len_max == 0 {
        let size = u32::try_from(bytes.len()).map_err(|_| Errno::TOOBIG)?;
        body.extend_from_slice(GetXattrOut { size, padding: 0 }.as_bytes());
    } else if bytes.len() > len_max as usize {
        return Err(Errno::RANGE);
    } else {
        body.extend_from_slice(bytes);
    }
    Ok(())
}
