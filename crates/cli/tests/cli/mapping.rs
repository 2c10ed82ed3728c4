//! `packfs info --html`: the page gets its name once it is whole, in a sandbox too.

use crate::fixture::Fixture;

#[test]
fn a_page_is_written_beside_the_image() {
    let fixture = Fixture::with_image();
    assert_eq!(fixture.run(["info", "--html", "root.html", "root.sqfs"]).done().text(), "");
    let page = std::fs::read_to_string(fixture.path("root.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    let len = std::fs::metadata(fixture.path("root.sqfs")).unwrap().len();
    assert!(page.contains(&format!("{{\"length\":{len},")), "the figures add up to {len}");
    for words in ["os-release", "<dt>image</dt><dd>root.sqfs</dd>", "squashfs"] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(fixture.names(), ["root.html", "root.sqfs", "rootfs"]);
    let piped = fixture.run(["info", "--html", "-", "root.sqfs"]);
    assert!(piped.done().text() == page);
    fixture.run(["info", "--sandbox", "--html", "again.html", "root.sqfs"]).ended(0);
    assert!(std::fs::read_to_string(fixture.path("again.html")).unwrap() == page);
}

#[test]
fn a_page_never_takes_the_place_of_the_image() {
    let fixture = Fixture::with_image();
    let before = std::fs::read(fixture.path("root.sqfs")).unwrap();
    fixture.run(["info", "--html", "./root.sqfs", "root.sqfs"]).failed(2, &["it is the image", "hint: "]);
    assert!(std::fs::read(fixture.path("root.sqfs")).unwrap() == before);
    fixture.run(["info", "--html", "no/such/folder.html", "root.sqfs"]).failed(1, &["cannot write to"]);
    fixture.run(["info", "--html", "a.html", "--space", "root.sqfs"]).failed(2, &["cannot be used with"]);
    fixture.run(["info", "--html", "a.html", "rootfs/etc/os-release"]).failed(4, &["no known format"]);
    assert_eq!(fixture.names(), ["root.sqfs", "rootfs"]);
}
