//! Pseudo definitions of mksquashfs, as entries of a manifest.

use super::options::xattr;
use crate::common::users::Ids;
use crate::common::when;
use packfs::{Error, ImagePath, Meta, Owner, Result, ResultExt, Timestamp, Tree, Xattrs};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// One more line follows before the data.
const START_OF_DATA: &[u8] = b"# START OF DATA - DO NOT MODIFY";

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Dir,
    Modify,
    Device {
        letter: char,
        major: u32,
        minor: u32,
    },
    Fifo,
    Socket,
    Symlink(Vec<u8>),
    Command(Vec<u8>),
    Data {
        len: u64,
        offset: u64,
    },
    /// Takes the metadata of a file of this machine, too.
    Host(PathBuf),
    Link(ImagePath),
}

/// An unset time is that of packing, or unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Given {
    mode: u16,
    owner: Owner,
    mtime: Option<i64>,
}

#[derive(Clone, Debug, Default)]
struct Definition {
    made: Option<(What, Given, Option<PathBuf>)>,
    xattrs: Xattrs,
}

pub struct Pseudo<'a> {
    users: &'a Ids,
    groups: &'a Ids,
    rows: BTreeMap<ImagePath, Definition>,
    /// Default of directories above definitions.
    above: Option<Given>,
    /// Needed until the image is packed.
    folder: TempDir,
    files: u32,
    pub ignored: Vec<String>,
}

pub struct Defaults<'a> {
    pub now: i64,
    /// Applies forced changes; the flag is true for a directory.
    pub meta: &'a dyn Fn(Meta, bool) -> Meta,
    /// Attributes of every entry; the flag is true for one that may have user attributes.
    pub xattrs: &'a dyn Fn(bool) -> Xattrs,
}

struct Words<'t> {
    whole: &'t [u8],
    rest: &'t [u8],
}

impl<'t> Words<'t> {
    fn wrong(&self, what: &str) -> Error {
        Error::usage(format!("{what} in pseudo file definition \"{}\"", packfs::escaped(self.whole)))
    }

    /// Blanks are quoted or follow a backslash.
    fn quoted(&mut self) -> Vec<u8> {
        let (mut word, mut is_quoted, mut at) = (Vec::new(), false, 0);
        while let Some(&byte) = self.rest.get(at) {
            match byte {
                b'"' => is_quoted = !is_quoted,
                b'\\' => {
                    at += 1;
                    word.extend(self.rest.get(at));
                }
                byte if byte.is_ascii_whitespace() && !is_quoted => break,
                byte => word.push(byte),
            }
            at += 1;
        }
        self.rest = self.rest[at.min(self.rest.len())..].trim_ascii_start();
        word
    }

    fn word(&mut self, what: &str) -> Result<&'t str> {
        let len = self.rest.iter().position(u8::is_ascii_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest.trim_ascii_start();
        let word = std::str::from_utf8(word).ok().filter(|word| !word.is_empty());
        word.ok_or_else(|| self.wrong(&format!("Failed to read {what}")))
    }

    fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T> {
        let parsed = self.word(what)?.parse();
        parsed.map_err(|_| self.wrong(&format!("Failed to read {what}")))
    }

    fn all(&mut self, what: &str) -> Result<Vec<u8>> {
        let all = std::mem::take(&mut self.rest).to_vec();
        if all.is_empty() { Err(self.wrong(&format!("Expected {what}"))) } else { Ok(all) }
    }
}

impl<'a> Pseudo<'a> {
    pub fn new(users: &'a Ids, groups: &'a Ids) -> Result<Self> {
        let folder = tempfile::tempdir().or_io(|| "cannot create a temporary directory")?;
        let rows = BTreeMap::new();
        Ok(Pseudo { users, groups, rows, above: None, folder, files: 0, ignored: Vec::new() })
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// True if a definition, or the default of directories, describes the root.
    pub fn makes_root(&self) -> bool {
        let row = self.rows.get(&ImagePath::root()).and_then(|row| row.made.as_ref());
        self.above.is_some() || row.is_some_and(|(what, ..)| *what == What::Dir)
    }

    pub fn newest(&self) -> Option<i64> {
        self.rows.values().filter_map(|row| row.made.as_ref()?.1.mtime).max()
    }

    pub fn drop_xattrs(&mut self) {
        self.rows.retain(|_, row| {
            row.xattrs.clear();
            row.made.is_some()
        });
    }

    pub fn set_above(&mut self, text: &[u8]) -> Result<()> {
        let mut words = Words { whole: text, rest: text.trim_ascii_start() };
        let letter = words.word("type")?;
        if letter != "d" && letter != "D" {
            return Err(words.wrong("Invalid type"));
        }
        self.above = Some(self.given(&mut words, letter == "D")?);
        if words.rest.is_empty() { Ok(()) } else { Err(words.wrong("Unexpected trailing characters")) }
    }

    pub fn add(&mut self, text: &[u8]) -> Result<()> {
        self.define(text, None).map(|_| ())
    }

    /// `-` is standard input.
    pub fn add_file(&mut self, path: &Path) -> Result<()> {
        let cannot = || format!("cannot open pseudo file {path:?}");
        if path == Path::new("-") {
            let spool = self.new_file();
            let mut stdin = std::io::stdin().lock();
            let data = self.read(&mut stdin, &spool)?;
            if data {
                let mut file = File::create(&spool).or_io(|| "cannot create a temporary file")?;
                std::io::copy(&mut stdin, &mut file).or_io(|| "cannot read standard input")?;
            }
            return Ok(());
        }
        let mut reader = BufReader::new(File::open(path).or_io(cannot)?);
        let data = self.new_file();
        if self.read(&mut reader, &data)? {
            let start = reader.stream_position().or_io(cannot)?;
            self.shift_data(&data, path, start);
        }
        Ok(())
    }

    /// Redirects definitions from `from` to `path`, whose data begins at `start`.
    fn shift_data(&mut self, from: &Path, path: &Path, start: u64) {
        for row in self.rows.values_mut() {
            if let Some((What::Data { offset, .. }, _, Some(file))) = &mut row.made
                && file == from
            {
                *offset = offset.saturating_add(start);
                *file = path.to_owned();
            }
        }
    }

    fn new_file(&mut self) -> PathBuf {
        self.files += 1;
        self.folder.path().join(self.files.to_string())
    }

    /// Returns true if data follows, at `data`.
    fn read(&mut self, text: &mut dyn BufRead, data: &Path) -> Result<bool> {
        let mut line = Vec::new();
        loop {
            let before = line.len();
            if text.read_until(b'\n', &mut line).or_io(|| "cannot read pseudo file")? == 0 && before == 0 {
                return Ok(false);
            }
            let had_end = line.pop_if(|byte| *byte == b'\n').is_some();
            if had_end && line.ends_with(b"\\") && !line.ends_with(b"\\\\") {
                if is_within_name(&line) {
                    line.push(b'\n');
                } else {
                    line.pop();
                }
                continue;
            }
            let definition = line.trim_ascii_start();
            if definition == START_OF_DATA {
                let mut end = Vec::new();
                text.read_until(b'\n', &mut end).or_io(|| "cannot read pseudo file")?;
                return Ok(true);
            }
            if !definition.is_empty() && !definition.starts_with(b"#") {
                self.define(definition, Some(data))?;
            }
            line.clear();
        }
    }

    fn given(&self, words: &mut Words<'_>, has_time: bool) -> Result<Given> {
        let mtime = if has_time {
            let text = String::from_utf8_lossy(&words.quoted()).into_owned();
            Some(when::seconds("time", &text).map_err(|_| words.wrong("Invalid time"))?)
        } else {
            None
        };
        let mode = u16::from_str_radix(words.word("octal mode")?, 8).ok().filter(|mode| *mode <= 0o7777);
        let mode = mode.ok_or_else(|| words.wrong("Mode out of range"))?;
        let uid = self.users.id(words.word("uid or user name")?)?;
        let gid = self.groups.id(words.word("gid or group name")?)?;
        Ok(Given { mode, owner: Owner { uid, gid }, mtime })
    }

    fn define(&mut self, text: &[u8], data: Option<&Path>) -> Result<()> {
        let mut words = Words { whole: text, rest: text.trim_ascii_start() };
        let path = ImagePath::parse(&words.quoted())?;
        let letter = words.word("type")?;
        let letter = letter.chars().next().filter(|_| letter.len() == 1);
        let letter = letter.ok_or_else(|| words.wrong("Invalid type"))?;
        if letter == 'x' {
            let (name, value) = xattr(words.rest)?;
            self.rows.entry(path).or_default().xattrs.insert(name, value);
            return Ok(());
        }
        let made = self.what(&mut words, letter, data.is_some())?;
        if !words.rest.is_empty() {
            return Err(words.wrong("Unexpected trailing characters"));
        }
        let row = self.rows.entry(path.clone()).or_default();
        match &row.made {
            Some(_) => self
                .ignored
                .push(format!("{path} already exists as a different pseudo definition.  Ignoring!")),
            None => row.made = Some((made.0, made.1, data.map(Path::to_path_buf))),
        }
        Ok(())
    }

    fn what(&self, words: &mut Words<'_>, letter: char, is_in_file: bool) -> Result<(What, Given)> {
        match letter {
            'l' | 'h' => {
                let path = PathBuf::from(std::ffi::OsString::from_vec(words.all("a file name")?));
                let path = if letter == 'h' { path.canonicalize().unwrap_or(path) } else { path };
                let found =
                    path.symlink_metadata().map_err(|_| words.wrong(&format!("Cannot stat {path:?}")))?;
                if found.is_dir() {
                    return Err(words.wrong(&format!("Cannot link to the directory {path:?}")));
                }
                return Ok((What::Host(path), Given::default()));
            }
            'L' => {
                let target = words.quoted();
                return Ok((What::Link(ImagePath::parse(&target)?), Given::default()));
            }
            _ => {}
        }
        let given = self.given(words, letter.is_ascii_uppercase())?;
        let what = match letter.to_ascii_lowercase() {
            'd' => What::Dir,
            'm' => What::Modify,
            letter @ ('b' | 'c') => {
                let (major, minor) = (words.number("major number")?, words.number("minor number")?);
                if major > 0xfff || minor > 0xf_ffff {
                    return Err(words.wrong("Device number out of range"));
                }
                What::Device { letter, major, minor }
            }
            'i' if words.word("ipc_type")? == "s" => What::Socket,
            'i' => What::Fifo,
            's' => What::Symlink(words.all("symlink")?),
            'f' => {
                What::Command(words.all("command, which can be an executable or a piece of shell script")?)
            }
            'r' if letter == 'R' && is_in_file => {
                let (len, offset) = (words.number("length")?, words.number("offset")?);
                let _sparse: u8 = words.number("sparse")?;
                What::Data { len, offset }
            }
            _ => return Err(words.wrong(&format!("Unsupported type {letter}"))),
        };
        Ok((what, given))
    }

    /// Errors: `Usage` for a definition whose directory does not exist; `Failed` and `Io` for
    /// commands and files.
    pub fn manifest(
        &mut self,
        tree: &Tree,
        is_source: bool,
        defaults: &Defaults<'_>,
    ) -> Result<Vec<Vec<u8>>> {
        let rows = std::mem::take(&mut self.rows);
        let mut lines = Vec::new();
        for (path, row) in &rows {
            let found = tree.find(path);
            if !path.is_root() {
                self.add_above(path, tree, &rows, defaults, &mut lines)?;
            }
            let is_root_of_nothing = path.is_root() && !is_source;
            let Some((what, given, data)) = &row.made else {
                if found.is_some() || path.is_root() {
                    lines.extend((!row.xattrs.is_empty()).then(|| modify(path, None, &row.xattrs)));
                } else {
                    lines.push(self.dir_above(path, defaults, &row.xattrs)?);
                }
                continue;
            };
            match (what, found) {
                (What::Modify, None) if !row.xattrs.is_empty() => {
                    let fault = format!("\"{path}\" does not exist, so it gets no pseudo attribute");
                    return Err(Error::usage(fault));
                }
                (What::Modify, None) => {
                    self.ignored.push(format!(
                        "Pseudo modify file \"{path}\" does not exist in source filesystem.  Ignoring."
                    ));
                    continue;
                }
                (What::Modify, Some(id)) => {
                    let node = tree.node(id);
                    let mtime = given.mtime.map_or(node.meta.mtime, Timestamp::from_seconds);
                    let meta = Meta { mode: given.mode, owner: given.owner, mtime };
                    let meta = (defaults.meta)(meta, node.is_dir());
                    lines.push(modify(path, Some(meta), &row.xattrs));
                    continue;
                }
                (_, Some(_)) if !is_root_of_nothing => {
                    self.ignored.push(format!(
                        "Pseudo file \"{path}\" exists in source filesystem \"/{path}\".\nIgnoring, exclude it \
                         (-e/-ef) to override."
                    ));
                    lines.extend((!row.xattrs.is_empty()).then(|| modify(path, None, &row.xattrs)));
                    continue;
                }
                _ => {}
            }
            let mut line = self.entry(path, what, *given, data.as_deref(), defaults)?;
            let takes_user = matches!(what, What::Dir | What::Command(_) | What::Data { .. });
            let is_link = matches!(what, What::Link(_));
            let mut xattrs = if is_link { Xattrs::new() } else { (defaults.xattrs)(takes_user) };
            xattrs.extend(row.xattrs.clone());
            add_xattrs(&mut line, &xattrs);
            lines.push(line);
        }
        Ok(lines)
    }

    fn add_above(
        &self,
        path: &ImagePath,
        tree: &Tree,
        rows: &BTreeMap<ImagePath, Definition>,
        defaults: &Defaults<'_>,
        lines: &mut Vec<Vec<u8>>,
    ) -> Result<()> {
        let (mut parent, depth) = (ImagePath::root(), path.names().count());
        for name in path.names().take(depth.saturating_sub(1)) {
            parent.push(name);
            if tree.find(&parent).is_some() {
                continue;
            }
            match rows.get(&parent).map(|row| &row.made) {
                Some(Some((What::Modify, ..))) => {
                    let fault = format!("Pseudo modify pathname \"{parent}\" does not exist in filesystem");
                    return Err(Error::usage(fault).hint("define the directory"));
                }
                Some(_) => continue,
                None => {}
            }
            let line = self.dir_above(&parent, defaults, &Xattrs::new())?;
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        Ok(())
    }

    /// A directory that is needed but not defined gets the metadata of `-pd`.
    ///
    /// Errors: `Usage` without `-pd`.
    fn dir_above(&self, path: &ImagePath, defaults: &Defaults<'_>, xattrs: &Xattrs) -> Result<Vec<u8>> {
        let Some(above) = self.above else {
            let fault = format!("Pathname \"{path}\" does not exist in filesystem");
            return Err(Error::usage(fault).hint("define the directory, or use -pd"));
        };
        let mut line = line("dir", path, meta_of(above, defaults, true));
        let mut all = (defaults.xattrs)(true);
        all.extend(xattrs.clone());
        add_xattrs(&mut line, &all);
        Ok(line)
    }

    fn entry(
        &mut self,
        path: &ImagePath,
        what: &What,
        given: Given,
        data: Option<&Path>,
        defaults: &Defaults<'_>,
    ) -> Result<Vec<u8>> {
        let mode = if matches!(what, What::Symlink(_)) { 0o777 } else { given.mode };
        let meta = meta_of(Given { mode, ..given }, defaults, *what == What::Dir);
        Ok(match what {
            What::Dir | What::Modify => line("dir", path, meta),
            What::Device { letter, major, minor } => {
                let mut line = line(if *letter == 'b' { "block" } else { "char" }, path, meta);
                line.extend(format!(" major={major} minor={minor}").bytes());
                line
            }
            What::Fifo => line("fifo", path, meta),
            What::Socket => line("socket", path, meta),
            What::Symlink(target) => keyed(line("symlink", path, meta), "target", target),
            What::Command(command) => {
                let file = self.run(command)?;
                keyed(line("file", path, meta), "from", file.as_os_str().as_bytes())
            }
            What::Data { len: 0, .. } => line("file", path, meta),
            What::Data { len, offset } => {
                let data = data.unwrap_or(Path::new(""));
                let data = std::path::absolute(data).or_io(|| format!("cannot find {data:?}"))?;
                let mut line = keyed(line("file", path, meta), "from", data.as_os_str().as_bytes());
                line.extend(format!(" offset={offset} size={len}").bytes());
                line
            }
            What::Host(host) => host_entry(path, host, defaults)?,
            What::Link(target) => {
                let mut line = b"link ".to_vec();
                line.extend(quoted(path.as_bytes()));
                keyed(line, "target", target.as_bytes())
            }
        })
    }

    /// Returns the file with its output.
    fn run(&mut self, command: &[u8]) -> Result<PathBuf> {
        let path = self.new_file();
        let shown = packfs::escaped(command).to_string();
        let file = File::create(&path).or_io(|| format!("cannot create {path:?}"))?;
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(std::ffi::OsStr::from_bytes(command)).stdin(Stdio::null()).stdout(file);
        let status = shell.status().or_io(|| format!("cannot run {shown}"))?;
        if !status.success() {
            return Err(Error::failed(format!("process \"{shown}\" failed: {status}")));
        }
        Ok(path)
    }
}

/// True for a prefix that ends within its first word: unsquashfs writes a line feed in a name after
/// a backslash.
fn is_within_name(line: &[u8]) -> bool {
    let mut words = Words { whole: line, rest: line.trim_ascii_start() };
    !words.quoted().is_empty() && words.rest.is_empty() && !line.ends_with(b" \\")
}

fn meta_of(given: Given, defaults: &Defaults<'_>, is_dir: bool) -> Meta {
    let mtime = Timestamp::from_seconds(given.mtime.unwrap_or(defaults.now));
    (defaults.meta)(Meta { mode: given.mode, owner: given.owner, mtime }, is_dir)
}

pub fn host_entry(path: &ImagePath, host: &Path, defaults: &Defaults<'_>) -> Result<Vec<u8>> {
    let found = host.symlink_metadata().or_io(|| format!("cannot read {host:?}"))?;
    let (file_type, rdev) = (found.file_type(), found.rdev());
    let meta = Meta {
        mode: (found.mode() & 0o7777) as u16,
        owner: Owner { uid: found.uid(), gid: found.gid() },
        mtime: Timestamp::from_seconds(found.mtime()),
    };
    let meta = (defaults.meta)(meta, file_type.is_dir());
    Ok(if file_type.is_dir() {
        line("dir", path, meta)
    } else if file_type.is_symlink() {
        let target = std::fs::read_link(host).or_io(|| format!("cannot read {host:?}"))?;
        keyed(line("symlink", path, meta), "target", target.as_os_str().as_bytes())
    } else if file_type.is_file() {
        let host = std::path::absolute(host).or_io(|| format!("cannot find {host:?}"))?;
        keyed(line("file", path, meta), "from", host.as_os_str().as_bytes())
    } else if file_type.is_fifo() {
        line("fifo", path, meta)
    } else if file_type.is_socket() {
        line("socket", path, meta)
    } else {
        let mut line = line(if file_type.is_block_device() { "block" } else { "char" }, path, meta);
        let (major, minor) = (rustix::fs::major(rdev), rustix::fs::minor(rdev));
        line.extend(format!(" major={major} minor={minor}").bytes());
        line
    })
}

/// The word may contain any bytes.
pub fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut word = vec![b'"'];
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => word.extend([b'\\', byte]),
            byte if byte.is_ascii_graphic() || byte == b' ' => word.push(byte),
            byte => word.extend(format!("\\x{byte:02x}").bytes()),
        }
    }
    word.push(b'"');
    word
}

pub fn keyed(mut line: Vec<u8>, key: &str, value: &[u8]) -> Vec<u8> {
    line.push(b' ');
    line.extend(key.bytes());
    line.push(b'=');
    line.extend(quoted(value));
    line
}

pub fn line(word: &str, path: &ImagePath, meta: Meta) -> Vec<u8> {
    let mut line = word.as_bytes().to_vec();
    line.push(b' ');
    line.extend(if path.is_root() { b"/".to_vec() } else { quoted(path.as_bytes()) });
    let Owner { uid, gid } = meta.owner;
    line.extend(format!(" mode={:04o} uid={uid} gid={gid} mtime={}", meta.mode, meta.mtime).bytes());
    line
}

fn modify(path: &ImagePath, meta: Option<Meta>, xattrs: &Xattrs) -> Vec<u8> {
    let mut text = match meta {
        Some(meta) => line("modify", path, meta),
        None => [&b"modify "[..], &quoted(path.as_bytes())].concat(),
    };
    if path.is_root() && meta.is_none() {
        text = b"modify /".to_vec();
    }
    add_xattrs(&mut text, xattrs);
    text
}

pub fn add_xattrs(line: &mut Vec<u8>, xattrs: &Xattrs) {
    for (name, value) in xattrs {
        line.extend(b" xattr.");
        line.extend(quoted(name));
        line.push(b'=');
        line.extend(quoted(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs::{NodeKind, TreeBuilder};

    fn lines(definitions: &[&str]) -> Result<Vec<String>> {
        let (users, groups) = (Ids::default(), Ids::default());
        let mut pseudo = Pseudo::new(&users, &groups)?;
        definitions.iter().try_for_each(|text| pseudo.add(text.as_bytes()))?;
        let mut builder = TreeBuilder::new(Meta::default());
        builder.add(
            &ImagePath::parse(b"old").unwrap(),
            NodeKind::Directory,
            Meta::default(),
            Xattrs::new(),
        )?;
        let defaults = Defaults { now: 9, meta: &|meta, _| meta, xattrs: &|_| Xattrs::new() };
        let lines = pseudo.manifest(&builder.finish()?, true, &defaults)?;
        Ok(lines.into_iter().map(|line| String::from_utf8(line).unwrap()).collect())
    }

    #[test]
    fn definitions_become_entries() {
        let found = lines(&[
            "/dev/console c 600 0 0 5 1",
            "/dev d 755 1 2",
            "\"a b\" S 7 777 0 0 to there",
            "old m 700 3 4",
            "old x user.a=0x41",
            "ipc i 644 0 0 s",
            "hard L dev/console",
        ]);
        assert_eq!(
            found.unwrap(),
            [
                "symlink \"a b\" mode=0777 uid=0 gid=0 mtime=7 target=\"to there\"",
                "dir \"dev\" mode=0755 uid=1 gid=2 mtime=9",
                "char \"dev/console\" mode=0600 uid=0 gid=0 mtime=9 major=5 minor=1",
                "link \"hard\" target=\"dev/console\"",
                "socket \"ipc\" mode=0644 uid=0 gid=0 mtime=9",
                "modify \"old\" mode=0700 uid=3 gid=4 mtime=0 xattr.\"user.a\"=\"A\"",
            ]
        );
    }

    #[test]
    fn entries_of_the_source_stay_and_directories_have_to_be_there() {
        assert_eq!(lines(&["old d 755 0 0", "new m 755 0 0"]).unwrap(), [""; 0]);
        assert!(lines(&["none/a d 755 0 0"]).is_err());
        for wrong in ["a", "a q 1 2 3", "a d 99999 0 0", "a d 755 0", "a c 600 0 0 1", "a d 755 0 0 more"] {
            assert!(lines(&[wrong]).is_err(), "{wrong}");
        }
    }
}
