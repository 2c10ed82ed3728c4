//! Disks as the programs of virtual machines store them, and a volume of LVM2, byte for byte.

use crate::sums::repair_disk as repair;

const SECTOR: usize = 512;

/// A file under construction.
struct File(Vec<u8>);

impl File {
    fn new(len: usize) -> File {
        File(vec![0; len])
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Adds bytes at a multiple of a length; returns their offset.
    fn add(&mut self, bytes: &[u8], unit: usize) -> usize {
        self.0.resize(self.0.len().next_multiple_of(unit), 0);
        let at = self.0.len();
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(unit), 0);
        at
    }

    /// The file with its checksums.
    fn finish(mut self) -> Vec<u8> {
        repair(&mut self.0);
        self.0
    }
}

/// Blocks of a disk, the last one in full; `None` for zeros.
fn blocks(disk: &[u8], len: usize) -> impl Iterator<Item = Option<Vec<u8>>> {
    disk.chunks(len).map(move |block| {
        let mut block = block.to_vec();
        block.resize(len, 0);
        Some(block).filter(|block| block.iter().any(|byte| *byte != 0))
    })
}

/// A VHD, fixed or with blocks of 2 KiB.
pub(super) fn vhd(disk: &[u8], is_fixed: bool) -> Vec<u8> {
    let mut footer = vec![0; SECTOR];
    footer[..8].copy_from_slice(b"conectix");
    footer[16..24].copy_from_slice(&(if is_fixed { u64::MAX } else { 512 }).to_be_bytes());
    footer[48..56].copy_from_slice(&(disk.len() as u64).to_be_bytes());
    footer[63] = if is_fixed { 2 } else { 3 };
    if is_fixed {
        return File([disk, &footer].concat()).finish();
    }
    let rows = disk.len().div_ceil(2048);
    let mut file = File(footer.clone());
    let mut header = vec![0; 1024];
    header[..8].copy_from_slice(b"cxsparse");
    header[16..24].copy_from_slice(&1536_u64.to_be_bytes());
    header[28..32].copy_from_slice(&(rows as u32).to_be_bytes());
    header[32..36].copy_from_slice(&2048_u32.to_be_bytes());
    file.add(&header, SECTOR);
    let table = file.add(&vec![0xff; rows * 4], SECTOR);
    for (row, block) in blocks(disk, 2048).enumerate() {
        let Some(block) = block else { continue };
        let at = file.add(&[vec![0xff; SECTOR], block].concat(), SECTOR);
        file.put(table + 4 * row, &((at / SECTOR) as u32).to_be_bytes());
    }
    file.add(&footer, SECTOR);
    file.finish()
}

/// A VDI with blocks of 4 KiB.
pub(super) fn vdi(disk: &[u8]) -> Vec<u8> {
    let rows = disk.len().div_ceil(4096);
    let mut file = File::new(512);
    let data = (512 + 4 * rows).next_multiple_of(SECTOR);
    let words = [(64, 0xbeda_107f), (68, 0x1_0001), (72, 400), (76, 1), (340, 512), (344, data as u32)];
    let more = [(368, disk.len() as u32), (376, 4096), (384, rows as u32)];
    words.iter().chain(&more).for_each(|(at, word): &(usize, u32)| file.put(*at, &word.to_le_bytes()));
    let map = file.add(&vec![0xff; 4 * rows], SECTOR);
    let mut count = 0_u32;
    for (row, block) in blocks(disk, 4096).enumerate() {
        let Some(block) = block else { continue };
        file.0.extend(block);
        file.put(map + 4 * row, &count.to_le_bytes());
        count += 1;
    }
    file.finish()
}

/// Compresses a grain, if that makes it shorter.
type Encode<'a> = &'a mut dyn FnMut(&[u8]) -> Option<Vec<u8>>;

/// A VMDK with grains of 4 KiB in tables of 16; `encode` compresses those of a stream-optimized
/// one.
pub(super) fn vmdk(disk: &[u8], encode: Option<Encode<'_>>) -> Vec<u8> {
    let kind = if encode.is_some() { "streamOptimized" } else { "monolithicSparse" };
    let text =
        format!("# Disk DescriptorFile\nparentCID=ffffffff\ncreateType=\"{kind}\"\nRW 9 SPARSE \"a\"\n");
    let header = |gd: u64| {
        let mut header = vec![0; SECTOR];
        header[..4].copy_from_slice(b"KDMV");
        header[4] = 1;
        let flags: u32 = if kind == "streamOptimized" { 0x3_0001 } else { 7 };
        header[8..12].copy_from_slice(&flags.to_le_bytes());
        header[12..20].copy_from_slice(&(disk.len().div_ceil(SECTOR) as u64).to_le_bytes());
        (header[20], header[28], header[36], header[44]) = (8, 1, 1, 16);
        header[56..64].copy_from_slice(&gd.to_le_bytes());
        header[73..77].copy_from_slice(b"\n \r\n");
        header[77] = u8::from(kind == "streamOptimized");
        header
    };
    let mut file = File(header(u64::MAX));
    file.add(text.as_bytes(), SECTOR);
    let (mut grains, mut encode) = (Vec::new(), encode);
    for (grain, block) in blocks(disk, 4096).enumerate() {
        let stored = block.map(|block| match &mut encode {
            None => block,
            Some(encode) => {
                let bytes = encode(&block).unwrap_or_default();
                [&(grain as u64 * 8).to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes(), &bytes].concat()
            }
        });
        grains.push(stored.map_or(0, |stored| file.add(&stored, SECTOR) / SECTOR));
    }
    let word = |word: &usize| (*word as u32).to_le_bytes();
    let tables: Vec<usize> = grains
        .chunks(16)
        .map(|table| {
            let mut bytes: Vec<u8> = table.iter().flat_map(word).collect();
            bytes.resize(64, 0);
            file.add(&bytes, SECTOR) / SECTOR
        })
        .collect();
    let mut directory = || {
        let bytes: Vec<u8> = tables.iter().flat_map(word).collect();
        (file.add(&bytes, SECTOR) / SECTOR) as u64
    };
    let gd = directory();
    if encode.is_some() {
        file.add(&[vec![0; SECTOR], header(gd), vec![0; SECTOR]].concat(), SECTOR);
    } else {
        let copy = directory();
        file.put(0, &header(gd));
        file.put(48, &copy.to_le_bytes());
    }
    file.finish()
}

/// An Android sparse image with raw chunks of two blocks, fills, gaps, and a checksum.
pub(super) fn sparse(disk: &[u8]) -> Vec<u8> {
    let mut file = File::new(28);
    let mut count = 0_u32;
    let mut chunk = |file: &mut File, kind: u16, blocks: u32, data: &[u8]| {
        let len = 12 + data.len() as u32;
        let head = [u32::from(kind).to_le_bytes(), blocks.to_le_bytes(), len.to_le_bytes()].concat();
        file.0.extend([&head, data].concat());
        count += 1;
    };
    for pair in blocks(disk, 1024).collect::<Vec<_>>().chunks(2) {
        match pair {
            [Some(first), Some(second)] => chunk(&mut file, 0xcac1, 2, &[&first[..], second].concat()),
            [None, None] => chunk(&mut file, 0xcac3, 2, &[]),
            pair => pair.iter().for_each(|block| match block {
                Some(block) => chunk(&mut file, 0xcac1, 1, block),
                None => chunk(&mut file, 0xcac2, 1, &[0; 4]),
            }),
        }
    }
    chunk(&mut file, 0xcac2, 1, b"fill");
    chunk(&mut file, 0xcac4, 0, &[0; 4]);
    let words = [0xed26_ff3a, 1, 28 | 12 << 16, 1024, disk.len().div_ceil(1024) as u32 + 1, count];
    file.put(0, &words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect::<Vec<_>>());
    file.finish()
}

/// A volume of LVM2 in two segments of extents of 4 KiB, the second half of the image first.
pub(super) fn lvm(image: &[u8]) -> Vec<u8> {
    let extents = image.len().div_ceil(4096).max(2);
    let half = extents / 2;
    let rest = extents - half;
    let text = format!(
        "vg {{\nid = \"v\"\nseqno = 1\nextent_size = 8\nphysical_volumes {{\npv0 {{\nid = \"{}\"\n\
         pe_start = 32\n}}\n}}\nlogical_volumes {{\nroot {{\nstatus = [\"READ\", \"VISIBLE\"]\n\
         segment1 {{\nstart_extent = 0\nextent_count = {half}\ntype = \"striped\"\nstripes = [\"pv0\", {rest}]\n}}\n\
         segment2 {{\nstart_extent = {half}\nextent_count = {rest}\ntype = \"striped\"\nstripes = [\"pv0\", 0]\n}}\n\
         }}\nswap {{\nstatus = [\"VISIBLE\"]\nsegment1 {{\nstart_extent = 0\nextent_count = 1\ntype = \"thin\"\n}}\n}}\n}}\n}}\n",
        "a".repeat(32)
    );
    let mut file = File::new(16 << 10);
    file.put(512, b"LABELONE\x01\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0LVM2 001");
    file.put(544, &[b'a'; 32]);
    let words = [(16 << 10) + extents as u64 * 4096, 16 << 10, 0, 0, 0, 4096, 4096, 8192, 4096, 0, 0];
    file.put(576, &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
    for area in [4096, 8192] {
        file.put(area + 4, b" LVM2 x[5A%r0N*>\x01\0\0\0");
        // The text goes on at the start of the ring.
        let (start, len) = (4096 - 200, text.len() as u64);
        let words = [area as u64, 4096, start as u64, len];
        file.put(area + 24, &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
        let (first, second) = text.as_bytes().split_at(200);
        file.put(area + start, first);
        file.put(area + 512, second);
    }
    let mut image = image.to_vec();
    image.resize(extents * 4096, 0);
    file.0.extend(&image[half * 4096..]);
    file.0.extend(&image[..half * 4096]);
    file.finish()
}
