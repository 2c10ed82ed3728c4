//! Sort files of gensquashfs: `PRIORITY [FLAGS] PATH`.

use super::words::quoted;
use crate::common::globs;
use packfs::source::Loaded;
use packfs::{Error, ImagePath, NodeKind, Result, ResultExt};
use packfs_terminal::report;
use std::collections::HashSet;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Path,
    /// `*` stops at slashes.
    Glob,
    /// `*` matches slashes.
    LooseGlob,
}

#[derive(Debug, PartialEq, Eq)]
struct Line {
    priority: i64,
    by: By,
    path: Vec<u8>,
}

/// The lowest priorities come first. The first line that matches a file counts.
pub fn order(file: &Path, loaded: &Loaded) -> Result<tempfile::NamedTempFile> {
    let text = std::fs::read(file).or_io(|| format!("cannot read {file:?}"))?;
    let (mut rows, mut seen): (Vec<u8>, HashSet<ImagePath>) = (Vec::new(), HashSet::new());
    for (index, text) in text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).enumerate() {
        if text.is_empty() || text.starts_with(b"#") {
            continue;
        }
        let place = || format!("{}: {}", file.display(), index + 1);
        let line = parsed(text).map_err(|error| error.at(place()))?;
        let (mut walk, mut is_met) = (loaded.tree.walk(), false);
        while let Some((path, id)) = walk.next() {
            let is_file = matches!(loaded.tree.node(id).kind, NodeKind::File { .. });
            if !is_file || !line.matches(path) || !seen.insert(path.clone()) {
                continue;
            }
            is_met = true;
            // Order files have the highest priority first.
            let priority = line.priority.saturating_neg().clamp(-32768, 32767);
            rows.extend([b"/", path.as_bytes(), format!(" {priority}\n").as_bytes()].concat());
        }
        if !is_met {
            let path = packfs::escaped(&line.path);
            report::note(format_args!("WARNING: {}: no match for '{path}'.", place()));
        }
    }
    let file = tempfile::NamedTempFile::new().or_io(|| "cannot create a temporary file")?;
    std::fs::write(file.path(), rows).or_io(|| "cannot write a temporary file")?;
    Ok(file)
}

/// Flags about placement are accepted, and have no effect.
fn parsed(text: &[u8]) -> Result<Line> {
    let wrong = |what: &str| Error::usage(format!("{what} in \"{}\"", packfs::escaped(text)));
    let blank = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let (priority, mut rest) = (&text[..blank], text[blank..].trim_ascii_start());
    let priority = std::str::from_utf8(priority).ok().and_then(|text| text.parse().ok());
    let priority = priority.ok_or_else(|| wrong("no priority"))?;
    let mut by = By::Path;
    if let Some(flags) = rest.strip_prefix(b"[") {
        let end = flags.iter().position(|&byte| byte == b']').ok_or_else(|| wrong("missing `]`"))?;
        for flag in flags[..end].split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            match flag {
                b"glob" => by = By::Glob,
                b"glob_no_path" => by = By::LooseGlob,
                b"dont_fragment" | b"dont_compress" | b"dont_deduplicate" | b"nosparse" | b"align" => {}
                other => return Err(wrong(&format!("unknown flag `{}`", packfs::escaped(other)))),
            }
        }
        rest = flags[end + 1..].trim_ascii_start();
    }
    let name = match rest.first() {
        None => return Err(wrong("no file name")),
        Some(b'"') => match quoted(&rest[1..]) {
            Some((name, [])) => name,
            _ => return Err(wrong("unmatched '\"'")),
        },
        Some(_) => rest.to_vec(),
    };
    Ok(Line { priority, by, path: ImagePath::parse(&name)?.as_bytes().to_vec() })
}

impl Line {
    fn matches(&self, path: &ImagePath) -> bool {
        match self.by {
            By::Path => path.as_bytes() == self.path,
            By::LooseGlob => globs::matches_plain(&self.path, path.as_bytes()),
            By::Glob => {
                let parts = self.path.split(|&byte| byte == b'/');
                let names = path.as_bytes().split(|&byte| byte == b'/');
                parts.clone().count() == names.clone().count()
                    && parts.zip(names).all(|(glob, name)| globs::matches_plain(glob, name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_flags_that_say_how_stars_match() {
        let matches = |line: &str, path: &str| {
            parsed(line.as_bytes()).unwrap().matches(&ImagePath::parse(path.as_bytes()).unwrap())
        };
        assert!(matches("-5 a/b", "a/b") && !matches("-5 a/b", "a/c"));
        assert!(matches("5 [glob] a/*", "a/b") && !matches("5 [glob] a/*", "a/b/c"));
        assert!(matches("5 [glob_no_path,nosparse] a/*", "a/b/c"));
        assert!(matches("5 [dont_compress] \"a b\"", "a b"));
    }

    #[test]
    fn flags_that_nothing_is_known_of_are_refused() {
        for wrong in ["a", "5", "5 [glob a", "5 [none] a", "5 [glob]"] {
            assert!(parsed(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
