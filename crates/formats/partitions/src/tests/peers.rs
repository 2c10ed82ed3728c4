//! Disks partitioned by sfdisk.

use super::*;
use packfs_testkit::{Peer, peer};
use std::io::Write;
use std::process::Stdio;

fn partitioned(peer: &Peer, script: &str) -> Disk {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    std::fs::File::create(&path).unwrap().set_len(16 << 20).unwrap();
    let mut command = peer.command(&[&"--no-reread", &"--no-tell-kernel", &"--quiet", &path]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    Disk { bytes: std::fs::read(&path).unwrap(), sector_len: 512 }
}

#[test]
fn disks_of_sfdisk_are_read() {
    let Some(sfdisk) = peer("sfdisk") else { return };
    let script = "label: dos\nstart=2048, size=2048, type=83\nstart=4096, size=2048, type=c, bootable\n\
        start=8192, size=16384, type=5\nstart=10240, size=2048, type=83\nstart=14336, size=1024, type=82\n";
    let disk = partitioned(&sfdisk, script);
    assert!(disk.probe());
    let found = disk.partitions();
    let rows: Vec<_> = found.iter().map(|(name, start, len)| (&**name, start / 512, len / 512)).collect();
    assert_eq!(rows, [("p1", 2048, 2048), ("p2", 4096, 2048), ("p5", 10240, 2048), ("p6", 14336, 1024)]);
    assert_eq!(disk.findings(), []);

    let script =
        "label: gpt\nstart=2048, size=2048, type=U, name=esp\nstart=4096, size=8192, type=L, name=\"röot\"\n";
    let disk = partitioned(&sfdisk, script);
    assert!(disk.probe());
    let found = disk.partitions();
    let rows: Vec<_> = found.iter().map(|(name, start, len)| (&**name, start / 512, len / 512)).collect();
    assert_eq!(rows, [("p1", 2048, 2048), ("p2", 4096, 8192)]);
    assert_eq!(disk.findings(), []);
    let facts = format!("{:?}", disk.open().unwrap().facts().unwrap());
    assert!(facts.contains("EFI system") && facts.contains("röot") && facts.contains("p2: Linux"), "{facts}");
    assert_eq!(disk.open().unwrap().image_len(), Some(16 << 20));
}
