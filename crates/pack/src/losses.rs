//! Reports losses of a format, and stops at those that the caller did not accept.

use packfs_core::{Error, ImagePath, Loss, Progress, Result, escaped};

/// Errors: `Failed` for fatal losses, and without `lossy` for all others.
pub(crate) fn accept(format: &str, losses: &[Loss], lossy: bool, progress: &dyn Progress) -> Result<()> {
    let stops = |loss: &&Loss| loss.fatal || loss.refused && !lossy;
    for loss in losses.iter().filter(|loss| !stops(loss)) {
        progress.warn(&format!("lost: {}", described(loss)));
    }
    let refused: Vec<String> = losses.iter().filter(stops).map(described).collect();
    if refused.is_empty() {
        return Ok(());
    }
    let message = format!("cannot pack this source as {format} without loss: {}", refused.join("; "));
    let hint = if losses.iter().any(|loss| loss.fatal) {
        "exclude these files by --exclude, or use another format"
    } else {
        "--lossy accepts the loss"
    };
    Err(Error::failed(message).hint(hint))
}

fn described(loss: &Loss) -> String {
    let shown = std::iter::once(&loss.example).chain(&loss.more).map(quoted).collect::<Vec<_>>();
    let more = match loss.count.saturating_sub(shown.len() as u64) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{} ({}{more})", loss.what, shown.join(", "))
}

fn quoted(path: &ImagePath) -> String {
    let name = if path.is_root() { "/".into() } else { escaped(path.as_bytes()).to_string() };
    format!("\"{name}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Progress for Heard {
        fn warn(&self, message: &str) {
            self.0.lock().unwrap().push(message.into());
        }
    }

    fn loss(what: &str, count: u64, refused: bool, more: &[&str]) -> Loss {
        let path = |text: &str| ImagePath::parse(text.as_bytes()).unwrap();
        let mut loss = Loss::default();
        (loss.what, loss.count, loss.example, loss.refused) = (what.into(), count, path("a"), refused);
        loss.more = more.iter().map(|text| path(text)).collect();
        loss.fatal = !more.is_empty();
        loss
    }

    fn told(losses: &[Loss], lossy: bool) -> (Vec<String>, Option<String>) {
        let heard = Heard::default();
        let error = accept("cramfs", losses, lossy, &heard).err().map(|error| error.to_string());
        (heard.0.into_inner().unwrap(), error)
    }

    #[test]
    fn reports_every_kind_of_loss_once_with_its_count() {
        let losses = [loss("times", 3, false, &[]), loss("owners", 1, true, &[])];
        let (warned, error) = told(&losses, true);
        assert_eq!((warned.len(), error), (2, None));
        assert_eq!(warned[0], "lost: times (\"a\" and 2 more)");
        let (warned, error) = told(&losses, false);
        assert_eq!(warned.len(), 1, "also beside a refusal");
        assert!(error.unwrap().contains("owners (\"a\")"));
    }

    #[test]
    fn refuses_everything_at_once() {
        let losses =
            [loss("names", 2, true, &["b"]), loss("files", 5, true, &["c"]), loss("owners", 1, true, &[])];
        let error = told(&losses, false).1.unwrap();
        for words in ["names (\"a\", \"b\")", "files (\"a\", \"c\" and 3 more)", "owners"] {
            assert!(error.contains(words), "{words}: {error}");
        }
        let (warned, error) = told(&losses, true);
        assert_eq!(warned, ["lost: owners (\"a\")"]);
        assert!(!error.unwrap().contains("owners"));
    }
}
