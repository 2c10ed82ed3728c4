//! Names of common partition types.

use packfs_core::uuid_text;
/// By type byte of a boot record.
const MBR: [(u8, &str); 19] = [
    (0x01, "FAT12"),
    (0x04, "FAT16 (small)"),
    (0x05, "extended"),
    (0x06, "FAT16"),
    (0x07, "NTFS or exFAT"),
    (0x0b, "FAT32"),
    (0x0c, "FAT32 (LBA)"),
    (0x0e, "FAT16 (LBA)"),
    (0x0f, "extended (LBA)"),
    (0x17, "hidden NTFS, or ISO 9660"),
    (0x27, "recovery"),
    (0x82, "Linux swap"),
    (0x83, "Linux"),
    (0x85, "Linux extended"),
    (0x8e, "Linux LVM"),
    (0xa5, "FreeBSD"),
    (0xee, "GPT"),
    (0xef, "EFI system"),
    (0xfd, "Linux RAID"),
];

/// By GUID in text form.
const GPT: [(&str, &str); 13] = [
    ("c12a7328-f81f-11d2-ba4b-00a0c93ec93b", "EFI system"),
    ("21686148-6449-6e6f-744e-656564454649", "BIOS boot"),
    ("0fc63daf-8483-4772-8e79-3d69d8477de4", "Linux"),
    ("0657fd6d-a4ab-43c4-84e5-0933c84b4f4f", "Linux swap"),
    ("e6d6d379-f507-44c2-a23c-238f2a3df928", "Linux LVM"),
    ("a19d880f-05fc-4d3b-a006-743f0f84911e", "Linux RAID"),
    ("4f68bce3-e8cd-4db1-96e7-fbcaf984b709", "Linux root (x86-64)"),
    ("b921b045-1df0-41c3-af44-4c6f280d3fae", "Linux root (arm64)"),
    ("8484680c-9521-48c6-9c11-b0720656f69e", "Linux /usr (x86-64)"),
    ("bc13c2ff-59e6-4262-a352-b275fd6f7172", "Linux /boot"),
    ("ebd0a0a2-b9e5-4433-87c0-68b6b72699c7", "Windows data"),
    ("e3c9e316-0b5c-4db8-817d-f92df00215ae", "Windows reserved"),
    ("de94bba4-06d1-4d40-a16a-bfd50179d6ac", "Windows recovery"),
];

/// Returns the name of an MBR partition type, or its number.
pub(crate) fn of_mbr(kind: u8) -> String {
    MBR.iter()
        .find(|(number, _)| *number == kind)
        .map_or(format!("type {kind:#04x}"), |(_, name)| (*name).into())
}

/// Returns the name of a GPT partition type, or its GUID.
pub(crate) fn of_gpt(kind: &[u8; 16]) -> String {
    let text = guid(kind);
    GPT.iter().find(|(known, _)| *known == text).map_or(text.clone(), |(_, name)| (*name).into())
}

/// Formats a GUID: the first three numbers are little-endian.
pub(crate) fn guid(raw: &[u8; 16]) -> String {
    let mut written = *raw;
    for number in [0..4, 4..6, 6..8] {
        written.get_mut(number).into_iter().for_each(<[u8]>::reverse);
    }
    uuid_text(&written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names_or_show_what_they_are() {
        assert_eq!(of_mbr(0x83), "Linux");
        assert_eq!(of_mbr(0x42), "type 0x42");
        let linux =
            [0xaf, 0x3d, 0xc6, 0x0f, 0x83, 0x84, 0x72, 0x47, 0x8e, 0x79, 0x3d, 0x69, 0xd8, 0x47, 0x7d, 0xe4];
        assert_eq!(guid(&linux), "0fc63daf-8483-4772-8e79-3d69d8477de4");
        assert_eq!(of_gpt(&linux), "Linux");
        assert_eq!(of_gpt(&[0x11; 16]), "11111111-1111-1111-1111-111111111111");
    }
}
