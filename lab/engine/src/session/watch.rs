//! Observer of a session.

/// Told what happens; asked whether to stop.
pub trait Watch: Sync {
    /// A line about what was done, or is about to be.
    fn note(&self, line: &str);

    /// True if the session is to end as soon as it can. From then on failures are not the
    /// subjects'.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// `40 s`, `3 min`, `2 h 5 min`.
pub(super) fn spell_seconds(seconds: f64) -> String {
    let seconds = seconds.clamp(0.0, 1e9).round() as u64;
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_with_suitable_units() {
        assert_eq!([0.4, 99.0, 101.0, 7500.0].map(spell_seconds), ["0 s", "99 s", "2 min", "2 h 5 min"]);
    }
}
