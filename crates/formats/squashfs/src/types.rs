//! Numbers of the types of inodes. Directory entries only use these; extended forms of them are
//! each generation's own.

use packfs_core::FileType;

/// A directory.
pub(crate) const SQUASHFS_DIR_TYPE: u16 = 1;
/// A regular file.
pub(crate) const SQUASHFS_REG_TYPE: u16 = 2;
/// A symbolic link.
pub(crate) const SQUASHFS_SYMLINK_TYPE: u16 = 3;
/// A block device.
pub(crate) const SQUASHFS_BLKDEV_TYPE: u16 = 4;
/// A character device.
pub(crate) const SQUASHFS_CHRDEV_TYPE: u16 = 5;
/// A fifo.
pub(crate) const SQUASHFS_FIFO_TYPE: u16 = 6;
/// A socket.
pub(crate) const SQUASHFS_SOCKET_TYPE: u16 = 7;

/// The type that a number means; `None` for extended forms and what is none.
pub(crate) fn type_of_number(inode_type: u16) -> Option<FileType> {
    Some(match inode_type {
        SQUASHFS_DIR_TYPE => FileType::Directory,
        SQUASHFS_REG_TYPE => FileType::File,
        SQUASHFS_SYMLINK_TYPE => FileType::Symlink,
        SQUASHFS_BLKDEV_TYPE => FileType::BlockDevice,
        SQUASHFS_CHRDEV_TYPE => FileType::CharDevice,
        SQUASHFS_FIFO_TYPE => FileType::Fifo,
        SQUASHFS_SOCKET_TYPE => FileType::Socket,
        _ => return None,
    })
}

/// The number of a type.
pub(crate) fn number_of_type(file_type: FileType) -> u16 {
    match file_type {
        FileType::Directory => SQUASHFS_DIR_TYPE,
        FileType::File => SQUASHFS_REG_TYPE,
        FileType::Symlink => SQUASHFS_SYMLINK_TYPE,
        FileType::BlockDevice => SQUASHFS_BLKDEV_TYPE,
        FileType::CharDevice => SQUASHFS_CHRDEV_TYPE,
        FileType::Fifo => SQUASHFS_FIFO_TYPE,
        FileType::Socket => SQUASHFS_SOCKET_TYPE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seven_numbers_are_the_seven_types() {
        let known: Vec<u16> = (0..=16).filter(|number| type_of_number(*number).is_some()).collect();
        assert_eq!(known, [1, 2, 3, 4, 5, 6, 7]);
        for number in known {
            assert_eq!(type_of_number(number).map(number_of_type), Some(number));
        }
    }
}
