//! `packfs plan`, `pack-shard`, `merge PLAN`, and `verify PLAN`: the whole way, exit codes,
//! progress, and being killed at any call that changes files.

use crate::faults::strace;
use crate::fixture::{Fixture, Run, words};
use packfs_testkit::{BucketFault, BucketServer, skip};
use std::process::{Command, Stdio};

/// A tree that is cut within directories.
fn fixture() -> Fixture {
    let fixture = Fixture::with_tree();
    for number in 0..40 {
        let path = fixture.path("rootfs/usr/share/doc").join(format!("{number:02}"));
        std::fs::write(path, words(number * 100)).unwrap();
    }
    fixture
}

const PLAN: [&str; 9] = ["plan", "rootfs", "--shards", "3", "--out", "plan", "--codec", "gzip:1", "-q"];

fn pack_shard<'a>(index: &'a str, store: &'a str) -> [&'a str; 8] {
    ["pack-shard", "plan", index, "--to", store, "-q", "-j", "1"]
}

const MERGE: [&str; 7] = ["merge", "plan", "--from", "store", "-o", "merged.sqfs", "-q"];

/// Plans, and packs all shards.
fn packed() -> Fixture {
    let fixture = fixture();
    fixture.run(PLAN).done();
    for index in ["0", "1", "2"] {
        fixture.run(pack_shard(index, "store")).done();
    }
    fixture
}

#[test]
fn a_directory_becomes_an_image_by_way_of_shards() {
    let fixture = fixture();
    let planned = fixture.run(["plan", "rootfs", "--shards", "3", "-o", "plan", "--codec", "gzip:1"]);
    assert!(planned.done().text().contains("3 shards of"), "{}", planned.text());
    assert!(fixture.run(["pack-shard", "plan", "0", "--to", "store"]).done().text().starts_with("packed"));
    assert!(fixture.run(["pack-shard", "plan", "0", "--to", "store"]).done().text().starts_with("present"));
    fixture.run(MERGE).failed(1, &["2 of 3 shards", "packfs pack-shard plan 1 --to store", "plan 2 --to"]);
    let verified = fixture.run(["verify", "plan", "--from", "store"]);
    assert_eq!(verified.code, Some(1), "{}", verified.text());
    fixture.run(["pack-shard", "plan", "1", "--to", "store", "--source", "rootfs", "-q"]).done();
    fixture.run(pack_shard("2", "store")).done();
    fixture.run(MERGE).done();
    fixture.run(["verify", "plan", "--from", "store", "--image", "merged.sqfs", "-q"]).done();
    fixture.run(["pack", "rootfs", "whole.sqfs", "-q"]).done();
    fixture.run(["diff", "whole.sqfs", "merged.sqfs"]).done();
    let other = fixture.run(["verify", "plan", "--from", "store", "--shard", "0", "--image", "root.sqfs"]);
    other.failed(1, &["root.sqfs"]);
    fixture.write("rootfs/etc/new", "new");
    fixture.run(["pack", "rootfs", "newer.sqfs", "-q"]).done();
    let newer = fixture.run(["verify", "plan", "--from", "store", "--shard", "0", "--image", "newer.sqfs"]);
    assert_eq!(newer.code, Some(3), "{}", newer.text());
}

#[test]
fn erofs_shards_merge_in_all_forms() {
    let fixture = fixture();
    fixture.run(["plan", "rootfs", "--shards", "100K", "--out", "plan", "-f", "erofs", "-q"]).done();
    let plan: serde_json::Value = serde_json::from_slice(&fixture.bytes("plan/plan.json")).unwrap();
    let count = plan["shards"].as_array().unwrap().len();
    assert!(count > 3, "{count}");
    let shards: Vec<String> = (0..count).map(|index| index.to_string()).collect();
    shards.iter().for_each(|index| assert_eq!(fixture.run(pack_shard(index, "store")).done().code, Some(0)));
    fixture.run(["pack", "rootfs", "whole.erofs", "-q"]).done();
    for form in [&[][..], &["--flat"], &["--devices"]] {
        let merge = ["merge", "plan", "--from", "store", "-o", "m.erofs", "-q"];
        fixture.run([&merge[..], form].concat()).done();
        if form != ["--devices"] {
            fixture.run(["diff", "whole.erofs", "m.erofs"]).done();
        }
    }
}

#[test]
fn a_changed_source_has_an_exit_code_of_its_own() {
    let fixture = fixture();
    fixture.run(PLAN).done();
    for number in 0..40 {
        std::fs::remove_file(fixture.path("rootfs/usr/share/doc").join(format!("{number:02}"))).unwrap();
    }
    let changed = fixture.run(["pack-shard", "plan", "2", "--to", "store", "--json"]);
    let hint = "rootfs --like plan --out NEW plans again";
    changed.failed(5, &["16 of its entries", "\"usr/share/doc/25\" (missing)", "and ", " more", hint]);
    let document: serde_json::Value = serde_json::from_slice(&changed.stdout).unwrap();
    assert_eq!(document["state"], "changed");
    assert!(document["changes"].as_array().unwrap().len() > 11, "{document}");
    assert_eq!(std::fs::read_dir(fixture.path("store")).unwrap().count(), 0);
    fixture.run(["plan", "rootfs", "--like", "plan", "--out", "again", "-q"]).done();
    fixture.run(["pack-shard", "again", "2", "--to", "store", "-q"]).done();
}

#[test]
fn wrong_requests_name_what_is_wrong() {
    let fixture = packed();
    fixture.run(["pack-shard", "plan", "x", "--to", "store"]).code.filter(|&code| code == 2).unwrap();
    fixture.run(["pack-shard", "plan", "3", "--to", "store"]).failed(2, &["no shard 3", "0 to 2"]);
    fixture.run(["pack-shard", "rootfs", "0", "--to", "store"]).failed(1, &["plan.json", "packfs plan"]);
    fixture.run(["merge", "plan", "-o", "m.sqfs"]).failed(2, &["store is not given", "--from STORE"]);
    fixture.run(["merge", "plan", "store", "--from", "store", "-o", "m.sqfs"]).failed(2, &["one plan"]);
    fixture.run(["merge", "plan", "--from", "none", "-o", "m.sqfs"]).failed(1, &["none"]);
    fixture.run(["plan", "rootfs", "--shards", "4", "--out", "plan"]).failed(1, &["not the same plan"]);
    fixture.run(["plan", "rootfs", "--shards", "0", "--out", "p"]).failed(2, &["1 to 100000"]);
    fixture.run(["plan", "none", "--shards", "2", "--out", "p"]).failed(1, &["none"]);
    fixture.run(["plan", "rootfs", "--shards", "2", "--out", "p", "-f", "cramfs"]).failed(4, &["cramfs"]);
    let list = ["plan", "rootfs", "--shards", "2", "--out", "p", "--from-list", "-"];
    fixture.run_with_input(list, b"etc\nnone\n").failed(1, &["\"none\"", "--list-format find"]);
    fixture.run_with_input(list, b"").failed(2, &["no entries"]);
    fixture.run_with_input(list, b"etc\nusr/bin/tool\n").done();
}

#[test]
fn a_plan_in_its_own_source_is_warned_of() {
    let fixture = fixture();
    let run = fixture.run(["plan", "rootfs", "--shards", "2", "--out", "rootfs/plan", "-q"]);
    assert!(
        run.code == Some(0) && run.stderr.contains("lies in") && run.stderr.contains("outside"),
        "{}",
        run.stderr
    );
    let excluded = ["plan", "rootfs", "--shards", "2", "--out", "rootfs/other", "-q", "--exclude", "/other"];
    let run = fixture.run(excluded);
    assert!(run.code == Some(0) && !run.stderr.contains("lies in"), "{}", run.stderr);
}

#[test]
fn damaged_sidecars_and_plans_tell_what_to_do() {
    let fixture = packed();
    let sidecar = std::fs::read_dir(fixture.path("store")).unwrap().map(|entry| entry.unwrap().path());
    let sidecar = sidecar.into_iter().find(|path| path.extension().unwrap() == "json").unwrap();
    for garbage in [&b"garbage"[..], &[0; 70_000]] {
        std::fs::write(&sidecar, garbage).unwrap();
        fixture.run(MERGE).failed(3, &["1 of 3 shards are damaged", "packfs pack-shard plan "]);
        let run = ["0", "1", "2"].map(|index| fixture.run(pack_shard(index, "store")));
        assert!(
            run.iter().all(|run| run.code == Some(0)) && run.iter().any(|run| run.stderr.contains("again"))
        );
        fixture.run(MERGE).done();
    }
    let text = String::from_utf8(fixture.bytes("plan/plan.json")).unwrap();
    for edited in [text.replace("gzip:1", "gzip:9"), text.replace('{', "")] {
        fixture.write("plan/plan.json", edited);
        fixture.run(MERGE).failed(3, &["plan.json", "make it again"]);
    }
}

#[test]
fn a_plan_cannot_have_data_written_to_a_file_of_its_choice() {
    let fixture = fixture();
    fixture.run(["plan", "rootfs", "--shards", "3", "--out", "plan", "-f", "erofs", "-q"]).done();
    let mut plan = packfs::shards::Plan::read(&fixture.path("plan")).unwrap();
    let device = fixture.path("device").to_string_lossy().into_owned();
    plan.recipe.options.push(("device".into(), device));
    plan.recipe_sha256 = plan.recipe.digest().unwrap();
    fixture.write("plan/plan.json", serde_json::to_vec(&plan).unwrap());
    fixture.run(pack_shard("1", "store")).failed(2, &["data lies in other files"]);
    assert!(!fixture.path("device").exists());
}

#[test]
fn progress_is_told_as_lines_of_json() {
    let fixture = fixture();
    fixture.run(PLAN).done();
    let run = fixture.run(["pack-shard", "plan", "1", "--to", "store", "--progress", "json", "-q"]);
    assert_eq!(run.code, Some(0));
    let lines: Vec<serde_json::Value> = run
        .said()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    assert!(lines.iter().any(|line| line["stage"] == "data" && line["shard"] == 1), "{lines:?}");
}

#[test]
fn jobs_for_schedulers_are_written_into_the_plan() {
    let fixture = packed();
    for (engine, file) in
        [("slurm", "slurm.sh"), ("kubernetes", "kubernetes.yaml"), ("aws-batch", "aws-batch.json")]
    {
        fixture.run([&PLAN[..], &["--emit", engine]].concat()).done();
        let text = String::from_utf8(fixture.bytes(&format!("plan/{file}"))).unwrap();
        assert!(!text.contains('@') && text.contains("pack-shard") && text.contains("merge"), "{text}");
    }
    serde_json::from_slice::<serde_json::Value>(&fixture.bytes("plan/aws-batch.json")).unwrap();
    // A job of its own does not make it another plan.
    fixture.run(PLAN).done();
    fixture.run(MERGE).done();
}

/// Slurm's array on one node, played by a shell: `sbatch` runs each task at once.
#[test]
fn the_job_for_slurm_packs_and_merges() {
    let fixture = fixture();
    fixture.run([&PLAN[..], &["--emit", "slurm"]].concat()).done();
    std::fs::create_dir(fixture.path("bin")).unwrap();
    let sbatch = "#!/bin/sh\nset -e\nscript=$(mktemp)\ncat > $script\nlast=-1\nfor word; do case $word in --array=0-*) \
                  last=${word#--array=0-}; last=${last%%%*};; --dependency=*) test $word = --dependency=afterok:7;; \
                  esac; done\nexport SLURM_CPUS_PER_TASK=1\nif [ $last -lt 0 ]; then sh $script >&2; fi\n\
                  for SLURM_ARRAY_TASK_ID in $(seq 0 $last); do export SLURM_ARRAY_TASK_ID; sh $script >&2; done\n\
                  rm $script\necho '7;cluster'\n";
    fixture.write("bin/sbatch", sbatch);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_packfs")).parent().unwrap();
    let executable: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(fixture.path("bin/sbatch"), executable).unwrap();
    let path =
        std::env::join_paths([&*fixture.path("bin"), program, "/usr/bin".as_ref(), "/bin".as_ref()]).unwrap();
    let mut command = Command::new("sh");
    command.arg("plan/slurm.sh").current_dir(fixture.path("")).env("PATH", path).stdin(Stdio::null());
    command.env("STORE", fixture.path("store")).env("IMAGE", fixture.path("merged.sqfs"));
    let run = Run::of(command.output().unwrap());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    fixture.run(["verify", "plan", "--from", "store", "--image", "merged.sqfs", "-q"]).done();
}

/// The common part of the programs for Ray and Dask, with an engine of processes.
#[test]
fn tasks_of_engines_that_fail_are_tried_again() {
    let fixture = fixture();
    let test = concat!(env!("CARGO_MANIFEST_DIR"), "/../../integration/shards/test_packfs.py");
    let mut command = Command::new("python3");
    command.args(["-B", test, "processes", env!("CARGO_BIN_EXE_packfs")]).arg(fixture.path("rootfs"));
    let Ok(output) = command.env_remove("SOURCE_DATE_EPOCH").output() else {
        return skip("python3 is not installed");
    };
    let run = Run::of(output);
    assert!(run.code == Some(0) && run.text().contains("same image"), "{}", run.stderr);
}

/// Calls that change files, or give them names.
const CHANGING: &str = "write,pwrite64,openat,rename,renameat,renameat2,linkat,link,unlink,unlinkat,mkdir,mkdirat,\
                        fsync,fdatasync,copy_file_range,ftruncate,fchmod,chmod,rmdir";

/// Kills the program at its n-th call that changes files; returns false if it ended before.
fn killed(fixture: &Fixture, strace: &std::path::Path, n: u64, args: &[&str]) -> bool {
    let mut command = Command::new(strace);
    command.args(["-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={CHANGING}"));
    command.args(["-e".into(), format!("inject={CHANGING}:signal=SIGKILL:when={n}")]);
    command.arg(env!("CARGO_BIN_EXE_packfs")).args(args).current_dir(fixture.path(""));
    let status = command.stdin(Stdio::null()).output().unwrap().status;
    !status.success()
}

#[test]
fn after_a_kill_at_any_call_a_rerun_finishes_with_the_same_bytes() {
    let Some(strace) = strace() else { return skip("calls are killed by strace") };
    let right = packed();
    right.run(MERGE).done();
    let store = |fixture: &Fixture, name: &str| -> Vec<(String, Vec<u8>)> {
        let entries = std::fs::read_dir(fixture.path(name)).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut named: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
        named.sort();
        named.into_iter().map(|file| (file.clone(), fixture.bytes(&format!("{name}/{file}")))).collect()
    };
    let shards = store(&right, "store");
    let steps: [(&[&str], &str); 3] =
        [(&PLAN, "plan"), (&pack_shard("1", "new"), "new"), (&MERGE, "merged.sqfs")];
    for (args, output) in steps {
        let before = right.path(output);
        let right_bytes = std::fs::read(&before).unwrap_or_default();
        let right_plan = store(&right, "plan");
        let (mut n, mut kills) = (1, 0);
        loop {
            let _ = std::fs::remove_dir_all(&before);
            let _ = std::fs::remove_file(&before);
            if !killed(&right, &strace, n, args) {
                break;
            }
            kills += 1;
            // Nothing has a name that is not complete.
            match output {
                "plan" => assert!(!before.exists() || store(&right, "plan") == right_plan, "{args:?} {n}"),
                "new" => {
                    let is_right = |object: &(String, Vec<u8>)| shards.contains(object);
                    assert!(store(&right, "new").iter().all(is_right), "{args:?} {n}");
                }
                _ => assert!(
                    !before.exists() || std::fs::read(&before).unwrap() == right_bytes,
                    "{args:?} {n}"
                ),
            }
            right.run(args).done();
            match output {
                "plan" => assert!(store(&right, "plan") == right_plan, "{args:?} {n}"),
                "new" => assert_eq!(store(&right, "new").len(), 2, "{args:?} {n}"),
                _ => assert!(std::fs::read(&before).unwrap() == right_bytes, "{args:?} {n}"),
            }
            n += 1 + n / 12;
        }
        assert!(kills > 8, "{args:?}: {kills}");
    }
    let is_left = |name: &String| {
        name.ends_with(".packfs-tmp") || ["rootfs", "plan", "store", "new", "merged.sqfs"].contains(&&**name)
    };
    assert!(right.names().iter().all(is_left), "{:?}", right.names());
}

/// A bucket as the store, on a server whose answers are lost now and then.
#[test]
fn shards_in_a_bucket_merge_to_the_same_image() {
    let fixture = packed();
    fixture.run(MERGE).done();
    let server = BucketServer::new(|request| {
        let is_lost = request.method == "PUT" && request.number % 5 == 4;
        is_lost.then_some(BucketFault::Lost)
    });
    let run = |args: &[&str]| {
        let mut command = fixture.command(args);
        command.env("AWS_ENDPOINT_URL", server.endpoint());
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "hidden");
        Run::of(command.output().unwrap())
    };
    let store = "s3://bucket/data";
    let merge = ["merge", "plan", "--from", store, "-o", "s3.sqfs", "-q"];
    run(&merge).failed(1, &["3 of 3 shards", "packfs pack-shard plan 0 --to s3://bucket/data"]);
    for index in ["0", "1", "2"] {
        run(&pack_shard(index, store)).done();
    }
    let present = run(&["pack-shard", "plan", "1", "--to", store]);
    assert!(present.done().text().starts_with("present"), "{}", present.text());
    run(&merge).done();
    assert!(fixture.bytes("s3.sqfs") == fixture.bytes("merged.sqfs"));
    run(&["verify", "plan", "--from", store, "--image", "s3.sqfs", "-q"]).done();
    for (path, bytes) in server.objects() {
        let name = path.strip_prefix("/bucket/data").unwrap();
        assert!(bytes == fixture.bytes(&format!("store{name}")), "{path}");
    }
    assert_eq!(server.objects().len(), 6);

    let shard = server.objects().into_keys().find(|path| path.ends_with(".shard")).unwrap();
    server.put(&shard, vec![0; 4096]);
    run(&merge).failed(3, &["1 of 3 shards are damaged", store]);
    fixture.run(["pack-shard", "plan", "0", "--to", "https://host/a"]).failed(2, &["s3://BUCKET/PREFIX"]);
    run(&pack_shard("0", "s3://none/data")).failed(1, &["no such bucket"]);
}

/// Options of packing that a plan takes, each with what the tree needs for it.
const SHAPED: [&[&str]; 11] = [
    &["--uid-map", "0-9:5000", "--gid", "7", "--mode", "u=rwX,go=", "--mtime", "@7", "--order", "path"],
    &["--prefix", "/opt/app", "--min-gain", "10%", "--effort", "max", "--clamp-mtime", "@9"],
    &["--file-mode", "0600", "--dir-mode", "0700", "--owner", "3:4"],
    &["--strip-prefix", "usr", "--root-owned", "--no-xattrs"],
    &["--include", "usr", "--exclude", "usr/share/doc/0*", "--xattr-exclude", "user.*"],
    &["--trace", "list", "--order", "kind", "--optimize", "size"],
    &["--exclude-from", "globs", "--kernel", "6.1", "--keep-going", "--lossy"],
    &["--file-contexts", "contexts", "--file-contexts-at", "/vendor"],
    &["--add", "d /proc 0555 1 2", "--add", "f /etc/added 0600 3 4 list", "--add", "m /usr/share 0700 5 6"],
    &["--add-manifest", "more", "--one-file-system"],
    &["--option", "exports=off", "--block-size", "64K"],
];

#[test]
fn every_option_of_shaping_and_packing_is_the_same_by_way_of_shards() {
    let fixture = fixture();
    let write = |name: &str, text: &str| std::fs::write(fixture.path(name), text).unwrap();
    write("list", "usr/share/doc/07\nusr/share/doc/11\n");
    write("globs", "# a comment\nusr/share/doc/1*\n");
    write("contexts", "/vendor(/.*)? u:object_r:vendor_file:s0\n");
    write(
        "more",
        "dir /zzz\nfile /zzz/made data=\"x\"\nfile /aaa data=\"y\"\nchar /usr/null major=1 minor=3\n",
    );
    for (case, options) in SHAPED.iter().enumerate() {
        let (plan, store, merged) = (format!("p{case}"), format!("s{case}"), format!("m{case}.sqfs"));
        let planned = ["plan", "rootfs", "--shards", "3", "--out", &plan, "-q"];
        fixture.run([&planned[..], options].concat()).done();
        for index in ["0", "1", "2"] {
            fixture.run(["pack-shard", &plan, index, "--to", &store, "-q", "-j", "1"]).done();
        }
        fixture.run(["merge", &plan, "--from", &store, "-o", &merged, "-q"]).done();
        fixture.run([&["pack", "rootfs", "whole.sqfs", "-q"][..], options].concat()).done();
        fixture.run(["diff", "whole.sqfs", &merged]).done();
    }
    // What a file says is part of the plan.
    write("list", "etc/hostname\n");
    fixture.run(["pack-shard", "p5", "0", "--to", "other"]).failed(1, &["list", "changed since planning"]);
    let moved =
        ["plan", "rootfs", "--shards", "2", "--out", "p", "--prefix", "/opt", "--add", "d /proc 0 0 0"];
    fixture.run(moved).failed(2, &["move", "merge both images"]);
    let listed = ["plan", "rootfs", "--shards", "2", "--out", "p", "--from-list", "list", "--exclude", "a"];
    fixture.run(listed).failed(2, &["exclude entries of a list"]);
    let stdin = ["plan", "rootfs", "--shards", "2", "--out", "p", "--add-manifest", "-"];
    fixture.run(stdin).failed(2, &["standard input"]);
    let like = ["plan", "rootfs", "--like", "p0", "--out", "p", "--min-gain", "5"];
    fixture.run(like).failed(2, &["--min-gain", "--like"]);
}
