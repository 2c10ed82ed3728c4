//! fakeroot and pseudo: what they pretend is packed, and what is unpacked is what they are told of.

use crate::fixture::{Fixture, Run};
use packfs_testkit::{is_root, output_of_copy, peer};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

/// Every way in which a program may be made to believe that it is root: by messages of System V, by
/// a socket, by paths.
const INTERPOSERS: [&[&str]; 4] =
    [&["fakeroot-sysv"], &["fakeroot-sysv", "-u"], &["fakeroot-tcp"], &["fakeroot-pseudo"]];

/// Makes a tree that only root could.
const MAKE: &str = "
    mkdir -p t/dev t/d && echo hello > t/f && echo x > t/d/g && ln -s f t/l && ln t/f t/hard && mkfifo t/p
    mknod t/dev/null c 1 3 && mknod t/dev/sda b 8 0
    chown 12:34 t/f && chown -h 5:6 t/l && chown 9:9 t/dev/sda && chmod 0660 t/dev/sda && chown 3:4 t/p
    chmod 4755 t/d/g && chmod 000 t/f
    if setfattr -n user.note -v 1 t/d/g; then :; fi 2> /dev/null
    chmod 0700 t/d && chown 77:88 t/d
";

/// Runs a script under an interposer as an unprivileged user; `None` if the interposer is
/// missing.
fn run(fixture: &Fixture, interposer: &[&str], script: &str) -> Option<Run> {
    let mut command = peer(interposer[0])?.command(&[]);
    command.args(&interposer[1..]).arg("--").args(["sh", "-c", &format!("set -e\n{script}")]);
    // Where it was built may be closed to others.
    let program = fixture.path(".program");
    if !program.exists() {
        std::fs::copy(env!("CARGO_BIN_EXE_packfs"), &program).unwrap();
    }
    std::fs::set_permissions(fixture.path(""), PermissionsExt::from_mode(0o777)).unwrap();
    command.current_dir(fixture.path("")).env("HOME", fixture.path("")).env("packfs", &program);
    if is_root() {
        command.uid(65_534).gid(65_534);
    }
    Some(Run::of(output_of_copy(&mut command)))
}

#[track_caller]
fn done(run: &Run) {
    assert_eq!(run.code, Some(0), "{}\n{}", run.stderr, run.text());
}

#[test]
fn pretended_owners_modes_and_devices_are_packed() {
    for interposer in INTERPOSERS {
        let fixture = Fixture::new();
        let script = format!(
            "{MAKE}
            for image in t.sqfs t.erofs t.iso t.tar; do
                if [ $image = t.tar ]; then \"$packfs\" tar t.sqfs -q -o t.tar; else \"$packfs\" pack -q t $image; fi
                \"$packfs\" diff t $image
            done
            \"$packfs\" digest t"
        );
        let Some(run) = run(&fixture, interposer, &script) else { return };
        done(&run);
        for image in ["t.sqfs", "t.erofs", "t.iso"] {
            let listed = fixture.run(["ls", "-lR", image]);
            let rows: Vec<Vec<&str>> =
                listed.text().lines().map(|line| line.split_whitespace().collect()).collect();
            for (name, mode, owner) in [
                ("f", "----------", "12/34"),
                ("hard", "----------", "12/34"),
                ("l", "lrwxrwxrwx", "5/6"),
                ("p", "prw-r--r--", "3/4"),
                ("d", "drwx------", "77/88"),
                ("g", "-rwsr-xr-x", "0/0"),
                ("null", "crw-r--r--", "0/0"),
                ("sda", "brw-rw----", "9/9"),
            ] {
                // What was never told of is the true owner's with -u.
                let told = !interposer.contains(&"-u") || owner != "0/0";
                let is_it = |row: &&Vec<&str>| {
                    row.len() > 2 && row[0] == mode && (row[2] == owner || !told) && {
                        let last =
                            row[5..].iter().position(|&word| word == "->").map_or(row.len(), |at| at + 5);
                        row[last - 1].rsplit('/').next() == Some(name)
                    }
                };
                assert!(
                    rows.iter().any(|row| is_it(&row)),
                    "{interposer:?} {image} {name}:\n{}",
                    listed.text()
                );
            }
        }
        let digest = fixture.run(["digest", "t.sqfs"]);
        let hash = |run: &Run| run.text().lines().last().unwrap().split(' ').next().unwrap().to_owned();
        assert_eq!(hash(&digest), hash(&run));
    }
}

#[test]
fn tools_under_their_old_names_pack_and_unpack_what_is_pretended() {
    for interposer in INTERPOSERS {
        let fixture = Fixture::new();
        fixture.write(
            "table",
            "/dev/console c 600 0 0 5 1 - - -\n/dev/tty c 666 0 5 4 0 0 1 2\n/f f 640 7 8 - - - - -\n",
        );
        let script = format!(
            "{MAKE}
            state() {{ (cd $1 && find . -exec stat --format '%n %A %u:%g %t,%T %h' '{{}}' + | sort); }}
            as() {{ \"$packfs\" as \"$@\"; }}
            state t > before
            as mksquashfs t t.sqfs -quiet -no-progress
            as mkfs.erofs --quiet -zlz4 t.erofs t
            as gensquashfs -q -k -x -D t t.ng
            as mksquashfs t/d t/dev t/f several.sqfs -quiet -no-progress -p '/made c 600 1 2 5 1'
            rm t/hard && as mkcramfs -L -D table t t.cramfs
            as unsquashfs -q -n -d out.sqfs t.sqfs > /dev/null
            as fsck.erofs --extract=out.erofs t.erofs
            for dir in out.sqfs out.erofs; do
                state $dir > after
                cmp before after || {{ diff before after; echo $dir; exit 1; }}
            done"
        );
        let Some(run) = run(&fixture, interposer, &script) else { return };
        done(&run);
        let listed = |image: &str| fixture.run(["ls", "-lR", image]).text().to_owned();
        for image in ["t.sqfs", "t.erofs"] {
            let list = listed(image);
            for row in ["brw-rw---- ", " 12/34 ", " 77/88 ", "crw-r--r-- "] {
                assert!(list.contains(row), "{interposer:?} {image} {row}:\n{list}");
            }
        }
        let list = listed("several.sqfs");
        for row in ["drwxrwxrwx ", " 77/88 ", "brw-rw---- ", " 12/34 ", "crw------- "] {
            assert!(list.contains(row), "{interposer:?} {row}:\n{list}");
        }
        let owner = fixture.run(["stat", "several.sqfs", "/"]).text().to_owned();
        // Without -u, the user of everything that nothing is known of is root.
        let is_told = interposer.contains(&"-u") || owner.contains("0/0") || owner.contains("root");
        assert!(is_told, "{interposer:?}: {owner}");
        let list = listed("t.cramfs");
        for row in ["crw------- ", "tty1", "brw-rw---- "] {
            assert!(list.contains(row), "{interposer:?} {row}:\n{list}");
        }
    }
}

#[test]
fn an_interposer_hears_of_all_that_is_unpacked() {
    for interposer in INTERPOSERS {
        let fixture = Fixture::new();
        let script = format!(
            "{MAKE}
            state() {{ (cd $1 && find . -exec stat --format '%n %A %u:%g %t,%T %h' '{{}}' + | sort); }}
            state t > before
            \"$packfs\" pack -q t t.sqfs
            \"$packfs\" unpack -q t.sqfs fresh
            \"$packfs\" unpack -q --sandbox t.sqfs sandboxed
            mkdir found && echo old > found/f
            \"$packfs\" unpack -q --existing replace t.sqfs found
            (umask 077 && \"$packfs\" unpack -q t.sqfs umasked)
            for dir in fresh sandboxed found umasked; do
                state $dir > after
                cmp before after || {{ diff before after; echo $dir; exit 1; }}
                \"$packfs\" diff $dir t
            done"
        );
        let Some(run) = run(&fixture, interposer, &script) else { return };
        done(&run);
        let told = !run.stderr.contains("not restored") && !run.stderr.contains("not honoured");
        assert!(told, "{interposer:?}: {}", run.stderr);
    }
}

/// fakeroot forgets the inode number of a removed file late: by then a new file may have it.
#[test]
fn an_interposer_does_not_forget_what_is_made_while_files_are_replaced() {
    let Some(strace) = crate::faults::strace() else { return };
    for interposer in INTERPOSERS {
        let fixture = Fixture::new();
        let script = format!(
            "mkdir t found
            for i in $(seq 5); do echo $i > t/$i; echo $i > found/$i; done
            for i in $(seq 150); do mknod t/$i.dev c 1 3; done
            \"$packfs\" pack -q t t.sqfs
            {strace:?} -qq -f -o trace -e trace=unlinkat -e inject=unlinkat:delay_exit=10000 \
                \"$packfs\" unpack -q --jobs 2 --existing replace t.sqfs found
            grep -c DELAYED trace
            stat --format %t,%T found/*.dev | grep -c '^1,3$'"
        );
        let Some(run) = run(&fixture, interposer, &script) else { return };
        done(&run);
        assert_eq!(run.text(), "5\n150\n", "{interposer:?}: {}", run.stderr);
    }
}

#[test]
fn an_interposer_that_is_not_loaded_is_warned_of() {
    let fixture = Fixture::with_tree();
    for (name, variable, value) in [
        ("fakeroot", "FAKEROOTKEY", "1"),
        ("fakeroot", "LD_PRELOAD", "libfakeroot-not-there.so"),
        ("pseudo", "LD_PRELOAD", "libpseudo-not-there.so"),
    ] {
        let output = fixture.command(["pack", "-q", "rootfs", "new.sqfs"]).env(variable, value).output();
        let run = Run::of(output.unwrap());
        assert_eq!(run.code, Some(0));
        let warning = format!("warning: {name} is not honoured");
        assert!(run.stderr.contains(&warning), "{variable}={value}: {}", run.stderr);
    }
}
