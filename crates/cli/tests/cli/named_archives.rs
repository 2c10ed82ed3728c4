//! Archives under the names of tools: each reads the kinds that the tool reads.

use super::names::Names;
use std::io::{Cursor, Write};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Returns a zip archive with files of these names and contents; a name with `/` at its end is a
/// directory.
fn zipped(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        let options = SimpleFileOptions::default().unix_permissions(0o640);
        match name.strip_suffix('/') {
            Some(dir) => writer.add_directory(dir, options.unix_permissions(0o700)).unwrap(),
            None => writer.start_file(*name, options).unwrap(),
        }
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn zip_lays_archives_over_each_other_and_tells_what_is_replaced() {
    let names = Names::new();
    let low = zipped(&[("dir/", ""), ("dir/both", "low"), ("low", "1"), ("implied/a", "2"), ("kind", "3")]);
    std::fs::write(names.path("low.zip"), low).unwrap();
    let high = zipped(&[("dir/both", "high"), ("high", "4"), ("implied/b", "5"), ("kind/", "")]);
    std::fs::write(names.path("high.zip"), high).unwrap();
    let run = names.ours("mksquashfs", "low.zip high.zip out.sqfs -zip -default-mode 750").ended(0);
    assert_eq!(run.stderr.matches("replaces that of an archive before").count(), 2, "{}", run.stderr);
    assert!(run.stderr.contains("/dir/both of \"high.zip\""), "{}", run.stderr);
    names.ours("unsquashfs", "-d out out.sqfs").done();
    let read = |name: &str| std::fs::read_to_string(names.path("out").join(name)).unwrap();
    let contents = ["dir/both", "low", "high", "implied/a", "implied/b"].map(read);
    assert_eq!(contents, ["high", "1", "4", "2", "5"]);
    assert!(names.path("out/kind").is_dir());
    let listed = names.ours("unsquashfs", "-lls out.sqfs");
    for line in ["drwx------", "drwxr-x---", "-rw-r-----"] {
        assert!(listed.text().contains(line), "{line}: {}", listed.text());
    }
    let globs = names.ours("mksquashfs", "low.zip globs.sqfs -zip -wildcards -e dir").ended(0);
    assert!(globs.stderr.contains("1 directory has no entry in the archive"), "{}", globs.stderr);
    assert!(!names.ours("unsquashfs", "-l globs.sqfs").text().contains("both"));
}

#[test]
fn zip_is_refused_with_what_reads_something_else() {
    let names = Names::new();
    std::fs::write(names.path("a.zip"), zipped(&[("a", "1")])).unwrap();
    std::fs::write(names.path("a.cpio"), cpio()).unwrap();
    for (line, code, words) in [
        ("a.zip new -zip -tar", 1, "-tar is not supported with -zip"),
        ("a.zip new -zip -cpiostyle", 1, "only one of"),
        ("a.zip new -zip -pf -", 1, "only one of"),
        ("a.zip new -zip -e a", 1, "need -wildcards or -regex with -zip"),
        ("a.cpio new -zip", 1, "found a cpio archive, only a zip archive is allowed"),
        ("rootfs new -zip", 1, "rootfs"),
        ("none.zip new -zip", 1, "none.zip"),
    ] {
        let run = names.ours("mksquashfs", line);
        assert_eq!(run.code, Some(code), "{line}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{line}: {}", run.stderr);
        assert!(!names.path("new").exists(), "{line}");
    }
}

/// Returns an archive without members.
fn cpio() -> Vec<u8> {
    let fields = [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 11, 0].map(|field| format!("{field:08X}"));
    format!("070701{}TRAILER!!!\0\0\0\0", fields.concat()).into_bytes()
}

#[test]
fn tools_for_tar_archives_refuse_others_by_their_names() {
    let names = Names::new();
    std::fs::write(names.path("a.zip"), zipped(&[("a", "1")])).unwrap();
    std::fs::write(names.path("a.cpio"), cpio()).unwrap();
    for (archive, kind) in [("a.zip", "a zip archive"), ("a.cpio", "a cpio archive")] {
        let stdin = names.path(archive);
        for (tool, args, stdin) in [
            ("sqfstar", &["new"][..], Some(&stdin)),
            ("mksquashfs", &["-", "new", "-tar"], Some(&stdin)),
            ("tar2sqfs", &["new"], Some(&stdin)),
            ("mkfs.erofs", &["--tar=f", "new", archive], None),
        ] {
            let run = names.ours_with(tool, args, stdin.map(|path| path.as_path()));
            assert!(!matches!(run.code, Some(0)), "{tool} {archive}");
            let words = format!("found {kind}, only a tar archive is allowed");
            assert!(run.stderr.contains(&words), "{tool} {archive}: {}", run.stderr);
        }
    }
}
