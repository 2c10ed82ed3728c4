//! cpio archives in the format that kernels unpack at boot (`newc`,
//! Documentation/driver-api/early-userspace).

/// A cpio archive that is being written; root owns all entries.
#[derive(Default)]
pub struct Cpio {
    bytes: Vec<u8>,
    count: u32,
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

impl Cpio {
    /// Adds a folder; its parents must be added before.
    pub fn dir(&mut self, path: &str) {
        self.member(path, DIRECTORY, &[]);
    }

    pub fn file(&mut self, path: &str, bytes: &[u8]) {
        self.member(path, PROGRAM, bytes);
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.member("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn member(&mut self, path: &str, mode: u32, bytes: &[u8]) {
        self.count += 1;
        let (len, name_len) = (bytes.len() as u32, path.len() as u32 + 1);
        // Inode, mode, owner, group, links, mtime, length, device (2), device of a node (2), length
        // of the name, checksum.
        let figures = [self.count, mode, 0, 0, 1, 0, len, 0, 0, 0, 0, name_len, 0];
        self.bytes.extend_from_slice(b"070701");
        for figure in figures {
            self.bytes.extend_from_slice(format!("{figure:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(bytes);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_start_at_multiples_of_four() {
        let mut cpio = Cpio::default();
        cpio.dir("d");
        cpio.file("d/file", b"12345");
        let bytes = cpio.finish();
        let starts: Vec<_> = bytes.windows(6).enumerate().filter(|(_, w)| w == b"070701").collect();
        assert_eq!(starts.len(), 3);
        assert!(starts.iter().all(|(at, _)| at % 4 == 0));
        assert!(bytes.ends_with(b"TRAILER!!!\0\0\0\0"));
    }
}
