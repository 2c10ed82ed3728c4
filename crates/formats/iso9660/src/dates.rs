//! Times as ISO 9660 writes them: years, months and days, with a distance from Greenwich in
//! quarters of an hour.

use crate::disk::RecordTime;
use packfs_core::Timestamp;

/// Farthest from Greenwich that a time may be, in quarters of an hour (ECMA-119 8.4.26.1 allows -48
/// to +52). Linux takes what lies between these, and takes others for Greenwich; genisoimage writes
/// such for years after 2038.
const OFFSET_MAX: i8 = 52;
const SECONDS_A_DAY: i64 = 24 * 60 * 60;

/// A point in time, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: u8,
    pub(crate) day: u8,
    pub(crate) hour: u8,
    pub(crate) minute: u8,
    pub(crate) second: u8,
}

/// Narrows a number of two digits.
fn small(number: i64) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

impl Civil {
    /// In Greenwich, from seconds since 1970.
    pub(crate) fn of_seconds(seconds: i64) -> Self {
        let (days, rest) = (seconds.div_euclid(SECONDS_A_DAY), seconds.rem_euclid(SECONDS_A_DAY));
        // Years that begin in March end with their leap day; 400 of them have 146,097 days.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Civil {
            year,
            month: small(month),
            day: small(day),
            hour: small(rest / 3600),
            minute: small(rest / 60 % 60),
            second: small(rest % 60),
        }
    }

    /// Seconds since 1970, of a time in Greenwich. What is no month counts as the nearest.
    pub(crate) fn seconds(self) -> i64 {
        let month = i64::from(self.month.clamp(1, 12));
        let year = self.year - i64::from(month <= 2);
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let shifted_month = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era * 146_097 + day_of_era - 719_468;
        let of_day = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        days * SECONDS_A_DAY + of_day
    }
}

/// Returns true if an offset from Greenwich is valid.
pub(crate) fn is_offset(offset: i8) -> bool {
    (-48..=OFFSET_MAX).contains(&offset)
}

fn in_greenwich(civil: Civil, offset: i8) -> i64 {
    let offset = if (-OFFSET_MAX..=OFFSET_MAX).contains(&offset) { i64::from(offset) } else { 0 };
    civil.seconds() - offset * 15 * 60
}

/// The time of a directory record, or of the short form in an entry of Rock Ridge. All zeros stand
/// for the epoch.
pub(crate) fn of_record(time: RecordTime) -> Timestamp {
    let RecordTime { year, month, day, hour, minute, second, offset } = time;
    if (year, month, day) == (0, 0, 0) {
        return Timestamp::default();
    }
    let civil = Civil { year: 1900 + i64::from(year), month, day, hour, minute, second };
    Timestamp::from_seconds(in_greenwich(civil, offset))
}

/// The time of a volume descriptor, or of the long form in an entry of Rock Ridge: sixteen digits,
/// the last two of them hundredths of a second, and the offset (ECMA-119 8.4.26.1); `None` if it
/// says that there is none, or is none.
pub(crate) fn of_digits(time: &[u8; 17]) -> Option<Timestamp> {
    let (digits, offset) = time.split_at(16);
    let number = |range: std::ops::Range<usize>| {
        digits.get(range)?.iter().try_fold(0_i64, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
        })
    };
    let two = |range| number(range).map(small);
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
    fn days_are_counted_over_leap_years_and_centuries() {
        for (seconds, year, month, day) in [
            (0, 1970, 1, 1),
            (951_782_400, 2000, 2, 29),
            (951_868_800, 2000, 3, 1),
            (4_107_542_400, 2100, 3, 1),
            (-2_208_988_800, 1900, 1, 1),
            (5_869_583_999, 2155, 12, 31),
        ] {
            let civil = Civil::of_seconds(seconds);
            assert_eq!((civil.year, civil.month, civil.day), (year, month, day), "{seconds}");
            assert_eq!(civil.seconds(), seconds);
        }
        let odd = Civil { year: 1970, month: 1, day: 1, hour: 23, minute: 59, second: 58 };
        assert_eq!(Civil::of_seconds(86_398), odd);
    }

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
