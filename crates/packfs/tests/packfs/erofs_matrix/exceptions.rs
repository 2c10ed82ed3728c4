//! Known differences between programs. When one of these changes the tests fail, so that the
//! table stays true.

use super::readers::{Outcome, shown};
use super::rows;
use super::table::Line;

/// Failure of a reader.
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
    /// Text in each difference, or in the reader's message.
    pub evidence: &'static str,
    /// The program at fault, and the cause.
    pub why: &'static str,
}

const HOLE_AT_END: &str = "fsck.erofs 1.9.4 omits the hole at the end of a file: the extracted file is too short, with exit status 0. The \
    other readers return its zeros.";
const NO_NANOSECONDS: &str = "mkfs.erofs 1.9.4 with `-E48bit` or a metabox writes inodes of 32 bytes even if that loses the fraction of a second of \
    a time. erofsfuse never reports fractions.";
/// A difference in the time and nothing before it.
const TIME: &str = "\": time ";
const METABOX_CONTENT: &str = "fsck.erofs 1.9.4 extracts wrong contents of files whose data follows their inode in the metabox, with exit \
    status 0, from images of either writer; the kernel, erofsfuse, and packfs read them correctly.";
const METABOX_TAIL: &str = "fsck.erofs and erofsfuse 1.9.4 do not find a packed tail after an inode in the metabox; the kernel and packfs \
    read it correctly.";
const INTERLACED_TAIL: &str = "mkfs.erofs 1.9.4 stores the tail of the packed inode uncompressed after an inode that it marks as interlaced. The \
    kernel, erofsfuse, and fsck.erofs read it from another position, so the image is damaged. packfs reads the original \
    data, and its check reports the fault.";

pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        writer: "mkfs.erofs",
        rows: &[
            "inline, 48 bits",
            "dot omitted",
            "48 bits, lz4",
            "48 bits, lzma",
            "48 bits, deflate",
            "48 bits, zstd",
            "48 bits, zstd 1M",
            "48 bits, bytes",
            "48 bits, fragments",
            "48 bits, all fragments",
            "48 bits, dedupe",
            "48 bits, dedupe, fragments",
            "48 bits, 512-byte blocks",
            "metabox, 48 bits, fragments",
        ],
        readers: &["kernel", "fsck.erofs", "packfs"],
        fault: Fault::Disagrees,
        evidence: TIME,
        why: NO_NANOSECONDS,
    },
    Exception {
        writer: "mkfs.erofs",
        rows: &["metabox, lz4", "metabox, two codecs"],
        readers: &["kernel", "fsck.erofs", "packfs"],
        fault: Fault::Disagrees,
        evidence: TIME,
        why: NO_NANOSECONDS,
    },
    Exception {
        writer: "mkfs.erofs",
        rows: &["metabox, tail packing"],
        readers: &["kernel", "packfs"],
        fault: Fault::Disagrees,
        evidence: TIME,
        why: NO_NANOSECONDS,
    },
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
            "metabox, lz4",
            "metabox, two codecs",
        ],
        readers: &["fsck.erofs"],
        fault: Fault::Disagrees,
        evidence: "\": length ",
        why: HOLE_AT_END,
    },
    Exception {
        writer: "packfs",
        rows: &["inline, 48 bits", "dot omitted", "48 bits, bytes"],
        readers: &["fsck.erofs"],
        fault: Fault::Disagrees,
        evidence: "\": length ",
        why: HOLE_AT_END,
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
        evidence: "check: a plain cluster after the inode of an interlaced file",
        why: INTERLACED_TAIL,
    },
];

impl Exception {
    fn is_about(&self, line: &Line) -> bool {
        self.writer == line.writer && self.rows.contains(&line.row) && self.readers.contains(&line.reader)
    }

    fn explains(&self, fault: Fault, text: &str) -> bool {
        self.fault == fault && text.contains(self.evidence)
    }
}

/// Failures of a cell, one by one.
fn said(line: &Line) -> (Fault, &[String]) {
    match &line.outcome {
        Outcome::Agree => (Fault::Disagrees, &[]),
        Outcome::Disagree(differences) => (Fault::Disagrees, differences),
        Outcome::Cannot(text) => (Fault::Cannot, std::slice::from_ref(text)),
    }
}

/// Why a cell is as it is: each reason once, and the beginning of what has none.
pub fn reasons(line: &Line) -> Vec<String> {
    let (fault, said) = said(line);
    let known: Vec<&Exception> = EXCEPTIONS.iter().filter(|exception| exception.is_about(line)).collect();
    let explains = |text: &str| known.iter().find(|exception| exception.explains(fault, text));
    let mut reasons: Vec<String> = Vec::new();
    for exception in said.iter().filter_map(|text| explains(text)) {
        if !reasons.iter().any(|reason| reason == exception.why) {
            reasons.push(exception.why.into());
        }
    }
    let unknown: Vec<String> = said.iter().filter(|text| explains(text).is_none()).cloned().collect();
    if !unknown.is_empty() {
        reasons.push(shown(&unknown));
    }
    reasons
}

/// Returns the differences of a cell that are not known.
///
/// Not every tree has what a reader gets wrong: only of one that has does `all_known` demand that
/// every fault be seen.
pub fn surprise(line: &Line, all_known: bool) -> Option<String> {
    let Line { writer, row, reader, .. } = line;
    let (fault, said) = said(line);
    let mut known = EXCEPTIONS.iter().filter(|exception| exception.is_about(line));
    let is_unknown = |text: &&String| !known.clone().any(|exception| exception.explains(fault, text));
    let unknown: Vec<String> = said.iter().filter(is_unknown).cloned().collect();
    if !unknown.is_empty() {
        return Some(format!("{writer}, {row}, {reader}: {fault:?}: {}", shown(&unknown)));
    }
    let unseen = known.find(|exception| !said.iter().any(|text| exception.explains(fault, text)));
    unseen
        .filter(|_| all_known)
        .map(|exception| format!("{writer}, {row}, {reader}: no more so, say so no more: {}", exception.why))
}

/// Panics where an exception is about nothing, or where no run but `cargo xtask matrix` sees
/// whether it holds.
pub fn all_have_a_cell() {
    for exception in EXCEPTIONS {
        for name in exception.rows {
            assert!(rows::all().any(|row| row.name == *name), "{name}");
        }
        let is_tried = rows::all().any(|row| row.often && exception.rows.contains(&row.name));
        assert!(is_tried, "nothing of this is tried often: {:?}", exception.rows);
        assert!(["mkfs.erofs", "packfs"].contains(&exception.writer), "{}", exception.writer);
        let known = ["kernel", "erofsfuse", "fsck.erofs", "packfs"];
        assert!(exception.readers.iter().all(|reader| known.contains(reader)), "{:?}", exception.readers);
    }
}
