//! The page as text: nothing in a name gets out of its place, and nothing is fetched. What it looks
//! like is [`super::browser`]'s.

use packfs_lab::report::html;

use super::made_up::{self, ODD_NAME};

#[test]
fn no_name_becomes_markup() {
    let mut results = made_up::results();
    results.title = ODD_NAME.into();
    results.machine.processor = ODD_NAME.into();
    results.settings.command = ODD_NAME.into();
    results.devices[0].description = ODD_NAME.into();
    results.trees[0].made_by = ODD_NAME.into();
    results.tables[0].title = ODD_NAME.into();
    results.tables[0].method = ODD_NAME.into();
    results.tables[0].columns[0].title = ODD_NAME.into();
    let page = html(&results).unwrap();
    assert!(!page.contains("<b>") && !page.contains("<i>"));
    // One for the data, one for the script.
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(page.matches("&lt;/script&gt;&lt;b&gt;&amp;&quot;&#39;|,").count() >= 12);
    assert!(page.contains(r#""subject":"\u003c/script\u003e\u003cb\u003e\u0026\"'|,""#));
}

#[test]
fn a_page_of_nothing_is_a_page() {
    let page = html(&Default::default()).unwrap();
    assert!(page.contains("Nothing: all that was asked for was measured."));
    assert!(page.ends_with("</html>\n"));
}

#[test]
fn a_quick_run_is_called_one_before_its_figures() {
    let mut results = made_up::results();
    assert!(!html(&results).unwrap().contains("uick run"));
    results.settings.quick = true;
    let page = html(&results).unwrap();
    let body = page.split("<script").next().unwrap();
    assert!(
        body.contains("A quick run, whose figures are rough: ") && body.contains("not those of a full one")
    );
    let markdown = packfs_lab::report::markdown(&results);
    assert!(markdown.contains("- Quick run: --quick: fewer cells"), "{markdown:.600}");
}

#[test]
fn what_is_missing_is_there_without_a_script() {
    let page = html(&made_up::results()).unwrap();
    let body = page.split("<script").next().unwrap();
    for words in [
        "mkfs.xfs xfs none",
        "it comes with the package xfsprogs",
        "missing (1)",
        "size (quoted)",
        ", with 0.5 processors by cgroup v2 (cpu.max)",
        "0.5 processors by cgroup v2 (cpu.max) for programs and FUSE servers; the kernel",
    ] {
        assert!(body.contains(words), "{words}");
    }
}
