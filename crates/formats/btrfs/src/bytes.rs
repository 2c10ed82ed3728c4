//! Little-endian fields of structures whose length was checked.

/// Bytes of a structure. Fields behind their end are 0.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    /// Returns the bytes of a field.
    pub(crate) fn array<const LEN: usize>(self, at: usize) -> [u8; LEN] {
        self.0.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; LEN])
    }

    pub(crate) fn u8(self, at: usize) -> u8 {
        u8::from_le_bytes(self.array(at))
    }

    pub(crate) fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub(crate) fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub(crate) fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    /// Returns the fields from `at` on.
    pub(crate) fn from(self, at: usize) -> Fields<'a> {
        Fields(self.0.get(at..).unwrap_or_default())
    }
}
