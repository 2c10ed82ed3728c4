//! Properties of any requests to a mount.

use crate::corpus::{Base, inputs};
use crate::judge::open;
use crate::{Breach, Field, mutate};
use packfs::mount::{DryRun, FuseOptions};
use packfs::read::ReadEngine;
use packfs::{InodeId, Silent};
use packfs_testkit::Random;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

thread_local! {
    static IMAGES: OnceCell<Vec<Base>> = const { OnceCell::new() };
    /// Fields of each image that was mutated.
    static FIELDS: RefCell<BTreeMap<usize, Vec<Field>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Requests that one input may hold.
const REQUESTS_MAX: usize = 200;
/// Length of a request's header.
const HEADER_LEN: usize = 40;
const READ: u32 = 15;
const READDIR: u32 = 28;
const READDIRPLUS: u32 = 44;

/// Every request is answered with what was requested or an error number, and never with more than
/// there is room for. The first byte picks an image, the second what is done to it; the rest are
/// requests: either eight bytes each that are made a request of, or raw ones.
///
/// # Errors
/// A [`Breach`].
///
/// # Panics
/// If the corpus cannot be made.
pub fn fuse(input: &[u8]) -> Result<(), Breach> {
    let [which, seed, rest @ ..] = input else { return Ok(()) };
    IMAGES.with(|images| {
        let images = images.get_or_init(|| {
            inputs(super::Input::Image).unwrap_or_else(|error| panic!("the corpus: {error}"))
        });
        let index = usize::from(*which) % images.len();
        let base = &images[index];
        // Half of the images are sound.
        let bytes = if seed & 1 == 0 {
            base.bytes.clone()
        } else {
            FIELDS.with_borrow_mut(|known| {
                let fields = known.entry(index).or_insert_with(|| crate::fields(&base.bytes));
                mutate(&base.bytes, fields, images, &mut Random::new(u64::from(*seed))).bytes
            })
        };
        let Ok(opened) = open(&bytes, 1) else { return Ok(()) };
        let engine: &Arc<ReadEngine> = opened.engine();
        let nodes = opened.load(&Silent).map(|loaded| loaded.inodes).unwrap_or_default();
        let options = FuseOptions::new(opened.volume().root(), "dry-run");
        let Ok(mut dry_run) = DryRun::new(Arc::clone(engine), &options) else { return Ok(()) };
        if seed & 2 == 0 {
            for words in rest.chunks_exact(8).take(REQUESTS_MAX) {
                let request = made(words, &nodes, &dry_run);
                ask(&mut dry_run, &request)?;
            }
        } else {
            for raw in rest.split(|&byte| byte == 0xff).take(REQUESTS_MAX) {
                ask(&mut dry_run, raw)?;
            }
        }
        Ok(())
    })
}

/// A request of eight bytes: what is asked, of which inode, from where, how much.
fn made(words: &[u8], nodes: &[InodeId], dry_run: &DryRun) -> Vec<u8> {
    let [what, node, node_high, offset, shift, size, size_shift, more] = words else { return Vec::new() };
    let asking = DryRun::ASKING;
    let opcode = if *what < 240 { asking[usize::from(*what) % asking.len()] } else { u32::from(*more) };
    let number = usize::from(*node) | usize::from(*node_high) << 8;
    let node = match nodes.get(number % (nodes.len() + 2)) {
        Some(&id) => dry_run.node(id).unwrap_or(0),
        None => (number as u64) << (more % 64),
    };
    let offset = u64::from(*offset) << (shift % 64);
    let size = u32::from(*size) << (size_shift % 24);
    let mut request = vec![0; HEADER_LEN];
    request[4..8].copy_from_slice(&opcode.to_le_bytes());
    request[16..24].copy_from_slice(&node.to_le_bytes());
    match opcode {
        1 | 22 if more % 2 == 0 => {
            request.extend([b"file0\0".as_slice(), b"\x08\0\0\0\0\0\0\0user.own\0"].concat())
        }
        // A size and padding, then a name; or a name alone.
        22 | 23 => {
            request.extend(size.to_le_bytes());
            request.extend([0; 4]);
            request.extend(b"user.label\0");
        }
        1 => request.extend(
            [b"..\0".as_slice(), b".\0", b"large.txt\0", b"\0", b"no end"][usize::from(more / 2 % 5)],
        ),
        // lseek: handle, offset, whence. read and readdir: handle, offset, size.
        46 => {
            request.extend([0; 8]);
            request.extend(offset.to_le_bytes());
            request.extend((u32::from(*more) % 8).to_le_bytes());
            request.extend([0; 4]);
        }
        _ => {
            request.extend([0; 8]);
            request.extend(offset.to_le_bytes());
            request.extend(size.to_le_bytes());
            request.extend([0; 20]);
        }
    }
    if *what >= 250 {
        // Cut short.
        request.truncate(usize::from(*more) % (request.len() + 1));
    }
    request
}

fn ask(dry_run: &mut DryRun, request: &[u8]) -> Result<(), Breach> {
    let word =
        |at: usize| request.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let (opcode, size) = (word(4), word(HEADER_LEN + 16));
    let answer = dry_run.answer(request);
    match (opcode, size, answer) {
        (Some(READ | READDIR | READDIRPLUS), Some(size), Some(Ok(bytes))) if bytes.len() > size as usize => {
            Err(Breach::Decoder(format!("{} bytes answer a request for {size}", bytes.len())))
        }
        (_, _, Some(Err(number))) if !(1..4096).contains(&number) => {
            Err(Breach::Decoder(format!("error number {number}")))
        }
        _ => Ok(()),
    }
}
