//! Figures as people read them: a unit, as many digits as mean something, and how far the runs lay
//! apart.

use crate::results::{Spread, Unit};

/// Digits of a measured figure.
const DIGITS: i32 = 3;

/// Digits of a length, which is counted and not measured: images that differ by a thousandth should
/// look different.
const LENGTH_DIGITS: i32 = 4;

/// Spelling of figures of a unit: divided by `scale`, with so many decimals, a comma between
/// thousands if need be.
struct Spelling {
    scale: f64,
    decimals: usize,
    commas: bool,
    suffix: &'static str,
}

impl Spelling {
    fn of(figure: f64, unit: Unit) -> Self {
        let (scale, suffix, digits, commas) = match unit {
            Unit::Text | Unit::Ratio => (1.0, "", DIGITS, false),
            Unit::Seconds => (1.0, " s", DIGITS, true),
            Unit::Percent => (0.01, " %", DIGITS, false),
            Unit::Iops => (1.0, " IOPS", DIGITS, true),
            Unit::Count => {
                let decimals = if figure.fract() == 0.0 { 0 } else { decimals(figure, DIGITS) };
                return Self { scale: 1.0, decimals, commas: true, suffix: "" };
            }
            Unit::Bytes => {
                let (scale, suffix) = binary(figure, [" B", " KiB", " MiB", " GiB", " TiB"]);
                (scale, suffix, LENGTH_DIGITS, true)
            }
            Unit::BytesPerSecond => {
                let (scale, suffix) = binary(figure, [" B/s", " KiB/s", " MiB/s", " GiB/s", " TiB/s"]);
                (scale, suffix, DIGITS, true)
            }
        };
        let whole_bytes = unit == Unit::Bytes && scale == 1.0 && figure.fract() == 0.0;
        let decimals = if whole_bytes { 0 } else { decimals(figure / scale, digits) };
        Self { scale, decimals, commas, suffix }
    }

    fn number(&self, figure: f64) -> String {
        let text = format!("{:.*}", self.decimals, figure / self.scale);
        if self.commas { with_commas(&text) } else { text }
    }
}

/// The largest unit that leaves at least one.
fn binary(figure: f64, suffixes: [&'static str; 5]) -> (f64, &'static str) {
    let mut scale = 1.0;
    let mut suffix = suffixes[0];
    for next in &suffixes[1..] {
        // What would be printed as 1024 of the smaller unit is one of the larger.
        if figure.abs() / scale < 1023.95 {
            break;
        }
        (scale, suffix) = (scale * 1024.0, *next);
    }
    (scale, suffix)
}

/// Returns the decimals that leave so many digits in all, without cutting the whole number.
fn decimals(figure: f64, digits: i32) -> usize {
    if figure == 0.0 || !figure.is_finite() {
        return 0;
    }
    // Rounding may add a digit in front: 9.999 is 10.0.
    let rounded = format!("{:.*e}", usize::try_from(digits - 1).unwrap_or(0), figure);
    let exponent: i32 = rounded.rsplit('e').next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
    usize::try_from((digits - 1 - exponent).clamp(0, 9)).unwrap_or(0)
}

fn with_commas(number: &str) -> String {
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let (sign, digits) = whole.split_at(whole.len() - whole.trim_start_matches('-').len());
    let mut text = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

/// One figure: `57.06 MiB`, `0.848 s`, `1.23`. What is no number is said to be none.
pub fn figure(figure: f64, unit: Unit) -> String {
    if !figure.is_finite() {
        return "no number".into();
    }
    let spelling = Spelling::of(figure, unit);
    format!("{}{}", spelling.number(figure), spelling.suffix)
}

/// A median with the smallest and the largest: `0.848 s (0.831 to 0.871)`; without them where all
/// are one.
pub fn spread(spread: &Spread, unit: Unit) -> String {
    let median = figure(spread.median, unit);
    if spread.count < 2 || spread.min == spread.max || !(spread.min.is_finite() && spread.max.is_finite()) {
        return median;
    }
    let spelling = Spelling::of(spread.median, unit);
    format!("{median} ({} to {})", spelling.number(spread.min), spelling.number(spread.max))
}

/// A number of things with commas: `1,234`.
pub fn count(number: u64) -> String {
    with_commas(&number.to_string())
}

/// `1 run`, `5 runs`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A length: `57.06 MiB`.
#[expect(clippy::cast_precision_loss, reason = "four digits are shown")]
pub fn length(bytes: u64) -> String {
    figure(bytes as f64, Unit::Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_lengths_four() {
        for (value, unit, shown) in [
            (0.065_812, Unit::Seconds, "0.0658 s"),
            (9.999, Unit::Seconds, "10.0 s"),
            (20.668, Unit::Seconds, "20.7 s"),
            (1648.54, Unit::Seconds, "1,649 s"),
            (0.0, Unit::Seconds, "0 s"),
            (59_834_368.0, Unit::Bytes, "57.06 MiB"),
            (1_048_575.0, Unit::Bytes, "1.000 MiB"),
            (1023.0, Unit::Bytes, "1,023 B"),
            (131_072.0, Unit::BytesPerSecond, "128 KiB/s"),
            (36_490_000.0, Unit::BytesPerSecond, "34.8 MiB/s"),
            (2987.4, Unit::Iops, "2,987 IOPS"),
            (1.5, Unit::Ratio, "1.50"),
            (0.073, Unit::Percent, "7.30 %"),
            (7012.0, Unit::Count, "7,012"),
            (f64::NAN, Unit::Seconds, "no number"),
        ] {
            assert_eq!(figure(value, unit), shown, "{value}");
        }
    }

    #[test]
    fn a_spread_is_spelled_like_its_median() {
        let of = |figures: &[f64], unit| spread(&Spread::of(figures.iter().copied()).unwrap(), unit);
        assert_eq!(of(&[0.871, 0.848, 0.8312], Unit::Seconds), "0.848 s (0.831 to 0.871)");
        assert_eq!(of(&[9.5, 10.0, 11.25], Unit::Seconds), "10.0 s (9.5 to 11.2)");
        assert_eq!(of(&[2.0, 2.0], Unit::Seconds), "2.00 s");
        assert_eq!(spread(&Spread::exact(1536.0), Unit::Bytes), "1.500 KiB");
    }

    #[test]
    fn commas_stand_between_thousands_only() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000_000), "1,000,000");
        assert_eq!(with_commas("-1234.5678"), "-1,234.5678");
    }
}
