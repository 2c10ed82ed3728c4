//! What is said beside the figures: what was looked at, how, and the command to run.

use super::answer::Looked;
use super::bench::Bench;
use super::candidates::Candidate;

impl Bench<'_> {
    /// What was looked at.
    pub(super) fn looked(&self) -> Looked {
        let whole = self.samples.is_empty() && self.times <= 1.0;
        Looked {
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

    /// What is to be known of how the figures came about.
    pub(super) fn notes(&self, kernel_missing: Option<String>) -> Vec<String> {
        let mut notes = vec![format!(
            "Read times: which blocks Linux {} asks for and when, played through the model of {} ({}).",
            self.kernel, self.question.device_name, self.question.device.title
        )];
        notes.push(match (&self.memory, kernel_missing) {
            (Some(_), None) => {
                "Decoding was measured in this machine's kernel; a slower processor takes longer.".into()
            }
            (Some(_), Some(why)) => {
                format!("Not measured in this machine's kernel, told from packfs's own decoding: {why}.")
            }
            (None, _) if packfs::mount::is_root() => {
                "Decoding was told from packfs's own: there is no room in memory for images that the kernel reads."
                    .to_string()
            }
            (None, _) => {
                "Decoding was told from packfs's own: only root can have the kernel read the samples."
                    .to_string()
            }
        });
        if self.times > 1.0 {
            notes.push(format!("The tree is long: 1 part in {:.1} of it was packed at all.", self.times));
        }
        let unreadable = &self.all.notes.unreadable;
        if let Some(first) = unreadable.first() {
            notes
                .push(format!("Left out, as it cannot be read: {} in all, first {first}.", unreadable.len()));
        }
        notes
    }

    /// The command that makes the image.
    pub(super) fn command(&self, candidate: &Candidate) -> String {
        let tree = &self.question.tree;
        let name = tree.canonicalize().ok().and_then(|path| path.file_name().map(|name| name.to_os_string()));
        let stem = name.map_or_else(|| "image".to_string(), |name| name.to_string_lossy().into_owned());
        let format = packfs::formats::by_name(candidate.layout.format);
        let extension = format.and_then(|format| format.extensions().first().copied()).unwrap_or("img");
        let mut words = vec!["packfs".to_string(), "pack".into(), tree.to_string_lossy().into_owned()];
        words.push(format!("{stem}.{extension}"));
        words.extend(candidate.options());
        if let Some(trace) = &self.question.trace {
            words.extend(["--trace".to_string(), trace.to_string_lossy().into_owned()]);
        }
        if !self.all.notes.unreadable.is_empty() {
            words.push("--keep-going".into());
        }
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quoted("xz:9,extreme"), "xz:9,extreme");
        assert_eq!(quoted("my tree"), "'my tree'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
