//! The page in a real browser: what is drawn is what the data says, the address chooses, and
//! nothing fails.
//!
//! Pages stay in the folder for temporary files of the target folder, to be looked at.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use packfs_lab::report::html;
use packfs_testkit::skip;

use super::made_up::{self, ODD_NAME};

/// A page as a browser shows it.
pub struct Shown {
    /// The document, once scripts have run.
    pub dom: String,
    /// Messages meanwhile.
    log: String,
}

impl Shown {
    pub fn count(&self, what: &str) -> usize {
        self.dom.matches(what).count()
    }

    #[track_caller]
    pub fn is_without_fault(&self) {
        let said: Vec<&str> = self.log.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(said.is_empty(), "the console says {said:#?}");
        assert!(!self.dom.contains("data-error"), "the page says {:.2000}", self.dom);
        assert!(self.dom.contains("data-ready=\"yes\""), "the script did not come to its end");
    }
}

/// The browser, if there is one.
pub fn has_chromium() -> bool {
    let is_there =
        Command::new("chromium").arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        skip("chromium is missing; it comes with Debian's package of that name");
    }
    is_there
}

pub fn page(name: &str, html: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, html).unwrap();
    path
}

/// Opens a page, lets its scripts run and takes the document.
pub fn show(page: &Path, hash: &str) -> Shown {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("timeout")
        .args([
            "--kill-after=5",
            "120",
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ])
        .args(["--disable-dev-shm-usage", "--disable-extensions", "--enable-logging=stderr", "--v=0"])
        .args(["--window-size=1280,900", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}{hash}", page.display()))
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "chromium ended with {}: {log}", output.status);
    Shown { dom: String::from_utf8(output.stdout).unwrap(), log }
}

#[test]
fn faults_of_a_script_are_noticed() {
    if !has_chromium() {
        return;
    }
    let whole = html(&Default::default()).unwrap();
    let broken = whole.replace("const data = JSON.parse(", "const data = JSON.misspelled(");
    let shown = show(&page("broken.html", &broken), "");
    assert!(
        shown.log.lines().any(|line| line.contains("CONSOLE") && line.contains("misspelled")),
        "{}",
        shown.log
    );
    assert!(shown.dom.contains("data-error=") && !shown.dom.contains("data-ready"));
    // A session of nothing is none.
    show(&page("empty.html", &whole), "").is_without_fault();
}

#[test]
fn all_that_was_measured_is_drawn() {
    if !has_chromium() {
        return;
    }
    let results = made_up::results();
    let shown = show(&page("report.html", &html(&results).unwrap()), "");
    shown.is_without_fault();
    let here = |workload: &str| {
        let of_it = results.measurements.iter().filter(|it| it.workload == workload && it.device == "disk");
        of_it.count()
    };
    // One mark for each cell of the first workload that reads, on the first device, and the front
    // among them.
    assert_eq!(shown.count("data-point="), here("sequential-data"));
    assert_eq!(shown.count("class=\"front\""), 1);
    // Two plots with a line for each subject that was built with several jobs.
    let built: HashSet<&str> =
        results.measurements.iter().filter(|it| it.jobs.is_some()).map(|it| it.subject.as_str()).collect();
    assert_eq!(shown.count("data-line="), 2 * built.len());
    // A bar for each cell on that device; of those with jobs, for the most.
    let reading = results.measurements.iter().filter(|it| it.device == "disk" && it.jobs.is_none()).count();
    assert_eq!(shown.count("data-bar="), reading + built.len());
    assert_eq!(shown.count("data-row="), results.measurements.len());
    // What could be markup is words, in marks and rows alike.
    assert!(!shown.dom.contains("<b>"));
    let row = format!("data-row=\"{}\"", ODD_NAME.replace('&', "&amp;").replace('"', "&quot;"));
    let escaped_row = row.replace('<', "&lt;").replace('>', "&gt;");
    assert_eq!(shown.count(&row) + shown.count(&escaped_row), 1);
}

/// Texts of an axis: those across are in the middle of their ticks, those upwards end at them.
fn axis_words(dom: &str, anchor: &str) -> Vec<String> {
    let texts = dom.split("<text class=\"faint\"").skip(1);
    let words = texts.filter_map(|text| {
        let (attributes, rest) = text.split_once('>')?;
        let word = rest.split('<').next()?;
        attributes.contains(&format!("text-anchor=\"{anchor}\"")).then(|| word.to_owned())
    });
    words.collect()
}

#[test]
fn ticks_of_an_axis_read_differently_however_close_figures_are() {
    if !has_chromium() {
        return;
    }
    let mut results = made_up::results();
    for (index, measurement) in results.measurements.iter_mut().enumerate() {
        let run = measurement.runs[0];
        let wall = 12.3456 + index as f64 * 1e-5;
        measurement.runs = vec![packfs_lab::results::Run { wall, ..run }];
    }
    results.measurements.retain(|it| it.jobs.is_none());
    let shown = show(&page("close.html", &html(&results).unwrap()), "");
    shown.is_without_fault();
    let words = axis_words(&shown.dom, "end");
    let different: HashSet<&String> = words.iter().collect();
    assert!(words.len() >= 3 && different.len() == words.len(), "{words:?}");
}

#[test]
fn the_address_filters_chooses_and_sorts() {
    if !has_chromium() {
        return;
    }
    let results = made_up::results();
    let page = page("chosen.html", &html(&results).unwrap());
    let hash = "#filter=erofs+-mkfs.erofs&workload=random-data-7%25&device=sd&sort=most&order=down";
    let shown = show(&page, hash);
    shown.is_without_fault();
    let matching = |it: &&packfs_lab::results::Measurement| it.subject.starts_with("packfs erofs");
    let matching: Vec<_> = results.measurements.iter().filter(matching).collect();
    assert_eq!(shown.count("data-row="), matching.len());
    let words = format!("{} of {} measurements match", matching.len(), results.measurements.len());
    assert!(shown.dom.contains(&words), "{words}");
    assert_eq!(shown.count("data-point="), 2);
    assert!(shown.dom.contains("random-data-7% on sd"));
    assert!(shown.dom.contains("aria-sort=\"descending\"") && !shown.dom.contains("aria-sort=\"ascending\""));
    let slowest = matching.iter().max_by(|one, other| {
        let most =
            |it: &packfs_lab::results::Measurement| it.runs.iter().map(|run| run.wall).fold(0.0, f64::max);
        most(one).total_cmp(&most(other))
    });
    let first_row = shown.dom.split("data-row=\"").nth(1).unwrap();
    assert!(first_row.starts_with(&slowest.unwrap().subject), "{first_row:.100}");
    // What the address says and the page does not know is passed over.
    let shown = show(&page, "#workload=none&device=%3Cb%3E&sort=&nonsense=1&filter=no-such-subject");
    shown.is_without_fault();
    assert_eq!(shown.count("data-row="), 0);
    assert!(shown.dom.contains("0 of "));
}
