//! Last cluster of a packed stream, decoded where the index cannot represent what follows it.

use packfs_codec::{Algorithm, BlockRef, DecodedLen, Decoders};
use packfs_core::{Error, Result};
use packfs_format::{Cluster, ClusterForm};

/// Most bytes of a cluster, stored and decoded: up to two blocks of a longer cluster are decoded.
const LEN_MAX: u64 = 4 << 20;

/// Errors: `Unsupported` for a longer cluster.
pub(crate) fn check_len(row: &Cluster) -> Result<()> {
    match u64::from(row.stored_len).max(row.len) {
        0..=LEN_MAX => Ok(()),
        len => {
            Err(Error::unsupported("merge", format!("a packed cluster of {len} bytes, at most {LEN_MAX}")))
        }
    }
}

/// Errors: `Corrupt` for bytes that do not decode to the cluster's length.
pub(crate) fn decode(row: &Cluster, algorithm: Algorithm, stored: &[u8]) -> Result<Vec<u8>> {
    check_len(row)?;
    let is_part = row.form == ClusterForm::CompressedPart;
    let block = |zero_padded: bool| BlockRef {
        offset: row.offset,
        stored_len: row.stored_len,
        decoded_len: row.len as u32,
        decodes_to: if is_part { DecodedLen::Prefix } else { DecodedLen::Exactly },
        zero_padded,
        algorithm: Some(algorithm),
    };
    let mut bytes = vec![0; row.len as usize];
    let mut decoders = Decoders::default();
    // Without padding, leading zeros are data.
    for zero_padded in [true, false] {
        let outcome = decoders.decompress_block(algorithm, &block(zero_padded), stored, &mut bytes);
        if outcome.is_ok_and(|len| len == bytes.len()) {
            return Ok(bytes);
        }
    }
    let fault = format!("the last cluster of the packed inode does not decode to {} bytes", row.len);
    Err(Error::corrupt("merged image", fault))
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_codec::{CodecSettings, Lz4Settings, encoder};
    use packfs_core::ErrorKind;

    #[test]
    fn a_cluster_is_decoded_whole_or_in_part_behind_zeros() {
        let text = b"a text that repeats, a text that repeats, a text that repeats".repeat(5);
        let mut stored = vec![0; 4096];
        let settings = CodecSettings::Lz4(Lz4Settings { acceleration: 1 });
        let len = encoder(&settings).unwrap().compress(&text, &mut stored).unwrap().unwrap();
        stored.truncate(len);
        let padded = [vec![0; 4096 - len], stored.clone()].concat();
        let form = ClusterForm::Compressed;
        let row = |len, stored_len, form| Cluster { offset: 0, len, stored_len, form, second: false };
        for stored in [&stored, &padded] {
            let whole = row(text.len() as u64, stored.len() as u32, form);
            assert_eq!(decode(&whole, Algorithm::Lz4, stored).unwrap(), text);
            let part = row(100, stored.len() as u32, ClusterForm::CompressedPart);
            assert_eq!(decode(&part, Algorithm::Lz4, stored).unwrap(), text[..100]);
            let error = decode(&row(1, stored.len() as u32, form), Algorithm::Lz4, stored).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        }
        assert_eq!(check_len(&row(5 << 20, 10, form)).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
