//! Zeros in archives are holes, whatever the archive, and wherever contents lie.

use super::{load, path};
use crate::tar_gaps::{archive, gzip, member};
use packfs_core::NodeKind;
use std::ops::Range;

const UNIT: usize = 64 << 10;

fn runs(bytes: &[u8]) -> Vec<Range<u64>> {
    let loaded = load(bytes);
    let node = loaded.tree.node(loaded.tree.find(&path("f")).unwrap());
    let NodeKind::File { len, content } = node.kind else { panic!("a file") };
    let mut reader = loaded.contents.open(content).unwrap();
    let (mut runs, mut at) = (Vec::new(), 0);
    while let Some(run) = reader.next_data(at).unwrap() {
        at = run.end;
        runs.push(run);
        if at >= len {
            break;
        }
    }
    runs
}

#[test]
fn long_zeros_of_any_archive_are_holes() {
    let mut data = vec![0; 10 * UNIT + 5];
    data[3 * UNIT + 7] = 1;
    data[4 * UNIT] = 1;
    data[9 * UNIT - 1] = 1;
    let wanted = [3, 5, 8, 9].map(|unit| (unit * UNIT) as u64);
    let wanted = [wanted[0]..wanted[1], wanted[2]..wanted[3]];
    let tar = archive(&[member("f", b'0', "", &data)]);
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("f", zip::write::SimpleFileOptions::default()).unwrap();
    std::io::Write::write_all(&mut zip, &data).unwrap();
    let zip = zip.finish().unwrap().into_inner();
    for bytes in [&tar, &gzip(&tar), &zip] {
        assert_eq!(runs(bytes), wanted);
    }
    let short = vec![0; UNIT - 1];
    assert_eq!(
        runs(&archive(&[member("f", b'0', "", &short)])),
        vec![Range { start: 0, end: UNIT as u64 - 1 }]
    );
    let empty: [Range<u64>; 0] = [];
    assert_eq!(runs(&archive(&[member("f", b'0', "", &vec![0; 3 * UNIT])])), empty);
}
