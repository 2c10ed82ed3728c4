//! Times of ISO 9660: date and time of day, with an offset from GMT in quarters of an hour.

use crate::disk::RecordTime;
use packfs_core::{Civil, Timestamp};
use packfs_format::units::*;

/// Maximum offset from GMT in quarters of an hour (ECMA-119 8.4.26.1 permits -48 to +52). Linux
/// treats values out of range as GMT; genisoimage writes such for years after 2038.
const OFFSET_MAX: i8 = 52;
/// Seconds in a quarter of an hour.
const OFFSET_UNIT: i64 = 15 * 60;

pub(crate) fn is_offset(offset: i8) -> bool {
    (-48..=OFFSET_MAX).contains(&offset)
}

fn in_greenwich(civil: Civil, offset: i8) -> i64 {
    let offset = if (-OFFSET_MAX..=OFFSET_MAX).contains(&offset) { i64::from(offset) } else { 0 };
    civil.seconds().minus(offset.times(OFFSET_UNIT))
}

/// Converts the time of a directory record, or of the short form in an entry of Rock Ridge. All
/// zeros mean the epoch.
pub(crate) fn of_record(time: RecordTime) -> Timestamp {
    let RecordTime { year, month, day, hour, minute, second, offset } = time;
    if (year, month, day) == (0, 0, 0) {
        return Timestamp::default();
    }
    let civil = Civil { year: i64::from(year).plus(1900), month, day, hour, minute, second };
    Timestamp::from_seconds(in_greenwich(civil, offset))
}

/// Converts the time of a volume descriptor, or of the long form in an entry of Rock Ridge: sixteen
/// digits, the last two of them hundredths of a second, and the offset (ECMA-119 8.4.26.1); `None`
/// if it is unset or invalid.
pub(crate) fn of_digits(time: &[u8; 17]) -> Option<Timestamp> {
    let (digits, offset) = time.split_at(16);
    let number = |range: std::ops::Range<usize>| {
        digits.get(range)?.iter().try_fold(0_i64, |number, digit| {
            let digit = char::from(*digit).to_digit(10)?;
            Some(number.times(10).plus(digit.into()))
        })
    };
    let two = |range| u8::try_from(number(range)?).ok();
    let civil = Civil {
        year: number(0..4)?,
        month: two(4..6)?,
        day: two(6..8)?,
        hour: two(8..10)?,
        minute: two(10..12)?,
        second: two(12..14)?,
    };
    if civil.month == 0 || civil.day == 0 {
        return None;
    }
    let offset = offset.first().map_or(0, |offset| *offset as i8);
    Some(Timestamp { seconds: in_greenwich(civil, offset), nanos: u32::from(two(14..16)?) * 10_000_000 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_quarters_of_an_hour_and_strange_ones_count_for_nothing() {
        let time = |offset| {
            let time = RecordTime { year: 70, month: 1, day: 2, hour: 0, minute: 0, second: 0, offset };
            of_record(time).seconds
        };
        assert_eq!((time(0), time(4), time(-48), time(52)), (86_400, 82_800, 129_600, 39_600));
        assert_eq!((time(-96), time(53)), (86_400, 86_400));
    }

    #[test]
    fn digits_have_hundredths_and_zeros_are_no_time() {
        let read = |text: &[u8; 17]| of_digits(text).map(|time| time.to_string());
        assert_eq!(read(b"1970010200000050\0").unwrap(), "86400.5");
        assert_eq!(read(b"1970010200000000\x04").unwrap(), "82800");
        assert_eq!(read(b"0000000000000000\0"), None);
        assert_eq!(read(b"19700102 0000000\0"), None);
    }
}
