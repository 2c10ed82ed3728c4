//! Candidates whose images may be too long.

use super::candidates::LeftOut;
use super::row::Row;
use packfs::{Error, Result};

/// Keeps the rows that are expected to fit in `most` bytes, or else those that may; returns the
/// others.
///
/// Errors: `TooLarge` if none may.
pub(super) fn keep_those_that_fit(most: u64, rows: &mut Vec<Row>) -> Result<Vec<LeftOut>> {
    let longest = |row: &Row| row.size.bytes as f64 * (1.0 + row.size.error);
    let shortest = |row: &Row| row.size.bytes as f64 * (1.0 - row.size.error);
    let smallest = rows.iter().min_by_key(|row| row.size.bytes);
    if let Some(smallest) = smallest.filter(|_| rows.iter().all(|row| shortest(row) > most as f64)) {
        let bytes = smallest.size.bytes;
        let found =
            format!("the smallest image, {smallest}, has about {bytes} bytes, at most {most} are allowed");
        return Err(Error::too_large(found).hint("raise --max-size, or leave files out of the tree"));
    }
    let any_is_sure = rows.iter().any(|row| longest(row) <= most as f64);
    let keeps = |row: &Row| if any_is_sure { longest(row) } else { shortest(row) } <= most as f64;
    let left_out = rows.iter().filter(|row| !keeps(row)).map(|row| LeftOut {
        candidate: row.to_string(),
        reason: format!("about {} bytes, at most {most} are allowed", row.size.bytes),
    });
    let left_out = left_out.collect();
    rows.retain(keeps);
    Ok(left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::row::test_row;

    #[test]
    fn what_is_sure_to_fit_goes_before_what_may() {
        let rows =
            || [("xz", 30), ("zstd:3", 40), ("lz4", 47)].map(|(codec, len)| test_row(codec, len, 1.0, 1.0));
        let kept = |most: u64, error: f64| {
            let mut rows = rows().to_vec();
            rows.iter_mut().for_each(|row| row.size.error = error);
            let left_out = keep_those_that_fit(most, &mut rows)?;
            assert_eq!(rows.len() + left_out.len(), 3);
            Ok(rows.len())
        };
        let count = |most, error| kept(most, error).map_err(|error: Error| error.to_string());
        assert_eq!(count(40, 0.0), Ok(2));
        assert_eq!(count(40, 0.05), Ok(1));
        assert_eq!(count(30, 0.05), Ok(1));
        assert!(count(20, 0.05).unwrap_err().contains("about 30 bytes, at most 20"));
    }
}
