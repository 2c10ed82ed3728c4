//! Class of a file, determined from its first bytes and name: it selects branch filters and groups
//! files in reports.

use crate::context::Context;
use packfs_codec::{BranchFilter, BranchSet};
use packfs_core::{ContentReader, NodeId, Result};
use packfs_format::DataKind;

const HEAD_LEN: usize = 264;

/// Class of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Class {
    /// Programs, libraries and object files of one machine.
    Code(Machine),
    /// Text: documents, sources, settings.
    Text,
    /// Scripts.
    Script,
    /// Python, as source and compiled.
    Python,
    /// Translations.
    Locale,
    /// Images.
    Image,
    /// Audio and video.
    Media,
    /// Fonts.
    Font,
    /// Archives and other compressed files.
    Archive,
    /// Everything else.
    #[default]
    Data,
}

/// Instruction set of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Machine {
    /// x86 and x86-64.
    X86,
    /// ARM, 32 bits, both sets of instructions.
    Arm,
    /// AArch64.
    Arm64,
    /// Big-endian PowerPC.
    PowerPc,
    /// Itanium.
    Ia64,
    /// SPARC.
    Sparc,
    /// RISC-V.
    RiscV,
    /// Any other, or unknown.
    Other,
}

#[cfg(feature = "serde")]
packfs_core::serialize_word!(Class, name);

/// First bytes that determine a class in any file.
const MAGICS: &[(&[u8], Class)] = &[
    (b"\x89PNG\r\n\x1a\n", Class::Image),
    (b"\xff\xd8\xff", Class::Image),
    (b"GIF8", Class::Image),
    (b"II*\0", Class::Image),
    (b"MM\0*", Class::Image),
    (b"OggS", Class::Media),
    (b"fLaC", Class::Media),
    (b"ID3", Class::Media),
    (b"\x1a\x45\xdf\xa3", Class::Media),
    (b"wOFF", Class::Font),
    (b"wOF2", Class::Font),
    (b"OTTO", Class::Font),
    (b"ttcf", Class::Font),
    (b"\0\x01\0\0\0", Class::Font),
    (b"\x01fcp", Class::Font),
    (b"\xde\x12\x04\x95", Class::Locale),
    (b"\x95\x04\x12\xde", Class::Locale),
    (b"\x1f\x8b", Class::Archive),
    (b"BZh", Class::Archive),
    (b"\xfd7zXZ\0", Class::Archive),
    (b"\x28\xb5\x2f\xfd", Class::Archive),
    (b"LZIP", Class::Archive),
    (b"7z\xbc\xaf\x27\x1c", Class::Archive),
    (b"PK\x03\x04", Class::Archive),
    (b"!<arch>\ndebian", Class::Archive),
    (b"!<arch>\n", Class::Code(Machine::Other)),
    (b"MZ", Class::Code(Machine::Other)),
];

impl Class {
    /// Returns the class of a file from its name and its first bytes.
    pub(crate) fn of(name: &[u8], head: &[u8]) -> Class {
        let head = &head[..head.len().min(HEAD_LEN)];
        if let Some(machine) = elf_machine(head) {
            return Class::Code(machine);
        }
        if let Some((_, class)) = MAGICS.iter().find(|(magic, _)| head.starts_with(magic)) {
            return *class;
        }
        match (head.get(..4), head.get(4..8), head.get(8..12)) {
            (Some(b"RIFF"), _, Some(b"WEBP")) => return Class::Image,
            (Some(b"RIFF"), _, Some(b"WAVE" | b"AVI ")) => return Class::Media,
            (_, Some(b"ftyp"), _) => return Class::Media,
            _ => {}
        }
        if [&b".py"[..], b".pyc", b".pyi"].iter().any(|end| name.ends_with(end)) {
            return Class::Python;
        }
        if name == b"locale-archive" || name.starts_with(b"LC_") {
            return Class::Locale;
        }
        match is_text(head) {
            true if head.starts_with(b"#!") && contains(first_line(head), b"python") => Class::Python,
            true if head.starts_with(b"#!") => Class::Script,
            true => Class::Text,
            false => Class::Data,
        }
    }

    /// `bytes` were read at `offset`; the file's beginning is read if they are not it.
    pub(crate) fn of_read<K: DataKind>(
        context: &Context<'_, K>,
        node: NodeId,
        (offset, bytes): (u64, &[u8]),
        reader: &mut dyn ContentReader,
    ) -> Result<Class> {
        let name = context.tree.first_name(node);
        if offset == 0 {
            return Ok(Class::of(name, bytes));
        }
        let mut head = [0; HEAD_LEN];
        let head = &mut head[..context.len(node).min(HEAD_LEN as u64) as usize];
        reader.read_exact_at(0, head)?;
        Ok(Class::of(name, head))
    }

    pub(crate) fn branches(self) -> BranchSet {
        match self {
            Class::Code(Machine::X86) => BranchSet::of(&[BranchFilter::X86]),
            Class::Code(Machine::Arm) => BranchSet::of(&[BranchFilter::Arm, BranchFilter::ArmThumb]),
            Class::Code(Machine::Arm64) => BranchSet::of(&[BranchFilter::Arm64]),
            Class::Code(Machine::PowerPc) => BranchSet::of(&[BranchFilter::PowerPc]),
            Class::Code(Machine::Ia64) => BranchSet::of(&[BranchFilter::Ia64]),
            Class::Code(Machine::Sparc) => BranchSet::of(&[BranchFilter::Sparc]),
            Class::Code(Machine::RiscV) => BranchSet::of(&[BranchFilter::RiscV]),
            Class::Code(Machine::Other) | Class::Data => BranchSet::UNKNOWN,
            _ => BranchSet::NONE,
        }
    }

    /// Returns the name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::Code(Machine::X86) => "programs for x86",
            Class::Code(Machine::Arm) => "programs for arm",
            Class::Code(Machine::Arm64) => "programs for arm64",
            Class::Code(Machine::PowerPc) => "programs for powerpc",
            Class::Code(Machine::Ia64) => "programs for ia64",
            Class::Code(Machine::Sparc) => "programs for sparc",
            Class::Code(Machine::RiscV) => "programs for riscv",
            Class::Code(Machine::Other) => "other programs",
            Class::Text => "text",
            Class::Script => "scripts",
            Class::Python => "python",
            Class::Locale => "translations",
            Class::Image => "pictures",
            Class::Media => "sound and video",
            Class::Font => "fonts",
            Class::Archive => "archives",
            Class::Data => "other data",
        }
    }
}

fn elf_machine(head: &[u8]) -> Option<Machine> {
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    let is_big = head.get(5) == Some(&2);
    let number = match head.get(18..20) {
        Some(&[a, b]) if is_big => u16::from_be_bytes([a, b]),
        Some(&[a, b]) => u16::from_le_bytes([a, b]),
        _ => 0,
    };
    // e_machine of the System V ABI.
    Some(match number {
        3 | 62 => Machine::X86,
        40 => Machine::Arm,
        183 => Machine::Arm64,
        // The filter supports only big-endian instructions.
        20 | 21 if is_big => Machine::PowerPc,
        50 => Machine::Ia64,
        2 | 18 | 43 => Machine::Sparc,
        243 => Machine::RiscV,
        _ => Machine::Other,
    })
}

/// Tolerates neither control characters but whitespace, nor much that is neither ASCII nor UTF-8.
fn is_text(head: &[u8]) -> bool {
    let is_control = |byte: &u8| *byte < 0x20 && !b"\t\n\r\x0c\x1b".contains(byte) || *byte == 0x7f;
    if head.is_empty() || head.iter().any(is_control) {
        return false;
    }
    match std::str::from_utf8(head) {
        Ok(_) => true,
        // A character may be cut off, and a few bytes of an older encoding are tolerated.
        Err(error) if error.valid_up_to() + 4 > head.len() => true,
        Err(_) => head.iter().filter(|byte| !byte.is_ascii()).count() * 8 < head.len(),
    }
}

fn first_line(head: &[u8]) -> &[u8] {
    head.split(|&byte| byte == b'\n').next().unwrap_or_default()
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(machine: u16, big: bool) -> Vec<u8> {
        let mut head = b"\x7fELF\x02\x01\x01".to_vec();
        head[5] = if big { 2 } else { 1 };
        head.resize(64, 0);
        let number = if big { machine.to_be_bytes() } else { machine.to_le_bytes() };
        head[18..20].copy_from_slice(&number);
        head
    }

    #[test]
    fn recognizes_programs_by_machine() {
        let rows = [
            (3, false, Machine::X86),
            (62, false, Machine::X86),
            (40, false, Machine::Arm),
            (183, false, Machine::Arm64),
            (21, true, Machine::PowerPc),
            (21, false, Machine::Other),
            (43, true, Machine::Sparc),
            (50, false, Machine::Ia64),
            (243, false, Machine::RiscV),
            (8, true, Machine::Other),
        ];
        for (number, big, machine) in rows {
            assert_eq!(Class::of(b"x", &elf(number, big)), Class::Code(machine), "{number}");
        }
        // Too short to tell the machine.
        assert_eq!(Class::of(b"x", b"\x7fELF\x02"), Class::Code(Machine::Other));
    }

    #[test]
    fn recognizes_classes_by_magic_name_and_characters() {
        let rows: [(&[u8], &[u8], Class); 14] = [
            (b"a", b"\x89PNG\r\n\x1a\n....", Class::Image),
            (b"a", b"RIFF....WEBPVP8 ", Class::Image),
            (b"a", b"OggS\0", Class::Media),
            (b"a.deb", b"!<arch>\ndebian-binary", Class::Archive),
            (b"a.a", b"!<arch>\n/       ", Class::Code(Machine::Other)),
            (b"de.mo", b"\xde\x12\x04\x95\0\0", Class::Locale),
            (b"a.pyc", b"\xcb\x0d\x0d\x0a\0\0", Class::Python),
            (b"run", b"#!/usr/bin/python3\nprint()\n", Class::Python),
            (b"run", b"#!/bin/sh\nexit\n", Class::Script),
            (b"README", b"Hello,\tworld\n", Class::Text),
            (b"utf8", "Grüße".as_bytes(), Class::Text),
            (b"latin1", b"Mit freundlichen Gr\xfc\xdfen, und noch etwas mehr Text dahinter\n", Class::Text),
            (b"data", b"\0\x01\x02\x03", Class::Data),
            (b"empty", b"", Class::Data),
        ];
        for (name, head, class) in rows {
            assert_eq!(Class::of(name, head), class, "{name:?} {head:?}");
        }
    }

    #[test]
    fn a_character_cut_in_two_is_text() {
        let mut head = vec![b'a'; HEAD_LEN - 1];
        head.extend_from_slice("ü".as_bytes());
        assert_eq!(Class::of(b"a", &head), Class::Text);
    }
}
