//! Disks written by qemu-img: what goes in comes out, for every version, cluster size, codec, state
//! and chain of backing files.

use packfs::{ErrorKind, OpenOptions, Opened, Severity};
use packfs_testkit::{Peer, Random, peer};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

const MIB: usize = 1 << 20;

/// Text, noise, zeros, in no whole number of clusters.
fn raw_disk() -> Vec<u8> {
    let mut random = Random::new(11);
    [random.text(MIB), random.noise(MIB / 2), vec![0; 3 * MIB], random.text(MIB + 512), random.noise(1536)]
        .concat()
}

fn outer(path: &Path) -> Opened {
    OpenOptions::new().outermost().open(path).unwrap_or_else(|error| panic!("{error}"))
}

/// The disk in an image, which has to be sound, in one piece and in many.
#[track_caller]
fn disk(opened: &Opened, what: &str) -> Vec<u8> {
    assert_eq!(opened.format().name(), "qcow2");
    let mut faults = Vec::new();
    opened.volume().check(&mut |finding| faults.push(finding)).unwrap();
    faults.retain(|finding| finding.severity > Severity::Note);
    assert!(faults.is_empty(), "{what}: {faults:?}");
    let owned: u64 = opened.volume().space().unwrap().iter().map(|owner| owner.len).sum();
    assert_eq!(owned, opened.image().len(), "{what}");
    let disk = opened.read("disk.img").unwrap();
    let file = opened.open_file("disk.img").unwrap();
    let mut random = Random::new(3);
    for _ in 0..100 {
        let at = random.below(disk.len() as u64) as usize;
        let mut buf = vec![0; (random.below(70_000) as usize).min(disk.len() - at)];
        assert_eq!(file.read_at(at as u64, &mut buf).unwrap(), buf.len());
        assert!(buf == disk[at..at + buf.len()], "{what}: {} bytes at {at}", buf.len());
    }
    disk
}

/// Runs qemu-img, and returns true if it knows the option.
fn qemu_img(qemu: &Peer, folder: &Path, words: &[&str]) -> bool {
    let words: Vec<&dyn AsRef<std::ffi::OsStr>> = words.iter().map(|word| word as _).collect();
    let mut command = qemu.command(&words);
    command.current_dir(folder).stdin(Stdio::null()).output().unwrap().status.success()
}

#[test]
fn every_form_of_an_image_gives_the_disk_that_was_converted() {
    let Some(qemu) = peer("qemu-img") else { return };
    let folder = tempfile::tempdir().unwrap();
    let raw = raw_disk();
    fs::write(folder.path().join("raw"), &raw).unwrap();
    let rows: [(&[&str], &str); 13] = [
        (&[], "compat=0.10"),
        (&["-c"], "compat=0.10"),
        (&[], "compat=1.1"),
        (&["-c"], "compat=1.1"),
        (&["-c"], "compression_type=zstd"),
        (&["-c"], "cluster_size=512"),
        (&[], "cluster_size=512"),
        (&["-c"], "cluster_size=4K,compression_type=zstd"),
        (&["-c"], "cluster_size=2M"),
        (&[], "cluster_size=2M"),
        (&[], "extended_l2=on"),
        (&["-c"], "extended_l2=on,cluster_size=128K"),
        (&[], "preallocation=metadata"),
    ];
    std::thread::scope(|scope| {
        for (index, (compressed, options)) in rows.into_iter().enumerate() {
            let (qemu, folder, raw) = (&qemu, folder.path(), &raw);
            scope.spawn(move || {
                let name = format!("{index}.qcow2");
                let words = ["convert", "-f", "raw", "-O", "qcow2", "-o", options, "raw", &name];
                assert!(
                    qemu_img(qemu, folder, &[&words[..1], compressed, &words[1..]].concat()),
                    "{options}"
                );
                assert!(disk(&outer(&folder.join(&name)), options) == *raw, "{compressed:?} {options}");
            });
        }
    });
}

/// Writes a pattern into an image.
fn write(folder: &Path, image: &str, byte: u8, at: &str) {
    let command = format!("write -P {byte} {at}");
    let done =
        peer("qemu-io").unwrap().command(&[&"-c", &command, &image]).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn converted(qemu: &Peer, folder: &Path, words: &[&str], image: &str) -> Vec<u8> {
    assert!(qemu_img(qemu, folder, &[&["convert", "-O", "raw"], words, &[image, "out"]].concat()));
    fs::read(folder.join("out")).unwrap()
}

#[test]
fn states_of_a_disk_are_those_of_its_snapshots() {
    let (Some(qemu), Some(_)) = (peer("qemu-img"), peer("qemu-io")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for options in ["cluster_size=64K", "cluster_size=32K,extended_l2=on"] {
        assert!(qemu_img(&qemu, folder, &["create", "-f", "qcow2", "-o", options, "a", "4M"]));
        write(folder, "a", 1, "10k 300k");
        assert!(qemu_img(&qemu, folder, &["snapshot", "-c", "first", "a"]));
        write(folder, "a", 2, "100k 1M");
        assert!(qemu_img(&qemu, folder, &["snapshot", "-c", "second", "a"]));
        write(folder, "a", 3, "2M 5k");
        for (name, words) in
            [(None, &[][..]), (Some("first"), &["-l", "first"]), (Some("2"), &["-l", "snapshot.id=2"])]
        {
            let opening = OpenOptions::new().outermost();
            let opening = name.into_iter().fold(opening, |opening, name| opening.snapshot(name));
            let opened = opening.open(folder.join("a")).unwrap();
            assert!(disk(&opened, options) == converted(&qemu, folder, words, "a"), "{options} {name:?}");
        }
        let error = OpenOptions::new().snapshot("third").open(folder.join("a")).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(error.hints(), ["snapshots in it: first (1), second (2)"]);
    }
}

#[test]
fn chains_of_backing_files_are_read_as_far_as_they_are_given() {
    let (Some(qemu), Some(_)) = (peer("qemu-img"), peer("qemu-io")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("base"), raw_disk()).unwrap();
    let create = |base: &str, format: &str, options: &str, name: &str, len: &[&str]| {
        let words = ["create", "-f", "qcow2", "-o", options, "-b", base, "-F", format, name];
        assert!(qemu_img(&qemu, folder, &[&words, len].concat()));
    };
    create("base", "raw", "cluster_size=4K", "middle", &[]);
    write(folder, "middle", 7, "1M 3k");
    create("middle", "qcow2", "cluster_size=64K,extended_l2=on", "top", &["12M"]);
    write(folder, "top", 8, "1030k 1k");
    write(folder, "top", 9, "9M 100k");
    let opened = OpenOptions::new().outermost();
    let opened = opened.allow_backing(folder.join("middle")).allow_backing(folder.join("base"));
    assert!(disk(&opened.open(folder.join("top")).unwrap(), "chain") == converted(&qemu, folder, &[], "top"));
    // The compressed clusters of one larger than those of the image above it.
    assert!(qemu_img(&qemu, folder, &["convert", "-c", "-O", "qcow2", "base", "packed"]));
    create("packed", "qcow2", "cluster_size=4K", "small", &[]);
    write(folder, "small", 6, "5k 9k");
    let opened =
        OpenOptions::new().outermost().allow_backing(folder.join("packed")).open(folder.join("small"));
    assert!(disk(&opened.unwrap(), "small") == converted(&qemu, folder, &[], "small"));
    let error =
        OpenOptions::new().allow_backing(folder.join("middle")).open(folder.join("top")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("\"base\""), "{error}");
}

#[test]
fn data_elsewhere_and_dirty_images_are_told_of() {
    let Some(qemu) = peer("qemu-img") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(qemu_img(&qemu, folder, &["create", "-f", "qcow2", "-o", "data_file=data", "a", "1M"]));
    let error = OpenOptions::new().open(folder.join("a")).err().unwrap();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("external data file"));
    assert!(qemu_img(&qemu, folder, &["create", "-f", "qcow2", "b", "1M"]));
    let mut bytes = fs::read(folder.join("b")).unwrap();
    bytes[79] |= 1;
    fs::write(folder.join("b"), bytes).unwrap();
    assert!(outer(&folder.join("b")).warnings()[0].contains("not closed cleanly"));
}

/// A disk with a GPT by sfdisk, and an image in its second partition.
fn partitioned(folder: &Path, image: &[u8]) -> Option<PathBuf> {
    use std::io::Write;
    let sfdisk = peer("sfdisk")?;
    let path = folder.join("disk");
    fs::File::create(&path).unwrap().set_len(16 << 20).unwrap();
    let mut command = sfdisk.command(&[&"--no-reread", &"--no-tell-kernel", &"--quiet", &path]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let script = "label: gpt\nstart=2048, size=2048, type=U\nstart=4096, size=16384, type=L\n";
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let mut disk = fs::read(&path).unwrap();
    disk[4096 * 512..][..image.len()].copy_from_slice(image);
    fs::write(&path, disk).unwrap();
    Some(path)
}

#[test]
fn a_filesystem_in_a_partition_of_a_disk_opens() {
    let Some(qemu) = peer("qemu-img") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir_all(folder.join("tree/etc")).unwrap();
    fs::write(folder.join("tree/etc/hosts"), "127.0.0.1 localhost\n".repeat(9000)).unwrap();
    for format in ["squashfs", "erofs"] {
        let image = folder.join(format);
        packfs::pack(folder.join("tree"), &image).format(format).run().unwrap();
        if partitioned(folder, &fs::read(&image).unwrap()).is_none() {
            return;
        }
        assert!(qemu_img(&qemu, folder, &["convert", "-c", "-O", "qcow2", "disk", "disk.qcow2"]));
        for opening in [OpenOptions::new(), OpenOptions::new().part("p2")] {
            let opened = opening.open(folder.join("disk.qcow2")).unwrap();
            assert_eq!(opened.format().name(), format);
            let layers: Vec<_> = opened.layers().iter().map(|it| (it.format, it.file.as_str())).collect();
            assert_eq!(layers, [("qcow2", "disk.img"), ("partitions", "p2")]);
            assert!(opened.read("etc/hosts").unwrap() == fs::read(folder.join("tree/etc/hosts")).unwrap());
        }
    }
}

#[test]
fn a_scan_finds_images_and_their_ends() {
    let Some(qemu) = peer("qemu-img") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("raw"), raw_disk()).unwrap();
    assert!(qemu_img(&qemu, folder, &["convert", "-O", "qcow2", "raw", "a"]));
    let image = fs::read(folder.join("a")).unwrap();
    let blob = [&[0xff; 12_345][..], &image, &Random::new(1).noise(9999)].concat();
    let blob = Arc::new(packfs::MemoryImage::new("blob", blob));
    let found = packfs::scan(blob, packfs::ScanOptions::new(), &packfs::Silent).unwrap();
    let rows: Vec<_> = found.iter().map(|it| (it.format.name(), it.offset, it.len)).collect();
    assert_eq!(rows, [("qcow2", 12_345, Some(image.len() as u64))]);
}
