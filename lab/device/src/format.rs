//! Devices as TOML: every figure has its unit in its name, is checked, and unknown keys are
//! refused.

use crate::spec::{DeviceSpec, Order};
use packfs_core::{Error, Result};

/// Longest description that is read.
pub(crate) const LEN_MAX: u64 = 64 << 10;

impl DeviceSpec {
    /// Reads a description; `place` is its name in errors.
    ///
    /// Errors: `Usage` with the line and the figure.
    pub fn parse(text: &str, place: &str) -> Result<DeviceSpec> {
        let spec: DeviceSpec = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let figure = figure_at(text, at).map_or_else(String::new, |figure| format!("{figure}: "));
            let line = 1 + text[..at].matches('\n').count();
            Error::usage(format!("device {place}: line {line}: {figure}{}", error.message().trim()))
                .hint("docs/guide/lab-devices.md describes the format")
        })?;
        match spec.contradiction() {
            Some(why) => Err(Error::usage(format!("device {place}: {why}"))),
            None => Ok(spec),
        }
    }

    /// Returns the first contradiction between figures.
    fn contradiction(&self) -> Option<String> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let (queue, write) = (&self.queue, self.write.as_ref());
        if !(1..=32).contains(&self.name.len()) || !self.name.bytes().all(is_name) {
            return Some(format!(
                "name = {:?}: 1 to 32 letters, digits, '-', '_' and '.' are allowed",
                self.name
            ));
        }
        if queue.channels > queue.depth {
            let (channels, depth) = (queue.channels, queue.depth);
            return Some(format!(
                "[queue] channels = {channels}: no more than depth = {depth} can be worked at"
            ));
        }
        let unfit = [
            (
                queue.order == Order::Nearest && (self.seek.is_none() || queue.channels != 1),
                "[queue] order = \"nearest\": only a device with [seek] and channels = 1 has a nearest request",
            ),
            (
                self.read.buffer > 0 && self.seek.is_none(),
                "[read] buffer_kib: only a device with [seek] reads ahead by itself",
            ),
            (self.read.cache + self.read.flush + self.read.discard > 0, "[read]: its figures are of writing"),
            (write.is_some_and(|write| write.buffer > 0), "[write] buffer_kib: it is a figure of reading"),
            (
                self.seek.as_ref().is_some_and(|seek| {
                    // The curve's slope is positive at its beginning and at its end, or further
                    // would be sooner somewhere.
                    let (root, line) = seek.curve();
                    root < 0.0 || root / 2.0 + line < 0.0
                }),
                "[seek]: no curve that rises goes through its three times: the average lies between a third and about \
                 three quarters of the way from track to track to full stroke",
            ),
        ];
        unfit.into_iter().find_map(|(is_unfit, why)| is_unfit.then(|| why.to_owned()))
    }
}

/// Returns the line at a place of a description, if it is a figure, with its table.
fn figure_at(text: &str, at: usize) -> Option<String> {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().filter(|line| line.contains('='))?.trim();
    let table = text[..start].lines().rev().map(str::trim).find(|line| line.starts_with('['));
    Some(table.map_or_else(|| line.to_owned(), |table| format!("{table} {line}")))
}
