//! Header extensions: the format of the backing file, and names of features.

use crate::corruption::Corruption;
use crate::disk::*;
use packfs_core::{Image, Result, escaped, range_at, usize_of};
use packfs_format::{read_structure, structures, units::*};
use std::mem::size_of;

/// Limit of extensions: there are six kinds, each occurs once.
const EXTENSIONS_MAX: usize = 64;
const DATA_LEN_MAX: u32 = 4096;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extensions {
    pub(crate) backing_format: Option<String>,
    /// Bit and name of incompatible features.
    feature_names: Vec<(u8, String)>,
}

impl Extensions {
    /// Reads the extensions that follow the header.
    ///
    /// Errors: `Corrupt` if one does not end before `limit`, `Io`.
    pub(crate) fn read(image: &dyn Image, start: u64, limit: u64) -> Result<Extensions> {
        let limit = limit.min(image.len());
        let mut extensions = Extensions::default();
        let mut at = start;
        for _ in 0..EXTENSIONS_MAX {
            let data_at = at.plus(size_of::<Extension>() as u64);
            if data_at > limit {
                break;
            }
            let head: Extension = read_structure(image, at)?;
            let (kind, len) = (head.kind.get(), head.length.get());
            if kind == EXTENSION_END {
                break;
            }
            let data = range_at(data_at, len.into());
            if data.end > limit {
                return Err(Corruption::ExtensionEnd { at, len, limit }.into());
            }
            if matches!(kind, EXTENSION_BACKING_FORMAT | EXTENSION_FEATURE_NAMES) {
                let mut bytes = vec![0; usize_of(len.min(DATA_LEN_MAX).into())];
                image.read_exact_at(data_at, &mut bytes)?;
                extensions.take(kind, &bytes);
            }
            at = data.end.checked_next_multiple_of(8).unwrap_or(u64::MAX);
        }
        Ok(extensions)
    }

    fn take(&mut self, kind: u32, bytes: &[u8]) {
        if kind == EXTENSION_BACKING_FORMAT {
            self.backing_format = Some(escaped(bytes).to_string());
            return;
        }
        for row in structures::<FeatureName>(bytes).filter(|row| row.kind == 0) {
            self.feature_names.push((row.bit, escaped(until_nul(&row.name)).to_string()));
        }
    }

    pub(crate) fn feature_name(&self, bit: u8) -> String {
        match self.feature_names.iter().find(|(own, _)| *own == bit) {
            Some((_, name)) => format!("{name} (bit {bit})"),
            None => format!("bit {bit}"),
        }
    }
}
