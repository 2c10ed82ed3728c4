//! Points in time as dates of the Gregorian calendar.
//!
//! Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".

const SECONDS_A_DAY: i64 = 24 * 60 * 60;
/// Days of the 400 years after which the calendar repeats.
const DAYS_OF_ERA: i64 = 146_097;
/// Days from March 1 of year 0 to 1970.
const DAYS_BEFORE_1970: i64 = 719_468;

/// Date and time of day, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Year, also before 0.
    pub year: i64,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, from 1.
    pub day: u8,
    /// Hour, from 0.
    pub hour: u8,
    /// Minute, from 0.
    pub minute: u8,
    /// Second, from 0.
    pub second: u8,
}

impl Civil {
    /// Converts seconds since 1970.
    pub fn of_seconds(seconds: i64) -> Self {
        let days = seconds.div_euclid(SECONDS_A_DAY);
        let rest = seconds.rem_euclid(SECONDS_A_DAY);
        // Years that begin in March end with their leap day.
        let shifted = days + DAYS_BEFORE_1970;
        let era = shifted.div_euclid(DAYS_OF_ERA);
        let day_of_era = shifted.rem_euclid(DAYS_OF_ERA);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        Civil {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month: month as u8,
            day: day as u8,
            hour: (rest / 3600) as u8,
            minute: (rest / 60 % 60) as u8,
            second: (rest % 60) as u8,
        }
    }

    /// Returns the seconds since 1970, saturated to 64 bits. An invalid month counts as the nearest
    /// valid one.
    pub fn seconds(self) -> i64 {
        let month = i64::from(self.month.clamp(1, 12));
        let year = self.year.saturating_sub(i64::from(month <= 2));
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let shifted_month = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era.saturating_mul(DAYS_OF_ERA).saturating_add(day_of_era - DAYS_BEFORE_1970);
        let of_day = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        days.saturating_mul(SECONDS_A_DAY).saturating_add(of_day)
    }
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
    fn the_longest_numbers_are_the_nearest_second() {
        let far = |year| Civil { year, ..Civil::of_seconds(0) }.seconds();
        assert_eq!((far(i64::MIN), far(i64::MAX)), (i64::MIN, i64::MAX));
        for seconds in [i64::MIN + 86_400, i64::MAX] {
            assert_eq!(Civil::of_seconds(seconds).seconds(), seconds);
        }
    }
}
