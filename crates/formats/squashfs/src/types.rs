//! Basic types of inodes, which directory entries use; extended types differ by version.

use packfs_core::FileType;

pub(crate) const SQUASHFS_DIR_TYPE: u16 = 1;
pub(crate) const SQUASHFS_REG_TYPE: u16 = 2;
pub(crate) const SQUASHFS_SYMLINK_TYPE: u16 = 3;
pub(crate) const SQUASHFS_BLKDEV_TYPE: u16 = 4;
pub(crate) const SQUASHFS_CHRDEV_TYPE: u16 = 5;
pub(crate) const SQUASHFS_FIFO_TYPE: u16 = 6;
pub(crate) const SQUASHFS_SOCKET_TYPE: u16 = 7;

/// Returns the type; `None` for extended and invalid numbers.
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
