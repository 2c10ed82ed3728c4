//! Inodes and names of an image to be written.

use packfs_core::{Error, FileType, Name, Owner, Result, Timestamp, Xattrs, escaped};
use packfs_format::units::*;
use std::collections::BTreeMap;

/// Longest path of an object or target of a symbolic link (`PATH_MAX` without the NUL).
pub(super) const PATH_LEN_MAX: usize = 4095;
/// Limit of a file's data in the image itself.
pub(super) const CONTENT_LEN_MAX: usize = 5000;
/// Limit of an inode's attributes, each with header and padding.
const XATTRS_LEN_MAX: usize = 32_767;
const XATTRS_HEAD_LEN: usize = 12;
const XATTR_HEAD_LEN: usize = 7;
const XATTR_NAME_MAX: usize = 255;
/// Largest file: the table of its chunks, all of them holes, must fit into a block.
const FILE_LEN_MAX: u64 = 1024 << 43;

/// Contents of a regular file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Contents in the image itself, at most 5,000 bytes; there is no object then.
    pub content: Option<Box<[u8]>>,
    /// Path of the object below the directory of objects; empty if unknown.
    pub object: Vec<u8>,
    /// fs-verity digest of the contents, SHA-256.
    pub digest: Option<[u8; 32]>,
}

/// An inode.
#[derive(Clone, Debug)]
pub struct Inode {
    /// `st_mode`, with the type.
    pub mode: u16,
    /// Link count; that of a directory is counted when it is written.
    pub links: u32,
    /// User and group.
    pub owner: Owner,
    /// Encoded number of a device (`new_encode_dev` in Linux); 0 for anything else.
    pub device: u32,
    /// Length in bytes.
    pub size: u64,
    /// Time of last modification.
    pub mtime: Timestamp,
    /// Extended attributes.
    pub xattrs: Xattrs,
    /// Target of a symbolic link.
    pub target: Vec<u8>,
    /// Contents of a regular file.
    pub file: File,
    pub(crate) children: BTreeMap<Box<[u8]>, Child>,
}

/// A directory entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    pub(crate) inode: u32,
    /// Set for further names of an inode.
    pub(crate) is_link: bool,
}

impl Inode {
    /// Returns an inode of a type, owned by root, without contents.
    pub fn new(file_type: FileType, permissions: u16) -> Self {
        Inode {
            // The type is in the four bits above the permissions.
            mode: u16::try_from(file_type.mode_bits()).unwrap_or(0) | permissions & 0o7777,
            links: 1,
            owner: Owner::default(),
            device: 0,
            size: 0,
            mtime: Timestamp::default(),
            xattrs: Xattrs::new(),
            target: Vec::new(),
            file: File::default(),
            children: BTreeMap::new(),
        }
    }

    /// Returns the type; a file if the mode has none, which `checked` refuses.
    pub(crate) fn file_type(&self) -> FileType {
        FileType::from_mode_bits(self.mode.into()).unwrap_or(FileType::File)
    }

    pub(super) fn is_dir(&self) -> bool {
        self.file_type() == FileType::Directory
    }

    /// True for a character device 0:0, which overlayfs takes for a whiteout.
    pub(super) fn is_whiteout(&self) -> bool {
        self.file_type() == FileType::CharDevice && self.device == 0
    }

    pub(crate) fn is_external(&self) -> bool {
        self.file_type() == FileType::File && self.size > 0 && self.file.content.is_none()
    }

    /// Errors: the fault of attributes that no inode can have.
    pub(super) fn set_xattr(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        self.xattrs.insert(name.to_vec(), value.to_vec());
        self.check_xattrs_len()
    }

    fn check_xattrs_len(&self) -> Result<(), &'static str> {
        let lens = self.xattrs.iter().map(|(name, value)| XATTR_HEAD_LEN.plus(name.len()).plus(value.len()));
        match lens.fold(XATTRS_HEAD_LEN, usize::plus) {
            0..=XATTRS_LEN_MAX => Ok(()),
            _ => Err("its attributes take more than 32767 bytes"),
        }
    }

    /// Refuses fields that do not fit into an image, and sets the length of links and inline
    /// contents.
    fn checked(mut self) -> Result<Self, &'static str> {
        if FileType::from_mode_bits(self.mode.into()).is_none() {
            return Err("the mode has no known file type");
        }
        if self.file_type() == FileType::Symlink {
            if self.target.is_empty() || self.target.len() > PATH_LEN_MAX || self.target.contains(&0) {
                return Err("the target of a symlink needs 1 to 4095 bytes and no NUL");
            }
            self.size = self.target.len() as u64;
        }
        if self.file.content.as_ref().is_some_and(|content| content.len() > CONTENT_LEN_MAX) {
            return Err("contents in the image are longer than 5000 bytes");
        }
        if self.file.content.as_ref().is_some_and(|content| content.is_empty()) {
            self.file.content = None;
        }
        if self.file.object.len() > PATH_LEN_MAX || self.file.object.contains(&0) {
            return Err("the path of an object has more than 4095 bytes, or a NUL");
        }
        if self.is_external() && self.size > FILE_LEN_MAX {
            return Err("files of more than 9007199254740992 bytes do not fit");
        }
        if self.mtime.nanos >= 1_000_000_000 {
            return Err("the time has 1000000000 nanoseconds or more");
        }
        let is_wrong = |name: &Vec<u8>| name.is_empty() || name.len() > XATTR_NAME_MAX || name.contains(&0);
        if self.xattrs.keys().any(is_wrong) {
            return Err("the name of an attribute needs 1 to 255 bytes and no NUL");
        }
        self.check_xattrs_len()?;
        Ok(self)
    }
}

/// Inodes with their names. Inode 0 is the root.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(crate) inodes: Vec<Inode>,
}

impl Tree {
    /// The root directory.
    pub const ROOT: u32 = 0;

    /// Creates a tree.
    ///
    /// Errors: `Failed` for a root that is not a directory, and for values that do not fit into an
    /// image.
    pub fn new(root: Inode) -> Result<Self> {
        let root = root.checked().map_err(|fault| Error::failed(format!("/: {fault}")))?;
        if root.is_dir() {
            Ok(Tree { inodes: vec![root] })
        } else {
            Err(Error::failed("/: the root must be a directory"))
        }
    }

    /// Adds an inode with its first name, and returns its number.
    ///
    /// Errors: `Failed` for a name that exists already, a parent that is not a directory, and for
    /// values that do not fit into an image.
    pub fn add(&mut self, parent: u32, name: &[u8], inode: Inode) -> Result<u32> {
        let wrong = |fault: &str| Error::failed(format!("\"{}\": {fault}", escaped(name)));
        let inode = inode.checked().map_err(wrong)?;
        let number = u32::try_from(self.inodes.len()).map_err(|_| wrong("more than 4294967295 files"))?;
        self.put(parent, name, Child { inode: number, is_link: false })?;
        self.inodes.push(inode);
        Ok(number)
    }

    /// Adds a further name of an inode.
    ///
    /// Errors: as [`Tree::add`]; `Failed` for a directory.
    pub fn link(&mut self, parent: u32, name: &[u8], target: u32) -> Result<()> {
        let is_dir = self.get(target).is_none_or(Inode::is_dir);
        if is_dir {
            return Err(Error::failed(format!("\"{}\": a hard link to a directory", escaped(name))));
        }
        self.put(parent, name, Child { inode: target, is_link: true })
    }

    fn put(&mut self, parent: u32, name: &[u8], child: Child) -> Result<()> {
        let wrong = |fault: &str| Error::failed(format!("\"{}\": {fault}", escaped(name)));
        Name::new(name).map_err(wrong)?;
        let parent = self.get_mut(parent).filter(|parent| parent.is_dir());
        let children = &mut parent.ok_or_else(|| wrong("the parent is not a directory"))?.children;
        if children.contains_key(name) {
            return Err(wrong("the name exists twice"));
        }
        children.insert(name.into(), child);
        Ok(())
    }

    pub(super) fn get(&self, number: u32) -> Option<&Inode> {
        self.inodes.get(number as usize)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Inode> {
        self.inodes.get_mut(number as usize)
    }
}
