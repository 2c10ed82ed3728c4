//! An opened image: its inodes, names, and extents. It never decodes file data.

use crate::{
    AnyStored, Caching, Check, Coding, Directories, Extent, Facts, FileDigests, FormatInfo, Health,
    InnerImage, Inode, InodeId, Inside, KernelReads, Object, ObjectFiles, Space, Storage, StoredExtent,
};
use packfs_core::{Error, Image, Result, Xattrs};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// An opened image of any format. Every method may be called from any thread; every figure returned
/// has been checked. Only crates of packfs implement it: any version may add methods.
///
/// Errors of all methods: `Corrupt` if the image violates the rules of its format, `Io` if it
/// cannot be read.
pub trait Volume: Directories + Check + Space + Send + Sync {
    /// Returns the identity of the format.
    fn format(&self) -> &'static FormatInfo;

    /// Returns the root directory.
    fn root(&self) -> InodeId;

    /// Returns an inode.
    fn inode(&self, id: InodeId) -> Result<Inode>;

    /// Returns the target of a symbolic link, raw bytes.
    fn read_link(&self, id: InodeId) -> Result<Vec<u8>>;

    /// Returns the extended attributes of an inode, by full name.
    fn xattrs(&self, id: InodeId) -> Result<Xattrs> {
        let _ = id;
        Ok(Xattrs::new())
    }

    /// Calls `visit` for the extents that cover `range` of a file, in file order, first and last
    /// cut to the range. Ends early when `visit` breaks.
    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()>;

    /// Returns the image that offsets of extents and blocks refer to: several devices as one, or an
    /// image with decoded parts. `None`: the image that the volume was opened from.
    fn data_image(&self) -> Option<Arc<dyn Image>> {
        None
    }

    /// Returns the length of the image with the padding of its format; `None` if the image does not
    /// record it.
    fn image_len(&self) -> Option<u64>;

    /// Returns the stored data, if another image of the format can contain it unchanged.
    fn stored(&self) -> Option<AnyStored<'_>> {
        None
    }

    /// Returns the encoding of its blocks, if they may be copied into another image of the format.
    fn coding(&self) -> Option<Coding> {
        None
    }

    /// Returns the file that contains the tails of others, one after the other, and its length.
    /// [`Volume::extents`] returns its extents, too.
    fn packed_stream(&self) -> Option<(InodeId, u64)> {
        None
    }

    /// Returns the reads of Linux's driver for a file, if they are known.
    fn kernel_reads(&self) -> Result<Option<Box<dyn KernelReads + '_>>> {
        Ok(None)
    }

    /// Returns the number of inodes recorded in the image: a hint, unfit for allocations.
    fn inode_count_hint(&self) -> u64;

    /// Returns the creation time of the image, seconds since 1970, if the format records it.
    fn made_at(&self) -> Option<i64> {
        None
    }

    /// Returns the facts that `info` prints.
    fn facts(&self) -> Result<Facts>;

    /// Returns the state of the image as a whole.
    fn health(&self) -> Option<&dyn Health> {
        None
    }

    /// Returns the images in a container; `None` for a filesystem.
    fn inside(&self) -> Option<&dyn Inside> {
        None
    }

    /// Returns the digests of files, if the image records them.
    fn digests(&self) -> Option<&dyn FileDigests> {
        None
    }

    /// Returns the objects outside of the image with contents of files.
    fn objects(&self) -> Option<&dyn ObjectFiles> {
        None
    }

    /// Returns stored extents with separate figures.
    fn storage(&self) -> Option<&dyn Storage> {
        None
    }

    /// Returns the control of prefetching and of caches.
    fn caching(&self) -> Option<&dyn Caching> {
        None
    }
}

/// Defaults for volumes without the ability.
impl dyn Volume + '_ {
    /// See [`Health::fault`].
    pub fn fault(&self) -> Option<Error> {
        self.health().and_then(Health::fault)
    }

    /// See [`Health::whole_fault`].
    pub fn whole_fault(&self, checksum: bool) -> Result<Option<Error>> {
        self.health().map_or(Ok(None), |health| health.whole_fault(checksum))
    }

    /// See [`Health::warnings`].
    pub fn warnings(&self) -> Vec<String> {
        self.health().map_or_else(Vec::new, Health::warnings)
    }

    /// See [`Health::remarks`].
    pub fn remarks(&self) -> Vec<String> {
        self.health().map_or_else(Vec::new, Health::remarks)
    }

    /// See [`Caching::keep_at_most`].
    pub fn keep_at_most(&self, len_max: usize) {
        if let Some(caching) = self.caching() {
            caching.keep_at_most(len_max);
        }
    }

    /// See [`Inside::inner_images`].
    pub fn inner_images(&self) -> Result<Vec<InnerImage>> {
        self.inside().map_or_else(|| Ok(Vec::new()), Inside::inner_images)
    }

    /// See [`ObjectFiles::object`].
    pub fn object(&self, id: InodeId) -> Result<Option<Object>> {
        self.objects().map_or(Ok(None), |objects| objects.object(id))
    }

    /// See [`Storage::stored_extents`]; for other volumes the extents themselves.
    pub fn stored_extents(
        &self,
        id: InodeId,
        len: u64,
        visit: &mut dyn FnMut(StoredExtent) -> ControlFlow<()>,
    ) -> Result<()> {
        match self.storage() {
            Some(storage) => storage.stored_extents(id, len, visit),
            None => self.extents(id, 0..len, &mut |extent| match StoredExtent::of(&extent) {
                Some(stored) => visit(stored),
                None => ControlFlow::Continue(()),
            }),
        }
    }
}
