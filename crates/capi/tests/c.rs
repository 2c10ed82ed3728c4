//! Programs in C that use the library: compiled with warnings as errors, run as they are, under
//! AddressSanitizer, and under valgrind; the header and the example.

use packfs::source::Shape;
use packfs::{OpenOptions, Silent, Source};
use packfs_testkit::{Random, RangeServer, skip};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

// Its tests are run here: the library itself has no program of tests.
#[path = "../src/words.rs"]
mod words;

/// Options of the compiler for every program.
const STRICT: [&str; 7] = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-D_GNU_SOURCE", "-g"];
/// Libraries that the static library needs, as packfs.pc names them for `pkg-config --static`.
const PRIVATE_LIBS: [&str; 5] = ["-lgcc_s", "-lpthread", "-lm", "-ldl", "-lc"];
/// Damaged images that are read.
const DAMAGED: u64 = 120;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Folder of what cargo has built.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// A folder with the library under its name, an image of each format, and programs.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// Makes it; `None` without a C compiler.
    fn new() -> Option<Self> {
        if !is_there("cc") {
            skip("no C compiler (cc)");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        // The name that the linker looks for, and the one that programs do.
        for name in ["libpackfs.so", "libpackfs.so.0.1"] {
            let library = built().join("libpackfs_capi.so");
            std::os::unix::fs::symlink(library, folder.path().join(name)).unwrap();
        }
        Some(Place { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Compiles a program of the crate.
    fn compile(&self, source: &str, options: &[&str]) -> PathBuf {
        let program = self.path(Path::new(source).file_stem().unwrap().to_str().unwrap());
        let mut cc = Command::new("cc");
        cc.args(STRICT).arg("-I").arg(folder().join("include")).arg(folder().join(source));
        cc.arg("-L").arg(self.folder.path()).args(options).arg("-lpackfs").arg("-o").arg(&program);
        cc.arg(format!("-Wl,-rpath,{}", self.folder.path().display()));
        succeeds(cc.output().unwrap());
        program
    }

    /// Packs the tree that `api.c` expects; returns the image and the digest of the tree.
    fn pack(&self, name: &str) -> (PathBuf, String) {
        let mut manifest = String::from("#packfs-manifest 1\ndefault mtime=1234567890\ndir /\ndir /many\n");
        manifest += "file /hello mode=0640 data=\"hello\\n\" xattr.user.name=\"a\\x00b\"\n";
        manifest += "symlink /link target=hello\nsymlink /loop target=loop\nchar /null major=1 minor=3\n";
        for number in 0..300 {
            let letter = &"abcdefghijklmnopqrstuvwxyz"[number % 26..][..1];
            let data = letter.repeat(number * 100);
            writeln!(manifest, "file /many/{number} data=\"{data}\"").unwrap();
        }
        let (source, image) = (self.path("manifest"), self.path(name));
        std::fs::write(&source, manifest).unwrap();
        packfs::pack(&source, &image).run().unwrap();
        let loaded = Source::detect(&source).unwrap();
        let loaded = loaded.load_with(&OpenOptions::new(), &Shape::default(), &Silent).unwrap();
        let facts = packfs::integrity::DigestFacts::default();
        let digests =
            packfs::integrity::digest_tree(&loaded.tree, &*loaded.contents, facts, 0, &Silent).unwrap();
        (image, digests.root().to_string())
    }

    /// Runs the test program on an image of each format.
    fn run_api(&self, command: &[&str], options: &[&str]) {
        let program = self.compile("tests/api.c", &[options, &["-pthread"]].concat());
        for name in ["tree.sqfs", "tree.erofs"] {
            let (image, digest) = self.pack(name);
            succeeds(run(command, &program, &[image.as_os_str(), digest.as_ref()]));
        }
    }
}

/// Runs a program, with another before it, such as valgrind.
fn run(before: &[&str], program: &Path, arguments: &[&std::ffi::OsStr]) -> Output {
    let words = before.iter().map(std::ffi::OsStr::new).chain([program.as_os_str()]);
    let words: Vec<_> = words.chain(arguments.iter().copied()).collect();
    Command::new(words[0]).args(&words[1..]).output().unwrap()
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn succeeds(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// True if programs can be built with AddressSanitizer here.
fn has_sanitizer(place: &Place) -> bool {
    let empty = place.path("empty.c");
    std::fs::write(&empty, "int main(void) { return 0; }\n").unwrap();
    let mut cc = Command::new("cc");
    cc.arg("-fsanitize=address,undefined").arg(&empty).arg("-o").arg(place.path("empty"));
    let works = cc.output().unwrap().status.success();
    if !works {
        skip("the C compiler has no AddressSanitizer");
    }
    works
}

#[test]
fn the_header_is_up_to_date() {
    let config = cbindgen::Config::from_file(folder().join("cbindgen.toml")).unwrap();
    let builder = cbindgen::Builder::new().with_config(config);
    let sources = ["src/handles.rs", "src/named.rs", "src/types.rs", "src/api.rs"];
    let sources = sources.map(|source| folder().join(source));
    let builder = sources.into_iter().fold(builder, cbindgen::Builder::with_src);
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    let path = folder().join("include/packfs.h");
    if std::env::var_os("PACKFS_WRITE_DOCUMENTS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read(&path).unwrap_or_default();
    let command = "PACKFS_WRITE_DOCUMENTS=1 cargo test -p packfs-capi header";
    assert!(written == text, "include/packfs.h is out of date; `{command}` writes it");
}

#[test]
fn every_function_keeps_its_promises() {
    let Some(place) = Place::new() else { return };
    place.run_api(&[], &[]);
    if is_there("c++") {
        let mut compiler = Command::new("c++");
        compiler.args(["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++"]);
        succeeds(compiler.arg(folder().join("include/packfs.h")).output().unwrap());
    }
}

#[test]
fn memory_is_right_under_the_address_sanitizer() {
    let Some(place) = Place::new() else { return };
    if !has_sanitizer(&place) {
        return;
    }
    let options = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    place.run_api(&[], &options);
    read_damaged(&place, &place.path("api"));
}

/// Reads images with changed bytes, most of them in metadata: no crash, no error of memory, an end.
fn read_damaged(place: &Place, program: &Path) {
    let mut random = Random::new(25);
    for name in ["tree.sqfs", "tree.erofs"] {
        let image = std::fs::read(place.path(name)).unwrap();
        let damaged = (0..DAMAGED).map(|number| {
            let mut bytes = image.clone();
            for _ in 0..=number % 4 {
                // The superblock and the end hold most of the numbers.
                let at = match random.below(3) {
                    0 => random.below(128),
                    1 => image.len() as u64 - 1 - random.below(image.len() as u64 / 8),
                    _ => random.below(image.len() as u64),
                };
                bytes[at as usize] = random.below(256) as u8;
            }
            let path = place.path(&format!("{number}-{name}"));
            std::fs::write(&path, bytes).unwrap();
            path
        });
        let damaged: Vec<_> = damaged.collect();
        let words: Vec<_> =
            ["--read".as_ref()].into_iter().chain(damaged.iter().map(|path| path.as_os_str())).collect();
        succeeds(run(&[], program, &words));
    }
}

#[test]
fn memory_is_right_under_valgrind() {
    let Some(place) = Place::new() else { return };
    if !is_there("valgrind") {
        skip("valgrind is missing");
        return;
    }
    let valgrind = [
        "valgrind",
        "--quiet",
        "--error-exitcode=9",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
    ];
    place.run_api(&valgrind, &[]);
}

#[test]
fn the_static_library_links() {
    let Some(place) = Place::new() else { return };
    let program = place.path("static");
    let mut cc = Command::new("cc");
    cc.args(STRICT).arg("-I").arg(folder().join("include")).arg(folder().join("examples/ls.c"));
    cc.arg(built().join("libpackfs_capi.a")).args(PRIVATE_LIBS).arg("-o").arg(&program);
    succeeds(cc.output().unwrap());
    let (image, _) = place.pack("tree.sqfs");
    assert_eq!(succeeds(run(&[], &program, &[image.as_os_str(), "hello".as_ref()])), "hello\n");
}

#[test]
fn the_example_lists_and_reads_files_and_urls() {
    let Some(place) = Place::new() else { return };
    let program = place.compile("examples/ls.c", &[]);
    let (image, _) = place.pack("tree.erofs");
    let listing = succeeds(run(&[], &program, &[image.as_os_str()]));
    assert!(listing.starts_with("040755          0 /\n"), "{listing}");
    assert!(listing.contains("\n100640          6 /hello\n"), "{listing}");
    assert!(listing.ends_with("4485006 bytes, format erofs\n"), "{listing}");

    let server = RangeServer::new(std::fs::read(&image).unwrap());
    let url = server.url("/tree.erofs");
    assert_eq!(succeeds(run(&[], &program, &[url.as_ref(), "/link".as_ref()])), "hello\n");

    let missing = run(&[], &program, &[image.as_os_str(), "helo".as_ref()]);
    let said = String::from_utf8(missing.stderr).unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(said.contains("no such path") && said.contains("hint: did you mean \"hello\"?"), "{said}");
    assert!(said.contains("(error 2)"), "{said}");
}
