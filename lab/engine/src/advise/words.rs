//! Words beside the figures: the tree, the method, and the command to run.

use super::answer::Extent;
use super::bench::Bench;
use super::row::Row;
use crate::process::quoted;

impl Bench<'_> {
    pub(super) fn looked(&self) -> Extent {
        let whole = self.samples.is_empty() && self.times <= 1.0;
        Extent {
            bytes: self.all.tree.bytes_total(),
            files: self.all.tree.file_count(),
            sampled: if self.samples.is_empty() {
                self.whole.tree.bytes_total()
            } else {
                self.samples.iter().map(|sample| sample.bytes).sum()
            },
            samples: self.samples.len().max(1),
            whole,
            seed: self.question.seed,
        }
    }

    pub(super) fn notes(&self, rows: &[Row], kernel_missing: Option<String>) -> Vec<String> {
        let mut notes = vec![format!(
            "Read times: which blocks Linux {} asks for and when, played through the model of {} ({}).",
            self.kernel, self.question.device_name, self.question.device.title
        )];
        let reason = match (&self.memory, kernel_missing) {
            (Some(_), Some(why)) => why,
            (Some(_), None) => "that is done for squashfs and erofs".to_string(),
            (None, _) if packfs::mount::is_root() => {
                "there is no room in memory for images that the kernel reads".to_string()
            }
            (None, _) => "only root can have the kernel read the samples".to_string(),
        };
        notes.push(decoding_words(rows, &reason));
        if self.times > 1.0 {
            notes.push(format!("The tree is long: 1 part in {:.1} of it was packed at all.", self.times));
        }
        if self.question.trace.is_some() && self.trace.is_none() {
            let want = self.question.want.name();
            notes.push(format!(
                "The trace was not used: what is wanted ({want}) reads files that it chooses itself."
            ));
        }
        if let Some(best) = rows.first().filter(|best| !best.losses.is_empty()) {
            let losses = best.losses.join("; ");
            notes.push(format!("Lost, as {} cannot hold it: {losses}.", best.candidate.layout.format));
        }
        let unreadable = &self.all.notes.unreadable;
        if let Some(first) = unreadable.first() {
            notes
                .push(format!("Left out, as it cannot be read: {} in all, first {first}.", unreadable.len()));
        }
        notes
    }

    pub(super) fn command(&self, best: &Row) -> String {
        let candidate = &best.candidate;
        let tree = &self.question.tree;
        let name = tree.canonicalize().ok().and_then(|path| path.file_name().map(|name| name.to_os_string()));
        let stem = name.map_or_else(|| "image".to_string(), |name| name.to_string_lossy().into_owned());
        let format = packfs::formats::by_name(candidate.layout.format);
        let extension = format.and_then(|format| format.info().extensions.first().copied()).unwrap_or("img");
        let mut words = vec!["packfs".to_string(), "pack".into(), tree.to_string_lossy().into_owned()];
        words.push(format!("{stem}.{extension}"));
        words.extend(candidate.options());
        if let Some(trace) = self.trace {
            words.extend(["--trace".to_string(), trace.to_string_lossy().into_owned()]);
        }
        if !self.all.notes.unreadable.is_empty() {
            words.push("--keep-going".into());
        }
        if !best.losses.is_empty() {
            words.push("--lossy".into());
        }
        if let Some(most) = self.question.max_size {
            words.extend(["--max-size".into(), most.to_string()]);
        }
        words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the origin of figures of decoding; `reason` is why some were not measured.
fn decoding_words(rows: &[Row], reason: &str) -> String {
    let guessed: Vec<String> =
        rows.iter().filter(|row| !row.kernel_measured).map(ToString::to_string).collect();
    match guessed.len() {
        0 => "Decoding was measured in this machine's kernel; a slower processor takes longer.".to_string(),
        all if all == rows.len() => format!("Decoding was told from packfs's own: {reason}."),
        _ => format!(
            "Decoding was measured in this machine's kernel; a slower processor takes longer. It was told from packfs's own \
             for {}: {reason}.",
            guessed.join("; ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::test_row;
    use super::*;

    #[test]
    fn only_missing_measurements_are_reported_as_missing() {
        let rows =
            [test_row("xz", 1, 1.0, 1.0), Row { kernel_measured: false, ..test_row("lz4", 1, 1.0, 1.0) }];
        assert!(!decoding_words(&rows[..1], "why").contains("packfs's own"));
        assert_eq!(decoding_words(&rows[1..], "why"), "Decoding was told from packfs's own: why.");
        let some = decoding_words(&rows, "why");
        assert!(some.starts_with("Decoding was measured") && !some.contains("xz"), "{some}");
        assert!(some.ends_with("for squashfs lz4 128K: why."), "{some}");
    }
}
