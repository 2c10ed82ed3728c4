//! Files being read. The kernel does not report opening and closing, so the files read last are
//! kept.

use super::marks::Marks;
use packfs_core::Result;
use packfs_format::InodeId;
use packfs_read::{FileReader, ReadEngine};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of separately locked maps.
const SHARD_COUNT: usize = 8;
const FILES_MAX: usize = 64;

pub(crate) struct OpenFile {
    reader: FileReader,
    pub(crate) given: Marks,
}

impl Deref for OpenFile {
    type Target = FileReader;

    fn deref(&self) -> &FileReader {
        &self.reader
    }
}

pub(crate) struct OpenFiles {
    engine: Arc<ReadEngine>,
    shards: [Mutex<Shard>; SHARD_COUNT],
}

#[derive(Default)]
struct Shard {
    files: HashMap<InodeId, (Arc<OpenFile>, u64)>,
    clock: u64,
}

impl OpenFiles {
    pub(crate) fn new(engine: Arc<ReadEngine>) -> Self {
        OpenFiles { engine, shards: Default::default() }
    }

    pub(crate) fn get(&self, id: InodeId) -> Result<Arc<OpenFile>> {
        // The upper bits of the product depend on all bits of the id.
        let index = (id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as usize % SHARD_COUNT;
        let lock = || self.shards[index].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = lock().find(id) {
            return Ok(file);
        }
        let file = Arc::new(OpenFile { reader: self.engine.open_file(id)?, given: Marks::default() });
        Ok(lock().keep(id, file))
    }
}

impl Shard {
    fn find(&mut self, id: InodeId) -> Option<Arc<OpenFile>> {
        self.clock += 1;
        let (file, used) = self.files.get_mut(&id)?;
        *used = self.clock;
        Some(Arc::clone(file))
    }

    /// Prefers the file of a faster thread: all readers of a file share its access pattern.
    fn keep(&mut self, id: InodeId, file: Arc<OpenFile>) -> Arc<OpenFile> {
        if let Some(file) = self.find(id) {
            return file;
        }
        if self.files.len() >= FILES_MAX
            && let Some(oldest) = self.files.iter().min_by_key(|(_, (_, used))| *used).map(|(id, _)| *id)
        {
            self.files.remove(&oldest);
        }
        self.files.insert(id, (Arc::clone(&file), self.clock));
        file
    }
}
