//! Seconds of one processor for each part of a job, measured on a tree itself.
//!
//! No part can be left out of a job, so their sum over all processors is the least time that any
//! program can take: nothing is compared, ordered, hashed, or handed between threads.

use std::fs::{File, FileTimes, Metadata, Permissions};
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use packfs::codec::CodecSpec;
use packfs::{Error, Result, ResultExt};
use packfs_codec::{CODECS, DictLens, decoder, encoder};

use crate::scratch::Scratch;

// The median counts.
const RUNS: usize = 3;
const FILES_OF_DIR: usize = 512;
const NAMES_LEN: usize = 1024;

/// Seconds of one processor for a whole tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// Lists directories, and asks for the metadata and attribute names of each entry.
    pub scan: f64,
    /// Opens, reads, and closes each file, whose pages are in memory.
    pub read: f64,
    /// Makes each file with its contents, mode, and time.
    pub create: f64,
    /// Writes as many bytes as the tree has to one file.
    pub write: f64,
    pub files: u64,
}

/// Seconds of one processor for the data of a whole tree in one codec.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodecRates {
    pub encode: f64,
    pub decode: f64,
    /// Encoded length as a part of the data.
    pub share: f64,
}

pub(super) struct Loaded {
    root: PathBuf,
    files: Vec<PathBuf>,
    data: Vec<Vec<u8>>,
}

impl Loaded {
    pub(super) fn new(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        each_entry(root, &mut |path, meta| {
            if meta.is_file() {
                files.push(path);
            }
            Ok(())
        })?;
        let data = files.iter().map(|path| whole(path)).collect::<Result<_>>()?;
        Ok(Loaded { root: root.to_owned(), files, data })
    }

    pub(super) fn rates(&self, scratch: &Scratch) -> Result<Rates> {
        let scan = median(|| {
            let mut names = [0; NAMES_LEN];
            each_entry(&self.root, &mut |path, _| {
                // Filesystems without attributes take as long to say so.
                let _ = black_box(rustix::fs::llistxattr(&path, &mut names));
                Ok(())
            })
        })?;
        let mut buffer = Vec::new();
        let read = median(|| {
            self.files.iter().try_for_each(|path| {
                buffer.clear();
                let mut file = File::open(path).or_io(|| format!("cannot read {path:?}"))?;
                file.read_to_end(&mut buffer).or_io(|| format!("cannot read {path:?}"))?;
                black_box(&buffer);
                Ok(())
            })
        })?;
        let (create, write) = (median(|| self.create(scratch))?, median(|| self.write(scratch))?);
        Ok(Rates { scan, read, create, write, files: self.files.len() as u64 })
    }

    fn create(&self, scratch: &Scratch) -> Result<()> {
        let dir = scratch.path("created");
        let cannot = || format!("cannot create files in {dir:?}");
        if dir.exists() {
            std::fs::remove_dir_all(&dir).or_io(cannot)?;
        }
        for (number, files) in self.data.chunks(FILES_OF_DIR).enumerate() {
            let dir = dir.join(number.to_string());
            std::fs::create_dir_all(&dir).or_io(cannot)?;
            for (number, data) in files.iter().enumerate() {
                let mut file = File::create(dir.join(number.to_string())).or_io(cannot)?;
                file.write_all(data).or_io(cannot)?;
                file.set_permissions(Permissions::from_mode(0o640)).or_io(cannot)?;
                file.set_times(FileTimes::new().set_modified(std::time::UNIX_EPOCH)).or_io(cannot)?;
            }
        }
        Ok(())
    }

    fn write(&self, scratch: &Scratch) -> Result<()> {
        let path = scratch.path("written");
        let cannot = || format!("cannot write {path:?}");
        let mut file = File::create(&path).or_io(cannot)?;
        self.data.iter().try_for_each(|data| file.write_all(data)).or_io(cannot)
    }

    pub(super) fn codec_rates(&self, spec: &str, block_len: usize) -> Result<CodecRates> {
        let data = self.data.concat();
        let refuse = |error| Error::usage(format!("codec {spec:?}: {error}"));
        let algorithms: Vec<_> = CODECS.iter().flat_map(|codec| codec.algorithms).copied().collect();
        let dict_lens = DictLens::of_block(block_len as u32);
        let parsed: CodecSpec = spec.parse().map_err(refuse)?;
        let Some(settings) = parsed.resolve(&algorithms, dict_lens).map_err(refuse)? else {
            return Ok(CodecRates { encode: 0.0, decode: 0.0, share: 1.0 });
        };
        let mut coder = encoder(&settings).map_err(refuse)?;
        let mut room = vec![0; block_len];
        let mut stored: Vec<Vec<u8>> = Vec::new();
        // Once: a slow codec takes minutes, and is not disturbed by what takes milliseconds.
        let start = Instant::now();
        for block in data.chunks(block_len) {
            let found = coder.compress(block, &mut room[..block.len() - 1]);
            let found = found.map_err(|error| Error::failed(format!("codec {spec:?}: {error}")))?;
            stored.push(found.map_or_else(Vec::new, |len| room[..len].to_vec()));
        }
        let encode = start.elapsed().as_secs_f64();
        let mut coder = decoder(settings.algorithm());
        let decode = median(|| {
            for (block, stored) in data.chunks(block_len).zip(&stored).filter(|row| !row.1.is_empty()) {
                let decoded = coder.decompress(stored, &mut room[..block.len()]);
                decoded.map_err(|error| Error::failed(format!("codec {spec:?}: {error}")))?;
            }
            Ok(())
        })?;
        let len =
            |(block, stored): (&[u8], &Vec<u8>)| if stored.is_empty() { block.len() } else { stored.len() };
        let stored_len: usize = data.chunks(block_len).zip(&stored).map(len).sum();
        Ok(CodecRates { encode, decode, share: stored_len as f64 / data.len().max(1) as f64 })
    }
}

fn whole(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).or_io(|| format!("cannot read {path:?}"))
}

fn each_entry(dir: &Path, visit: &mut dyn FnMut(PathBuf, &Metadata) -> Result<()>) -> Result<()> {
    let cannot = || format!("cannot read {dir:?}");
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).or_io(cannot)? {
            let entry = entry.or_io(cannot)?;
            let (path, meta) = (entry.path(), entry.metadata().or_io(cannot)?);
            if meta.is_dir() {
                dirs.push(path.clone());
            }
            visit(path, &meta)?;
        }
    }
    Ok(())
}

pub(super) fn median(mut what: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let start = Instant::now();
        what()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[RUNS / 2])
}
