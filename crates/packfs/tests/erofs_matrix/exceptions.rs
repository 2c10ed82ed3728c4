//! What is known to go wrong, and where. When one of these changes the tests fail, so that the table stays true.

use crate::readers::{Outcome, shown};
use crate::rows;
use crate::table::Line;

/// How a reader fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It finds something else than went in.
    Disagrees,
    /// It finds nothing.
    Cannot,
}

/// Rows of a writer that some readers get wrong.
pub struct Exception {
    pub writer: &'static str,
    pub rows: &'static [&'static str],
    pub readers: &'static [&'static str],
    pub fault: Fault,
    /// What every difference, or the reader's words, contain.
    pub evidence: &'static str,
    /// Who is wrong, and why.
    pub why: &'static str,
}

const ONLY_HOLES: &str =
    "fsck.erofs 1.9.4 extracts a file that is all holes as an empty one; the others read its zeros.";
const METABOX_CONTENT: &str = "fsck.erofs 1.9.4 extracts contents that lie behind inodes in the metabox wrongly, with exit status 0, \
    whoever wrote them; the kernel, erofsfuse and packfs read what went in.";
const METABOX_TAIL: &str = "fsck.erofs and erofsfuse 1.9.4 do not find a packed tail behind an inode in the metabox; the kernel and packfs \
    read what went in.";
const INTERLACED_TAIL: &str = "mkfs.erofs 1.9.4 puts the tail of the packed inode plain behind an inode that it marks interlaced, which the \
    kernel, erofsfuse and fsck.erofs read from another position: its own image is damaged. packfs finds what went in, and \
    its check says what is wrong.";

pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        writer: "mkfs.erofs",
        rows: &[
            "chunks 64K, indexes",
            "inline, 48 bits",
            "dot omitted",
            "48 bits, lz4",
            "48 bits, lzma",
            "48 bits, deflate",
            "48 bits, zstd",
            "48 bits, zstd 1M",
            "48 bits, bytes",
            "48 bits, dedupe",
            "48 bits, 512-byte blocks",
        ],
        readers: &["fsck.erofs"],
        fault: Fault::Disagrees,
        evidence: " and 0; content ",
        why: ONLY_HOLES,
    },
    Exception {
        writer: "packfs",
        rows: &["48 bits, bytes"],
        readers: &["fsck.erofs"],
        fault: Fault::Disagrees,
        evidence: " and 0; content ",
        why: ONLY_HOLES,
    },
    Exception {
        writer: "mkfs.erofs",
        rows: &["metabox, lz4", "metabox, two codecs"],
        readers: &["fsck.erofs"],
        fault: Fault::Disagrees,
        evidence: "\": content ",
        why: METABOX_CONTENT,
    },
    Exception {
        writer: "packfs",
        rows: &[
            "metabox, lz4",
            "metabox, two codecs",
            "metabox, tail packing",
            "metabox, 48 bits, fragments",
        ],
        readers: &["fsck.erofs"],
        fault: Fault::Disagrees,
        evidence: "\": content ",
        why: METABOX_CONTENT,
    },
    Exception {
        writer: "mkfs.erofs",
        rows: &["metabox, tail packing"],
        readers: &["erofsfuse"],
        fault: Fault::Cannot,
        evidence: "Input/output error",
        why: METABOX_TAIL,
    },
    Exception {
        writer: "mkfs.erofs",
        rows: &["metabox, tail packing"],
        readers: &["fsck.erofs"],
        fault: Fault::Cannot,
        evidence: "failed to full decompress",
        why: METABOX_TAIL,
    },
    Exception {
        writer: "mkfs.erofs",
        rows: &["fragments and tail packing"],
        readers: &["kernel", "erofsfuse", "fsck.erofs"],
        fault: Fault::Disagrees,
        evidence: "\": content ",
        why: INTERLACED_TAIL,
    },
    Exception {
        writer: "mkfs.erofs",
        rows: &["fragments and tail packing"],
        readers: &["packfs"],
        fault: Fault::Disagrees,
        evidence: "check: a plain cluster behind the inode of an interlaced file",
        why: INTERLACED_TAIL,
    },
];

/// What is known of a cell.
pub fn known(line: &Line) -> Option<&'static Exception> {
    EXCEPTIONS.iter().find(|exception| {
        exception.writer == line.writer
            && exception.rows.contains(&line.row)
            && exception.readers.contains(&line.reader)
    })
}

/// What about a cell is not as it should be, or as it is known to be.
///
/// Not every tree has what a reader gets wrong: only of one that has does `all_known` demand that every fault be seen.
pub fn surprise(line: &Line, all_known: bool) -> Option<String> {
    let Line { writer, row, reader, outcome } = line;
    let cell = format!("{writer}, {row}, {reader}");
    let (fault, said) = match outcome {
        Outcome::Agree => {
            return known(line)
                .filter(|_| all_known)
                .map(|_| format!("{cell}: agrees, but is known not to; say so no more"));
        }
        Outcome::Disagree(differences) => (Fault::Disagrees, &differences[..]),
        Outcome::Cannot(text) => (Fault::Cannot, std::slice::from_ref(text)),
    };
    let text = shown(said);
    match known(line) {
        None => Some(format!("{cell}: {fault:?}: {text}")),
        Some(known) if known.fault != fault || !said.iter().all(|text| text.contains(known.evidence)) => {
            Some(format!("{cell}: {fault:?}: {text}; known was {:?} {:?}", known.fault, known.evidence))
        }
        Some(_) => None,
    }
}

/// Panics where an exception is about nothing.
pub fn all_have_a_cell() {
    for exception in EXCEPTIONS {
        for name in exception.rows {
            assert!(rows::all().any(|row| row.name == *name), "{name}");
        }
        assert!(["mkfs.erofs", "packfs"].contains(&exception.writer), "{}", exception.writer);
        let known = ["kernel", "erofsfuse", "fsck.erofs", "packfs"];
        assert!(exception.readers.iter().all(|reader| known.contains(reader)), "{:?}", exception.readers);
    }
}
