//! `Volume` methods common to all versions.

/// Methods of [`packfs_format::Volume`] that all versions implement alike; the module imports the
/// names.
macro_rules! shared_answers {
    () => {
        fn caching(&self) -> Option<&dyn packfs_format::Caching> {
            Some(self)
        }

        fn root(&self) -> InodeId {
            self.geometry.layout.root
        }

        fn inode(&self, id: InodeId) -> Result<Inode> {
            self.plain_inode(id, &inode::raw_inode(self, id)?)
        }

        fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
            inode::link_target(self, id)
        }

        fn extents(
            &self,
            id: InodeId,
            range: Range<u64>,
            visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
        ) -> Result<()> {
            data::file_extents(self, id, range, visit)
        }

        fn image_len(&self) -> Option<u64> {
            Some(padded_len(self.geometry.bytes_used, self.geometry.image_len))
        }

        fn coding(&self) -> Option<Coding> {
            self.image_coding()
        }

        fn inode_count_hint(&self) -> u64 {
            u64::from(self.geometry.layout.inode_count)
        }
    };
}
pub(crate) use shared_answers;

/// Traits of volumes that every generation implements alike.
macro_rules! shared_traits {
    ($volume:ty) => {
        impl packfs_format::Directories for $volume {
            fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
                dir::find_entry(self, dir, name)
            }

            fn read_dir(
                &self,
                dir: InodeId,
                from: DirCursor,
                visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
            ) -> Result<()> {
                dir::each_entry(self, dir, from, visit)
            }

            fn is_sorted(&self) -> bool {
                self.shape().is_sorted
            }
        }

        impl packfs_format::Caching for $volume {
            fn keep_at_most(&self, len_max: usize) {
                self.metadata.keep_at_most(len_max);
            }
        }
    };
}
pub(crate) use shared_traits;
