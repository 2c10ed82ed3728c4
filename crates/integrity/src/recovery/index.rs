//! The index of a recovery file: parameters, and a checksum of each block of the image and of
//! recovery data.

use super::code;
use super::page::{self, Page};
use super::params::{CHECKSUM_LEN, PAGE_LEN, PAYLOAD_LEN, RecoveryParams};
use packfs_core::{Error, Image, Result};
use sha2::{Digest, Sha256};

pub(super) type Checksum = [u8; CHECKSUM_LEN];

/// The contents of a recovery file's index.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecoveryIndex {
    /// Parameters.
    pub params: RecoveryParams,
    /// Checksums of the blocks of the image, then of those of recovery data.
    pub(super) checksums: Vec<Checksum>,
    /// Number of damaged pages of the index, and of all pages.
    pub damaged_pages: (u32, u32),
}

fn set(params: &RecoveryParams, checksums: &[Checksum]) -> [u8; 32] {
    let mut hasher = Sha256::new_with_prefix(page::figures(params));
    for checksum in checksums {
        hasher.update(checksum);
    }
    hasher.finalize().into()
}

pub(super) fn pages(params: RecoveryParams, checksums: &[Checksum]) -> Result<Vec<(u64, Vec<u8>)>> {
    let set = set(&params, checksums);
    let mut payloads: Vec<Vec<u8>> = checksums
        .chunks(PAYLOAD_LEN / CHECKSUM_LEN)
        .map(|checksums| {
            let mut payload = checksums.concat();
            payload.resize(PAYLOAD_LEN, 0);
            payload
        })
        .collect();
    let parity = code::encode_pieces(&payloads)?;
    payloads.extend(parity);
    let pages = payloads.into_iter().enumerate().map(|(number, payload)| {
        let page = Page { number: number as u32, params, set, payload };
        (params.page_at(page.number), page.encode())
    });
    Ok(pages.collect())
}

impl RecoveryIndex {
    /// Reads the index of a recovery file, of which up to half may be damaged.
    ///
    /// Errors: `Corrupt` if the file has no such index, or more of it is damaged; `Io`.
    pub fn read(file: &dyn Image) -> Result<Self> {
        let subject = || format!("recovery file {}", file.name());
        let Some(first) = first_page(file) else {
            return Err(Error::corrupt(subject(), "no page of an index found"));
        };
        let params = first.params;
        let count = 2 * params.page_count();
        let read = |number| {
            let at = params.page_at(number);
            page_at(file, at).filter(|page| page.params == params && page.set == first.set)
        };
        let payloads: Vec<Option<Vec<u8>>> =
            (0..count).map(|number| read(number).map(|page: Page| page.payload)).collect();
        let good = payloads.iter().flatten().count() as u32;
        let Some(whole) = code::decode_pieces(&payloads) else {
            let fault =
                format!("{} of {count} pages of its index are damaged, at most half can be", count - good);
            return Err(Error::corrupt(subject(), fault));
        };
        let checksums: Vec<Checksum> =
            whole.concat().as_chunks::<CHECKSUM_LEN>().0.iter().take(params.block_count()).copied().collect();
        if set(&params, &checksums) != first.set {
            return Err(Error::corrupt(subject(), "the pages of its index do not belong together"));
        }
        Ok(RecoveryIndex { params, checksums, damaged_pages: (count - good, count) })
    }

    pub(super) fn data_checksum(&self, block: u32) -> &Checksum {
        &self.checksums[block as usize]
    }

    pub(super) fn recovery_checksum(&self, block: u32) -> &Checksum {
        &self.checksums[self.params.data_count as usize + block as usize]
    }
}

/// An unreadable page counts as damaged.
fn page_at(file: &dyn Image, at: u64) -> Option<Page> {
    let mut bytes = vec![0; PAGE_LEN as usize];
    match file.read_at(at, &mut bytes) {
        Ok(len) if len == bytes.len() => Page::decode(&bytes, at),
        _ => None,
    }
}

fn first_page(file: &dyn Image) -> Option<Page> {
    (0..file.len() / PAGE_LEN).find_map(|number| page_at(file, number * PAGE_LEN))
}
