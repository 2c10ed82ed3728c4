//! Several runs as one figure.

use serde::{Deserialize, Serialize};

/// A median and what lies around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The one in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Number of figures.
    pub count: u32,
}

impl Spread {
    /// Computes the spread of figures that are numbers; none of none.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().filter(|figure| figure.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Self { median, min, max, count: u32::try_from(sorted.len()).unwrap_or(u32::MAX) })
    }

    /// Makes the spread of one figure that was not measured but counted.
    pub fn exact(figure: f64) -> Self {
        Self { median: figure, min: figure, max: figure, count: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max, spread.count), (2.5, 1.0, 4.0, 4));
    }

    #[test]
    fn no_figure_has_no_spread() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([f64::NAN]), None);
    }
}
