//! Images of sources and of dumps.

use super::deposit::{Deposit, Deposited, Written};
use crate::objects::path_of;
use crate::{OpenOptions, Source};
use packfs_core::new_file::NewFile;
use packfs_core::{
    ContentId, DeviceNumber, Error, Limits, MemoryImage, NodeId, NodeKind, Progress, Result, ResultExt, Tree,
    to_hex,
};
use packfs_formats::composefs::{self, Inode, Parser, Versions};
use packfs_integrity::{FsVerityOptions, fs_verity_digest};
use packfs_source::{Loaded, Shape};
use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Options of making an image.
#[derive(Clone, Debug, Default)]
pub struct ComposefsOptions {
    /// Directory that gets the objects; `None`: the image alone is made.
    pub objects: Option<PathBuf>,
    /// Set to fail unless all objects have fs-verity. It is enabled on those that are written
    /// anyway, if the filesystem has it.
    pub requires_fs_verity: bool,
    /// Versions that the image may have.
    pub versions: Versions,
    /// Set to store each name of a file with hard links as a file of its own, as mkcomposefs does.
    pub splits_links: bool,
    /// Filters and changes on the way from the source.
    pub shape: Shape,
    /// Way to open a source that is an image.
    pub source: OpenOptions,
    /// Limits of a source that is an image, a tar or a manifest.
    pub limits: Limits,
    /// Threads that hash; 0: one for each processor.
    pub jobs: usize,
    /// File that is to be written, which is never part of itself.
    pub output: Option<PathBuf>,
}

impl ComposefsOptions {
    fn opening(&self) -> OpenOptions {
        self.source.clone().jobs(self.jobs).limits(self.limits)
    }
}

/// Counts of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ObjectCounts {
    /// Files whose contents are objects; equal ones have one object.
    pub files: u64,
    /// Files whose contents lie in the image.
    pub inline_files: u64,
    /// Objects written; those that were there already do not count.
    pub written: u64,
    /// Bytes of these objects.
    pub written_bytes: u64,
    /// Objects among those written that share the blocks of files of the source.
    pub shared: u64,
    /// Objects among those written on which fs-verity is enabled.
    pub fs_verity: u64,
}

/// Report of making an image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ComposefsReport {
    /// Length of the image in bytes.
    pub image_len: u64,
    /// fs-verity digest of the image, SHA-256.
    pub digest: String,
    /// Objects of the source; left out for a dump, which only names them.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub objects: Option<ObjectCounts>,
}

/// An image that was made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Made {
    /// Bytes of the image.
    pub bytes: Vec<u8>,
    /// Report.
    pub report: ComposefsReport,
}

impl Made {
    /// Writes the image to a file, which appears when it is complete.
    ///
    /// Errors: `Io`, `Usage` for what is no name of a file.
    pub fn write(&self, path: &Path) -> Result<()> {
        let file = NewFile::create(path, 0o666)?;
        file.file().write_all(&self.bytes).or_io(|| format!("cannot write {path:?}"))?;
        file.finish(false)
    }
}

/// Makes an image of a source of any kind, and writes its objects.
///
/// ```
/// # fn main() -> packfs::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let (source, objects) = (dir.path().join("rootfs"), dir.path().join("objects"));
/// # std::fs::create_dir_all(&source).unwrap();
/// # std::fs::write(source.join("motd"), "hello\n".repeat(100)).unwrap();
/// use packfs::composefs::{ComposefsOptions, make};
///
/// let options = ComposefsOptions { objects: Some(objects.clone()), ..Default::default() };
/// let made = make(&source, &options, &packfs::Silent)?;
/// let path = dir.path().join("root.cfs");
/// std::fs::write(&path, &made.bytes).unwrap();
/// let image = packfs::OpenOptions::new().objects(&objects).open(&path)?;
/// assert_eq!(image.read("motd")?.len(), 600);
/// # Ok(())
/// # }
/// ```
///
/// Errors: those of the source; `Failed` for files that composefs cannot hold; `Io`, `Cancelled`.
pub fn make(source: impl AsRef<Path>, options: &ComposefsOptions, progress: &dyn Progress) -> Result<Made> {
    let source = Source::detect_to_pack(source.as_ref(), &options.opening(), progress)?;
    make_of(&source, options, progress)
}

/// Makes an image like [`make`], of a source that is already known.
///
/// Errors: as there.
pub fn make_of(source: &Source, options: &ComposefsOptions, progress: &dyn Progress) -> Result<Made> {
    if let Some(store) = &options.objects {
        std::fs::create_dir_all(store).or_io(|| format!("cannot create {store:?}"))?;
    }
    let mut shape = options.shape.clone();
    let own = options.objects.iter().chain(&options.output).filter_map(|path| std::fs::metadata(path).ok());
    shape.skip.extend(own.map(|own| (own.dev(), own.ino())));
    let loaded = source.load_with(&options.opening(), &shape, progress)?;
    let deposit = Deposit {
        contents: &*loaded.contents,
        store: options.objects.as_deref(),
        requires_fs_verity: options.requires_fs_verity,
        progress,
        counts: Written::default(),
    };
    let (nodes, files): (Vec<NodeId>, Vec<(ContentId, u64)>) = files_of(&loaded.tree).unzip();
    let deposited = deposit.all(&files, options.jobs)?;
    let is_object = |deposited: &&Deposited| matches!(deposited, Deposited::Object(_));
    let objects = deposited.iter().filter(is_object).count() as u64;
    let counts = ObjectCounts {
        files: objects,
        inline_files: deposited.len() as u64 - objects,
        written: deposit.counts.objects.into_inner(),
        written_bytes: deposit.counts.bytes.into_inner(),
        shared: deposit.counts.shared.into_inner(),
        fs_verity: deposit.counts.fs_verity.into_inner(),
    };
    let deposited = nodes.into_iter().zip(deposited).collect();
    let tree = tree_of(&loaded, deposited, options.splits_links)?;
    made(tree, options.versions, Some(counts))
}

/// Makes an image of a dump.
///
/// Errors: `Corrupt` for what is no dump; `Failed` for files that composefs cannot hold; `Io`.
pub fn make_of_dump(dump: &mut dyn BufRead, versions: Versions) -> Result<Made> {
    let mut parser = Parser::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let len_max = Parser::LINE_LEN_MAX as u64 + 1;
        let len = (&mut *dump).take(len_max).read_until(b'\n', &mut line).or_io(|| "cannot read the dump")?;
        if len == 0 {
            break;
        }
        if line.pop_if(|last| *last == b'\n').is_none() && len as u64 == len_max {
            let fault = format!("a line has more than {} bytes", Parser::LINE_LEN_MAX);
            return Err(Error::corrupt("composefs dump", fault));
        }
        parser.line(&line)?;
    }
    made(parser.finish()?, versions, None)
}

fn made(tree: composefs::Tree, versions: Versions, objects: Option<ObjectCounts>) -> Result<Made> {
    let bytes = composefs::write(tree, versions)?;
    let image = MemoryImage::new("composefs image", bytes.clone());
    let digest = fs_verity_digest(&image, &FsVerityOptions::default(), 1, &packfs_core::Silent)?;
    let report = ComposefsReport { image_len: bytes.len() as u64, digest: to_hex(&digest), objects };
    Ok(Made { bytes, report })
}

/// Returns the files that are not empty.
fn files_of(tree: &Tree) -> impl Iterator<Item = (NodeId, (ContentId, u64))> {
    tree.nodes().filter_map(|(id, node)| match node.kind {
        NodeKind::File { len, content } if len > 0 => Some((id, (content, len))),
        _ => None,
    })
}

fn tree_of(
    loaded: &Loaded,
    deposited: HashMap<NodeId, Deposited>,
    splits_links: bool,
) -> Result<composefs::Tree> {
    let from = &loaded.tree;
    let inode = |id: NodeId| inode_of(from, id, deposited.get(&id), splits_links);
    let mut tree = composefs::Tree::new(inode(NodeId::ROOT))?;
    let at = |id: NodeId, error: Error| error.at(format!("{:?}", from.path(id)));
    // Parents come before their children.
    let mut numbers = vec![composefs::Tree::ROOT];
    for (id, node) in from.nodes().skip(1) {
        let parent = numbers[node.parent().index()];
        numbers.push(tree.add(parent, from.first_name(id), inode(id)).map_err(|error| at(id, error))?);
    }
    for (dir, _) in from.nodes().filter(|(_, node)| node.is_dir()) {
        for entry in from.entries(dir) {
            let node = from.node(entry.node);
            if node.parent() == dir && from.first_name(entry.node) == entry.name {
                continue;
            }
            let parent = numbers[dir.index()];
            let linked = if splits_links {
                tree.add(parent, entry.name, inode(entry.node)).map(drop)
            } else {
                tree.link(parent, entry.name, numbers[entry.node.index()])
            };
            linked.map_err(|error| at(entry.node, error))?;
        }
    }
    Ok(tree)
}

fn inode_of(tree: &Tree, id: NodeId, deposited: Option<&Deposited>, splits_links: bool) -> Inode {
    let node = tree.node(id);
    let mut inode = Inode::new(node.kind.file_type(), node.meta.mode);
    inode.links = if splits_links { 1 } else { node.links };
    (inode.owner, inode.mtime) = (node.meta.owner, node.meta.mtime);
    inode.xattrs = tree.xattrs(node.xattrs).clone();
    match &node.kind {
        NodeKind::File { len, .. } => inode.size = *len,
        NodeKind::Symlink(target) => inode.target = target.to_vec(),
        NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => {
            inode.device = DeviceNumber::encode(*number)
        }
        NodeKind::Directory | NodeKind::Fifo | NodeKind::Socket => {}
    }
    match deposited {
        Some(Deposited::Held(bytes)) => inode.file.content = Some(bytes.clone()),
        Some(Deposited::Object(digest)) => {
            inode.file.object = path_of(digest).into_bytes();
            inode.file.digest = Some(*digest);
        }
        None => {}
    }
    inode
}
