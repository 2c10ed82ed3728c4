//! Images written to S3: packed, repacked, and merged in the store.

use crate::fixture::{Fixture, Run};
use packfs_testkit::{BucketFault, BucketServer, Random, Reply};
use std::fs;

fn run(fixture: &Fixture, server: &BucketServer, args: &[&str]) -> Run {
    let mut command = fixture.command(args);
    command.env("AWS_ENDPOINT_URL", server.endpoint()).env("TMPDIR", fixture.path("tmp"));
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "hidden");
    Run::of(command.output().unwrap())
}

/// A folder with one for temporary files in it.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("tmp")).unwrap();
    fixture
}

#[track_caller]
fn assert_nothing_is_left(fixture: &Fixture, server: &BucketServer) {
    assert_eq!((fs::read_dir(fixture.path("tmp")).unwrap().count(), server.unfinished()), (0, 0));
}

#[test]
fn an_image_in_a_bucket_is_the_one_that_a_file_would_be() {
    let fixture = fixture();
    fixture.write("rootfs/noise", Random::new(1).noise(20 << 20));
    let server = BucketServer::new(|request| {
        // Answers are lost now and then; nothing can remove an upload whose name was in one.
        let is_lost =
            request.method != "GET" && !request.path.contains("uploads=") && request.number % 7 == 6;
        is_lost.then_some(BucketFault::Lost)
    });
    for name in ["root.erofs", "root.sqfs"] {
        let url = format!("s3://bucket/dir/{name}");
        let report = run(&fixture, &server, &["pack", "rootfs", &url]);
        assert!(report.done().text().contains(&format!("packfs mount {url}")), "{}", report.text());
        fixture.run(["pack", "rootfs", name, "-q"]).done();
        assert!(server.objects()[&format!("/bucket/dir/{name}")] == fixture.bytes(name));
        run(&fixture, &server, &["pack", "rootfs", &url]).failed(1, &["an object of this name exists"]);
    }
    run(&fixture, &server, &["repack", "root.sqfs", "s3://bucket/other.erofs", "-q"]).done();
    run(&fixture, &server, &["diff", "rootfs", "s3://bucket/other.erofs", "-q"]).done();
    assert_nothing_is_left(&fixture, &server);
}

#[test]
fn what_a_store_cannot_take_is_told_before_packing() {
    let fixture = fixture();
    let server = BucketServer::new(|_| None);
    let pack = |url: &str, more: &[&str]| {
        let args = [&["pack", "rootfs", url][..], more].concat();
        run(&fixture, &server, &args)
    };
    pack("https://host/a.sqfs", &[])
        .failed(2, &["cannot write an image to https://host/a.sqfs", "s3://BUCKET/KEY"]);
    pack("s3://bucket", &[]).failed(2, &["s3://BUCKET/KEY"]);
    pack("s3://none/a.sqfs", &[]).failed(1, &["no such bucket"]);
    pack("s3://bucket/a.sqfs", &["--offset", "4096"]).failed(2, &["objects are written whole"]);
    let refused = BucketServer::new(|request| {
        let reply = Reply::Status(403, vec![], "<Error><Code>AccessDenied</Code></Error>".into());
        (request.method == "POST").then_some(BucketFault::Refused(reply))
    });
    let denied = run(&fixture, &refused, &["pack", "rootfs", "s3://bucket/a.sqfs"]);
    denied.failed(1, &["403 (AccessDenied)", "credentials"]);
    assert!(server.objects().is_empty() && !denied.stderr.contains("hidden"));
    assert_nothing_is_left(&fixture, &server);
}

#[test]
fn images_of_a_bucket_are_merged_within_the_store() {
    let fixture = fixture();
    for (index, name) in ["one", "two"].iter().enumerate() {
        let folder = fixture.path(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.bin")), Random::new(index as u64 + 7).noise(12 << 20)).unwrap();
        fs::write(folder.join(format!("{name}.txt")), *name).unwrap();
    }
    let server = BucketServer::new(|_| None);
    for (extension, data) in [("erofs", None), ("erofs", Some("--flat")), ("sqfs", None)] {
        let bucket = data.map_or(extension, |_| "flat");
        let urls = ["one", "two"].map(|name| format!("s3://{bucket}/{name}.{extension}"));
        for (name, url) in ["one", "two"].iter().zip(&urls) {
            run(&fixture, &server, &["pack", name, url, "-q", "--format", extension_format(extension)])
                .done();
        }
        let (local, all) = (format!("{bucket}.img"), format!("s3://{bucket}/all"));
        let merge = |output: &str, inputs: &[String; 2]| {
            let mut args = vec!["merge", &inputs[0], &inputs[1], "-o", output, "--json"];
            args.extend(data);
            run(&fixture, &server, &args).json()
        };
        let files = ["one", "two"].map(|name| {
            let file = format!("{bucket}-{name}");
            fixture.write(&file, &server.objects()[&format!("/{bucket}/{name}.{extension}")]);
            file
        });
        merge(&local, &files);
        let before = server.requests().len();
        let report = merge(&all, &urls);
        assert!(server.objects()[&format!("/{bucket}/all")] == fixture.bytes(&local), "{extension} {data:?}");
        // Of 24 MiB in two images, at most 5 MiB before each, and metadata, pass through here.
        assert!(report["moved_by_system_bytes"].as_u64().unwrap() > 13 << 20, "{report}");
        let requests = server.requests();
        let sent = |request: &packfs_testkit::Request| request.body.len();
        let sent: usize = requests[before..].iter().map(sent).sum();
        assert!(sent < 12 << 20, "{sent}");
        run(&fixture, &server, &["merge", &urls[0], "-o", &all])
            .failed(1, &["an object of this name exists"]);
    }
    assert_nothing_is_left(&fixture, &server);
}

fn extension_format(extension: &str) -> &str {
    if extension == "sqfs" { "squashfs" } else { extension }
}
