//! Answers that a volume of every generation gives alike.

/// Methods of [`packfs_format::Volume`] that are the same for every generation, in names that the
/// module imports.
macro_rules! shared_answers {
    () => {
        fn root(&self) -> InodeId {
            self.geometry.layout.root
        }

        fn inode(&self, id: InodeId) -> Result<Inode> {
            self.plain_inode(id, &inode::raw_inode(self, id)?)
        }

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

        fn keep_at_most(&self, len_max: usize) {
            self.metadata.keep_at_most(len_max);
        }

        fn inode_count_hint(&self) -> u64 {
            u64::from(self.geometry.layout.inode_count)
        }

        fn space(&self) -> Result<Vec<SpaceOwner>> {
            self.space_owners()
        }

        fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
            self.check_all(found)
        }
    };
}
pub(crate) use shared_answers;
