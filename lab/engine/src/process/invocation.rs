//! A command before it runs.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use packfs::{Result, ResultExt};

/// A program with its arguments, its directory and its input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// A file for its standard input; none for `/dev/null`.
    pub stdin: Option<PathBuf>,
    /// Variables that it gets besides ours.
    pub env: Vec<(OsString, OsString)>,
    /// The directory it runs in; none for ours.
    pub dir: Option<PathBuf>,
    /// Words that run it within a limit, see [`super::Confinement`]; empty without one.
    pub(super) prefix: Vec<OsString>,
}

impl Invocation {
    /// Calls a program without arguments.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self { words: vec![program.as_ref().to_owned()], ..Self::default() }
    }

    /// Calls the shell with a line: `sh -c`.
    pub fn shell(line: &str) -> Self {
        Self::new("sh").args(["-c", line])
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.words.push(word.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.words.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Has it read a file.
    #[must_use]
    pub fn stdin(mut self, file: &Path) -> Self {
        self.stdin = Some(file.to_owned());
        self
    }

    /// Has it run in a directory.
    #[must_use]
    pub fn dir(mut self, dir: &Path) -> Self {
        self.dir = Some(dir.to_owned());
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Returns the line to type: the program by its name alone, words quoted where a shell would
    /// split them.
    pub fn spelled(&self) -> String {
        let mut text: Vec<String> = self
            .env
            .iter()
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), quoted(value)))
            .collect();
        for (index, word) in self.words.iter().enumerate() {
            let name = Path::new(word).file_name().filter(|_| index == 0);
            text.push(quoted(name.unwrap_or(word)));
        }
        if let Some(file) = &self.stdin {
            text.push(format!("< {}", quoted(file.as_os_str())));
        }
        text.join(" ")
    }

    pub(crate) fn quoted(&self) -> String {
        self.words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn command(&self) -> Result<Command> {
        let mut words = self.prefix.iter().chain(&self.words);
        let (false, Some(program)) = (self.words.is_empty(), words.next()) else {
            return Err(packfs::Error::usage("there is no program to run"));
        };
        let mut command = Command::new(program);
        command.args(words);
        for (name, value) in &self.env {
            command.env(name, value);
        }
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        command.stdin(match &self.stdin {
            Some(path) => std::fs::File::open(path).or_io(|| format!("cannot open {path:?}"))?.into(),
            None => Stdio::null(),
        });
        Ok(command)
    }
}

/// A word in single quotes, unless a shell takes it as it is.
pub fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%^".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_spelled_as_one_types_it() {
        let command = Invocation::new("/opt/peers/tar2sqfs").args(["-c", "two words", "it's", ""]);
        let command = command.env("LC_ALL", "C").stdin(Path::new("/tmp/a.tar"));
        assert_eq!(command.spelled(), "LC_ALL=C tar2sqfs -c 'two words' 'it'\\''s' '' < /tmp/a.tar");
        assert_eq!(Invocation::new("ls").arg("/mnt/a").spelled(), "ls /mnt/a");
    }
}
