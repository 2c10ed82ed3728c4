//! The volume recognition sequence, which names the standards of an image.

use crate::blocks::verified;
use crate::corruption::Place;
use crate::disk::*;
use packfs_core::{Image, Result, range_at};
use packfs_format::{structure, units::*};
use std::ops::Range;
use zerocopy::IntoBytes;

const SECTORS_MAX: usize = 64;
/// Sectors without an identifier that end the sequence: more than between descriptors of larger
/// blocks.
const GAP_MAX: u64 = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recognition {
    pub(crate) idents: Vec<[u8; 5]>,
    pub(crate) end: u64,
}

impl Recognition {
    pub(crate) fn read(image: &dyn Image) -> Result<Recognition> {
        let mut found = Recognition { idents: Vec::new(), end: RECOGNITION_AT };
        let sectors = (RECOGNITION_AT..).step_by(packfs_core::usize_of(RECOGNITION_SECTOR));
        for at in sectors.take(SECTORS_MAX) {
            let mut raw = [0; size_of::<VolStructDesc>()];
            let len = image.read_at(at, &mut raw)?;
            let descriptor = structure::<VolStructDesc>(&raw, 0).filter(|_| len == raw.len());
            let Some(descriptor) = descriptor else { break };
            if KNOWN.contains(&descriptor.std_ident) {
                found.idents.push(descriptor.std_ident);
                found.end = range_at(at, RECOGNITION_SECTOR).end;
            }
            let gap = left(at, found.end) / RECOGNITION_SECTOR;
            if found.idents.is_empty() || gap >= GAP_MAX {
                break;
            }
        }
        Ok(found)
    }

    pub(crate) fn has(&self, ident: [u8; 5]) -> bool {
        self.idents.contains(&ident)
    }

    /// The version of ECMA-167.
    pub(crate) fn standard(&self) -> Option<[u8; 5]> {
        [NSR03, NSR02].into_iter().find(|ident| self.has(*ident))
    }

    pub(crate) fn range(&self) -> Range<u64> {
        RECOGNITION_AT..self.end
    }
}

const KNOWN: [[u8; 5]; 7] = [BEA01, NSR02, NSR03, TEA01, CD001, BOOT2, CDW02];

/// True if an image contains UDF, with or without ISO 9660. If the descriptor of UDF is damaged,
/// other descriptors or an anchor decide, so that an image of both is not opened as ISO 9660.
pub(crate) fn is_udf(image: &dyn Image) -> Result<bool> {
    let found = Recognition::read(image)?;
    if [NSR02, NSR03, BEA01, TEA01].into_iter().any(|ident| found.has(ident)) {
        return Ok(true);
    }
    Ok(found.has(CD001) && has_anchor(image)?)
}

/// True if the first anchor exists.
fn has_anchor(image: &dyn Image) -> Result<bool> {
    let Some(at) = RECOGNITION_SECTOR.checked_mul(256) else { return Ok(false) };
    let mut bytes = [0; 512];
    let len = image.read_at(at, bytes.as_mut_bytes())?;
    let tag = verified(Place::at("anchor", at), &bytes);
    Ok(len == bytes.len()
        && tag.is_ok_and(|tag| tag.tag_ident.get() == AVDP && tag.tag_location.get() == 256))
}
