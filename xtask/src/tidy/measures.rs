//! Measures of a source file that may only fall, summed up by [`super::falling`].

use super::sources::File;

pub struct Measure {
    pub name: &'static str,
    /// Values are listed as multiples of this: room for changes that add little.
    pub step: usize,
    pub of_file: fn(&File, &Glossary) -> usize,
}

/// Words that the style guide replaces, and names of formats.
pub struct Glossary {
    pub words: Vec<String>,
    pub formats: Vec<String>,
}

pub const MEASURES: [Measure; 7] = [
    Measure { name: "lines-of-code", step: 100, of_file: |file, _| lines_of_code(file) },
    Measure { name: "doc-lines-on-private-items", step: 1, of_file: |file, _| private_docs(file) },
    Measure { name: "words-of-the-dialect", step: 1, of_file: dialect },
    Measure { name: "names-of-formats-in-strings", step: 1, of_file: named_formats },
    Measure { name: "split-messages", step: 1, of_file: |file, _| split_messages(file) },
    Measure { name: "silent-defaults", step: 1, of_file: |file, _| silent_defaults(file) },
    Measure { name: "literal-offsets-in-formats", step: 1, of_file: |file, _| literal_offsets(file) },
];

/// Functions that read a number or structure at an offset.
const READERS: [&str; 16] = [
    "u8",
    "u16",
    "u32",
    "u64",
    "be16",
    "be32",
    "be64",
    "le16",
    "le32",
    "le64",
    "be",
    "le",
    "little",
    "structure",
    "structures",
    "read_structure",
];

/// Variables that parts of messages are kept in.
const PARTS: [&str; 7] = ["what", "why", "words", "fault", "message", "hint", "error"];

const SILENT: [&str; 3] = ["saturating_", ".unwrap_or(0)", ".unwrap_or_default()"];

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn lines_of_code(file: &File) -> usize {
    if file.is_test() {
        return 0;
    }
    file.code().filter(|line| !line.trim().is_empty() && !is_comment(line)).count()
}

fn code(file: &File) -> impl Iterator<Item = &str> {
    file.code().filter(|line| !file.is_test() && !is_comment(line))
}

fn is_format(file: &File) -> bool {
    ["crates/format/src/", "crates/formats/"].iter().any(|folder| file.path.starts_with(folder))
}

/// Counts results that replace a figure of an image by another one: those of `format::units` are
/// asserted, or named by their reason.
fn silent_defaults(file: &File) -> usize {
    let lines = code(file).filter(|_| is_format(file) || file.path.starts_with("crates/read/src/"));
    lines.map(|line| SILENT.iter().map(|word| line.matches(word).count()).sum::<usize>()).sum()
}

/// Counts ranges with literal bounds, and reads at a literal offset, outside of the declarations of
/// structures on disk.
fn literal_offsets(file: &File) -> usize {
    let is_judged = is_format(file) && !file.path.ends_with("disk.rs") && !file.path.contains("/disk/");
    code(file).filter(|_| is_judged).map(|line| literal_ranges(line) + literal_reads(line)).sum()
}

fn literal_ranges(line: &str) -> usize {
    let starts = line.match_indices(['[', '(']).map(|(at, _)| &line[at + 1..]);
    let is_literal = |inside: &str| {
        let inside = &inside[..inside.find([']', ')']).unwrap_or(0)];
        let Some((from, to)) = inside.split_once("..") else { return false };
        let bounds = [from, to.trim_start_matches('=')].map(number);
        let is_range = bounds.iter().zip([from, to]).all(|(bound, text)| bound.is_some() || text.is_empty());
        is_range && bounds.into_iter().flatten().any(|bound| bound > 0)
    };
    starts.filter(|inside| is_literal(inside)).count()
}

/// Counts calls of readers whose last argument is a number.
fn literal_reads(line: &str) -> usize {
    let calls = line.match_indices('(').filter(|(at, _)| {
        let name = line[..*at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let arguments = &line[at + 1..][..line[at + 1..].find(')').unwrap_or(0)];
        let last = arguments.rsplit(',').next().unwrap_or_default();
        READERS.contains(&name) && number(last.trim()).is_some()
    });
    calls.count()
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim().replace('_', "");
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Counts variables that have a part of a message, so that a search for the whole finds nothing.
fn split_messages(file: &File) -> usize {
    let is_part = |line: &str| {
        let rest = line.trim_start().strip_prefix("let ").and_then(|rest| rest.split_once(" = \""));
        rest.is_some_and(|(name, _)| PARTS.contains(&name.trim_start_matches("mut ")))
    };
    code(file).filter(|line| is_part(line)).count()
}

fn named_formats(file: &File, glossary: &Glossary) -> usize {
    let is_product = file.path.starts_with("crates/") && file.path.contains("/src/");
    if !is_product || super::format_names::may_name(&file.path) {
        return 0;
    }
    let texts = code(file).flat_map(|line| line.split('"').skip(1).step_by(2));
    let names = |text: &str| words(text).filter(|word| glossary.formats.contains(word)).count();
    texts.map(names).sum()
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.map(str::to_lowercase)
}

/// Counts words of the glossary in comments.
fn dialect(file: &File, glossary: &Glossary) -> usize {
    let comments = file.text.lines().filter(|line| is_comment(line));
    let in_line = |line: &str| {
        let line = format!(" {} ", words(line).collect::<Vec<_>>().join(" "));
        glossary.words.iter().map(|word| line.matches(&format!(" {word} ")).count()).sum::<usize>()
    };
    comments.map(in_line).sum()
}

/// Counts lines of doc comments on items, fields, and functions that are not public.
fn private_docs(file: &File) -> usize {
    if file.is_test() {
        return 0;
    }
    let lines: Vec<&str> = file.code().collect();
    let (mut count, mut pending) = (0, 0);
    for (at, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        if text.starts_with("///") {
            pending += 1;
        } else if !text.starts_with("#[") && !text.is_empty() {
            count += if is_public(&lines, at) { 0 } else { pending };
            pending = 0;
        }
    }
    count
}

/// Returns true for items with `pub`, and for what is in a public enum, trait, or macro.
fn is_public(lines: &[&str], at: usize) -> bool {
    let column = |line: &str| line.len() - line.trim_start().len();
    let text = lines[at].trim_start();
    if text.starts_with("pub ") || text.starts_with("macro_rules!") || text.starts_with("$") {
        return true;
    }
    let above = lines[..at].iter().rev();
    let header = above
        .clone()
        .find(|line| !line.trim().is_empty() && !is_comment(line) && column(line) < column(lines[at]));
    header
        .is_some_and(|line| ["pub enum", "pub trait"].iter().any(|word| line.trim_start().starts_with(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, path: &str, text: &str) -> usize {
        let measure = MEASURES.iter().find(|measure| measure.name == name).unwrap();
        let glossary =
            Glossary { words: vec!["lies".into(), "of its own".into()], formats: vec!["erofs".into()] };
        (measure.of_file)(&File::new(path, text), &glossary)
    }

    #[test]
    fn every_offence_is_counted_where_it_counts_and_nowhere_else() {
        let format = "crates/formats/new/src/inode.rs";
        let other = "crates/read/src/inode.rs";
        for (name, path, offence, count) in [
            ("lines-of-code", other, "fn f() {}\n\n// words\n", 1),
            ("lines-of-code", "crates/read/tests/read/a.rs", "fn f() {}\n", 0),
            ("silent-defaults", format, "let end = at.saturating_add(len).min(x.unwrap_or(0));\n", 2),
            ("silent-defaults", format, "let name = read(image).unwrap_or_default();\n", 1),
            ("silent-defaults", format, "// saturating_add\nlet x = y.unwrap_or(1);\n", 0),
            ("silent-defaults", other, "at.saturating_add(len)\n", 1),
            ("silent-defaults", other, "end_of(at, len); at.plus(len)\n", 0),
            ("silent-defaults", "crates/pack/src/order.rs", "at.saturating_add(len)\n", 0),
            ("literal-offsets-in-formats", format, "let flags = be64(bytes, 120);\n", 1),
            ("literal-offsets-in-formats", format, "let len = fields.u64(0x2d);\n", 1),
            ("literal-offsets-in-formats", format, "bytes.get(8..12)?; &bytes[..4]; head[2..]\n", 3),
            (
                "literal-offsets-in-formats",
                format,
                "all[..]; (0..len); f(at, 12); bytes.get(at..at + 4)\n",
                0,
            ),
            ("literal-offsets-in-formats", "crates/formats/new/src/disk.rs", "be64(bytes, 120)\n", 0),
            ("literal-offsets-in-formats", other, "be64(bytes, 120)\n", 0),
            ("split-messages", other, "    let what = \"is not a directory\";\n", 1),
            ("split-messages", other, "    let what = found.word();\n    let name = \"a\";\n", 0),
            ("names-of-formats-in-strings", other, "error.hint(\"an EROFS image\")\n", 1),
            ("names-of-formats-in-strings", other, "// EROFS\nlet erofs = \"image\";\n", 0),
            ("names-of-formats-in-strings", format, "error.hint(\"an EROFS image\")\n", 0),
            ("words-of-the-dialect", other, "/// It lies in a file of its own.\nlet lies = 1;\n", 2),
            ("words-of-the-dialect", other, "// applies, on its own\n", 0),
            (
                "doc-lines-on-private-items",
                other,
                "/// A.\n/// B.\npub(crate) fn f() {}\n\n/// C.\nfn g() {}\n",
                3,
            ),
            (
                "doc-lines-on-private-items",
                other,
                "/// A.\n#[derive(Debug)]\nstruct S {\n    /// B.\n    a: u8,\n}\n",
                2,
            ),
            (
                "doc-lines-on-private-items",
                other,
                "/// A.\npub enum E {\n    /// B.\n    V,\n}\n//! Text.\n",
                0,
            ),
            (
                "doc-lines-on-private-items",
                other,
                "/// A.\npub struct S {\n    /// B.\n    pub a: u8,\n}\n",
                0,
            ),
        ] {
            assert_eq!(value(name, path, offence), count, "{name} {path}: {offence}");
        }
    }
}
