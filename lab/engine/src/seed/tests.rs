//! Tables of documents from made-up results: every cell that a plan has finds its place.

use std::collections::HashSet;

use super::*;
use crate::report::{Style, Terminal, Text};
use crate::results::{
    Cell as Shown, CodecUsage, Measurement, Missing, Results, Run, Settings, Subject, TreeFacts,
};
use crate::session::{Cell, Plan, subject_id};
use crate::trees::PlannedTree;
use crate::workload::Workload;

fn planned(id: &str) -> PlannedTree {
    let facts = TreeFacts {
        id: id.into(),
        made_by: "made up".into(),
        files: 10,
        dirs: 2,
        others: 0,
        bytes: 100 << 20,
    };
    PlannedTree { facts, path: format!("/{id}").into() }
}

fn named(name: &str) -> &'static Document {
    Document::named(name).unwrap()
}

fn asked(document: &Document, quick: bool) -> DocumentRequest {
    let trees = document.trees.iter().map(|kind| planned(&kind.row().name)).collect();
    let settings = Settings { quick, jobs: Some(2), seed: 1, ..Settings::default() };
    DocumentRequest { roles: Roles(trees), settings, ..DocumentRequest::default() }
}

#[test]
fn a_requested_part_overrides_those_of_quick_and_of_the_document() {
    let row = named("squashfs21");
    let bytes = |quick, part| DocumentRequest { part, ..asked(row, quick) }.tree_bytes(row);
    assert_eq!(bytes(false, None), Some(1400 << 20));
    assert_eq!(bytes(true, None), Some(16 << 20));
    assert_eq!(bytes(true, Some(5 << 20)), Some(5 << 20));
    assert_eq!(bytes(false, Some(5 << 20)), Some(5 << 20));
}

/// A figure that tells cells apart and is the same each time.
fn made_up(cell: &Cell) -> f64 {
    let sum: u32 = cell.label().bytes().map(u32::from).sum();
    1.0 + f64::from(sum % 97) / 10.0
}

/// Results in which all of a plan was measured, but what `is_missing` names.
fn results(plan: &Plan, is_missing: impl Fn(&Cell) -> bool) -> Results {
    let mut results = Results {
        title: plan.title.clone(),
        settings: plan.settings.clone(),
        trees: plan.trees.iter().map(|tree| tree.facts.clone()).collect(),
        ..Results::default()
    };
    let mut seen = HashSet::new();
    for cell in &plan.cells {
        let id = subject_id(&cell.tree, &cell.recipe);
        if is_missing(cell) {
            results.missing.push(Missing { what: cell.label(), why: "made up to be missing".into() });
            continue;
        }
        if seen.insert(id.clone()) {
            results.subjects.push(subject(&id, cell));
        }
        if cell.workload.is_timed() {
            let run = Run { wall: made_up(cell), bytes: Some(100 << 20), ..Run::default() };
            results.measurements.push(Measurement {
                workload: cell.workload.name().into(),
                subject: id,
                reader: cell.reader.clone(),
                device: cell.device.clone(),
                jobs: cell.jobs,
                command: String::new(),
                runs: vec![run],
            });
        }
    }
    results
}

fn subject(id: &str, cell: &Cell) -> Subject {
    let codec = CodecUsage { codec: cell.recipe.codec.clone(), disk: 40, uncompressed: 80, referenced: 80 };
    let total = CodecUsage { codec: "total".into(), disk: 60, uncompressed: 100, referenced: 100 };
    let none = CodecUsage { codec: "none".into(), disk: 20, uncompressed: 20, referenced: 20 };
    Subject {
        id: id.into(),
        tree: cell.tree.clone(),
        recipe: cell.recipe.clone(),
        command: String::new(),
        stored_len: Some(50 << 20),
        usage: if cell.recipe.format == "btrfs" { vec![total, none, codec] } else { vec![] },
    }
}

#[test]
fn documents_are_found_by_name() {
    let names: Vec<_> = Document::all().unwrap().iter().map(|document| &*document.name).collect();
    assert_eq!(names, ["erofs-perf", "squashfs21", "gentle", "tools-ng", "daily"]);
    assert!(Document::named("erofs").unwrap_err().hints()[0].contains("erofs-perf"));
}

#[test]
fn names_that_stand_for_nothing_are_refused() {
    for (found, of) in [
        ("  \"today\"", "rows"),
        ("layout = \"sizes\"", "layout"),
        ("is = \"past\"", "kind"),
        ("is = { text = \"{fs}\" }", "value"),
    ] {
        let missing = found.split_once(['"', '{']).map(|(start, _)| format!("{start}\"missing\"")).unwrap();
        let text = SEEDS[1].replacen(found, &missing, 1);
        let Err(error) = Document::parse(&text) else { panic!("{of}") };
        assert!(error.to_string().contains(&format!("no {of} \"missing\"")), "{error}");
    }
}

#[test]
fn every_subject_of_a_document_is_spelled_well() {
    for document in Document::all().unwrap() {
        let rows = document.rows.values().flatten().chain(document.tables.iter().flat_map(|table| {
            table.rows.iter().filter_map(|row| match row {
                document::RowSpec::Row(row) => Some(row),
                document::RowSpec::List(_) => None,
            })
        }));
        for row in rows.map(|row| row::Row(document.variables(row))) {
            for name in ["theirs", "ours", "their-plain", "our-plain", "plain", "image", "made", "written"] {
                let spelled = row.text(name).filter(|text| text != "tree");
                if let Some(text) = spelled.filter(|_| row.0[name].is_str()) {
                    crate::session::parse_recipe(&text).unwrap();
                }
            }
        }
    }
}

#[test]
fn every_table_is_whole_and_every_measured_cell_is_shown() {
    for row in Document::all().unwrap() {
        for quick in [true, false] {
            let asked = asked(row, quick);
            let plan = row.plan(&asked);
            let tables = row.tables(&asked, &results(&plan, |_| false));
            let mut measured = 0;
            for table in &tables {
                assert!(!table.rows.is_empty(), "{}: {}", row.name, table.title);
                for cells in &table.rows {
                    assert_eq!(cells.len(), table.columns.len(), "{}: {}", row.name, table.title);
                    let own = cells.iter().zip(&table.columns).filter(|(_, column)| !column.quoted);
                    measured += own.filter(|(cell, _)| matches!(cell, Shown::Figure(_))).count();
                }
            }
            let timed = plan.cells.iter().filter(|cell| cell.workload.is_timed()).count();
            assert!(measured >= timed, "{}: {measured} figures for {timed} cells", row.name);
            assert_eq!(plan.settings.runs, if quick { 1 } else { row.runs });
        }
    }
}

#[test]
fn quick_plans_are_parts_of_full_ones() {
    for row in Document::all().unwrap() {
        let [quick, full] = [true, false].map(|quick| row.plan(&asked(row, quick)));
        assert!(quick.cells.iter().all(|cell| full.cells.contains(cell)), "{}", row.name);
        let unique: HashSet<_> = full.cells.iter().collect();
        assert_eq!(unique.len(), full.cells.len(), "{}", row.name);
    }
}

#[test]
fn what_is_missing_is_named_in_its_place() {
    let asked = asked(named("erofs-perf"), true);
    let plan = named("erofs-perf").plan(&asked);
    let is_missing = |cell: &Cell| cell.reader.as_deref() == Some("packfs-fuse");
    let tables = named("erofs-perf").tables(&asked, &results(&plan, is_missing));
    let table = tables.iter().find(|table| table.title.starts_with("Sequential data")).unwrap();
    let column = table.columns.iter().position(|column| column.title.contains("FUSE")).unwrap();
    let expected = Shown::Missing("made up to be missing".into());
    assert!(table.rows.iter().all(|row| row[column] == expected), "{table:?}");
}

#[test]
fn speed_up_is_the_quotient_that_grows() {
    let asked = asked(named("tools-ng"), false);
    let plan = named("tools-ng").plan(&asked);
    let mut results = results(&plan, |_| false);
    for found in results.measurements.iter_mut().filter(|found| found.workload == "build") {
        found.runs[0].wall = if found.jobs == Some(1) { 10.0 } else { 6.25 };
    }
    let tables = named("tools-ng").tables(&asked, &results);
    let table = tables.iter().find(|table| table.title.contains("speed-up")).unwrap();
    let figure = |place: usize| match &table.rows[0][place] {
        Shown::Figure(spread) => (spread.median * 1000.0).round() / 1000.0,
        other => panic!("{other:?}"),
    };
    // XZ with two jobs: 1116.06 s to 591.21 s in the document.
    assert_eq!([2, 3, 4, 5, 6].map(figure), [1.888, 1.6, 1.6, 0.944, 0.8]);
}

#[test]
fn devices_of_the_users_take_the_place_of_the_documents() {
    let all = Document::all().unwrap();
    for (row, device) in all.iter().flat_map(|row| ["disk", "hdd"].map(|device| (row, device))) {
        let asked = DocumentRequest { devices: vec![device.into()], ..asked(row, true) };
        let plan = row.plan(&asked);
        let is_there = |cell: &Cell| cell.device == device || !cell.workload.is_timed();
        assert!(plan.cells.iter().all(is_there), "{}", row.name);
        let tables = row.tables(&asked, &results(&plan, |_| false));
        let titles: HashSet<_> = tables.iter().map(|table| &table.title).collect();
        assert_eq!(titles.len(), tables.len(), "{}", row.name);
    }
}

#[test]
fn one_tree_may_stand_for_all() {
    for row in Document::all().unwrap() {
        let asked = DocumentRequest { roles: Roles(vec![planned("mine")]), ..asked(row, true) };
        let plan = row.plan(&asked);
        assert_eq!(plan.trees.len(), 1);
        assert!(plan.cells.iter().all(|cell| cell.tree == "mine"), "{}", row.name);
    }
}

#[test]
fn luks_doubles_the_file_systems_that_are_written() {
    let count = |luks| {
        let asked = DocumentRequest { luks, ..asked(named("daily"), true) };
        named("daily").plan(&asked).cells.iter().filter(|cell| cell.workload == Workload::Write).count()
    };
    assert_eq!(count(true), 2 * count(false));
}

#[test]
fn trees_are_given_by_name_or_for_all() {
    let typed = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    assert!(SeedTrees::parse(named("erofs-perf"), &typed(&["/srv/tree"])).is_ok());
    assert!(SeedTrees::parse(named("erofs-perf"), &typed(&["debian=/a", "large=/b"])).is_ok());
    let error = SeedTrees::parse(named("gentle"), &typed(&["linux=/a"])).unwrap_err();
    assert!(error.hints()[0].contains("desktop"), "{error:?}");
    assert!(SeedTrees::parse(named("gentle"), &typed(&["/a", "/b"])).is_err());
    let error = SeedTrees::parse(named("erofs-perf"), &typed(&["debian=/a", "debian=/a"])).unwrap_err();
    assert!(error.to_string().contains("debian is given twice"), "{error}");
}

#[test]
fn two_trees_never_go_by_one_name() {
    let parent = tempfile::tempdir().unwrap();
    let folder = |name: &str| {
        let dir = parent.path().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("file"), [1; 1000]).unwrap();
        dir.to_string_lossy().into_owned()
    };
    let scratch = crate::scratch::Scratch::new(parent.path()).unwrap();
    let prepare = |seed: &Document, typed: &[String]| {
        let (trees, asked) = (SeedTrees::parse(seed, typed).unwrap(), DocumentRequest::default());
        prepare(seed, &trees, &asked, &parent.path().join("kept"), &scratch, &|_| ())
    };
    let (other, large) = (folder("other"), folder("a/large"));
    let (debian, by_name) = (folder("a/debian"), format!("debian={other}"));
    for (seed, typed) in
        [(named("squashfs21"), vec![debian.clone(), by_name]), (named("erofs-perf"), vec![large])]
    {
        let error = prepare(seed, &typed).unwrap_err();
        assert_eq!(error.kind(), packfs::ErrorKind::Usage, "{error}");
        assert!(
            error.to_string().contains("two trees") && error.hints()[0].contains("debian=DIR"),
            "{error:?}"
        );
    }
    // One that is given for all and by its name is one tree still.
    let roles = prepare(named("squashfs21"), &[debian.clone(), format!("debian={debian}/.")]).unwrap();
    assert_eq!(roles.0.iter().map(|tree| &*tree.facts.id).collect::<Vec<_>>(), ["debian", "debian"]);
}

fn shown_as_text(table: &crate::results::Table) -> String {
    let mut text = Text::new(Style::Terminal(Terminal::default()));
    text.table(table);
    format!("\n{}", text.text)
}

/// A digest of all tables and of the plan of a document.
fn digest(document: &Document, asked: &DocumentRequest) -> u64 {
    let plan = document.plan(asked);
    let mut text = format!("{:?}", plan.cells);
    for shown in document.tables(asked, &results(&plan, |_| false)) {
        text += &shown_as_text(&shown);
    }
    // FNV-1a.
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// One table of each document, as the terminal shows it, and digests of all.
#[test]
fn tables_look_as_they_did() {
    let mut shown = String::new();
    for (seed, start) in [
        (named("erofs-perf"), "Small random data"),
        (named("squashfs21"), "Damn Small Linux live CD: Random"),
        (named("gentle"), "Time to read"),
        (named("tools-ng"), "2. Reference"),
        (named("daily"), "Choices"),
    ] {
        let asked = asked(seed, true);
        let plan = seed.plan(&asked);
        let is_missing = |cell: &Cell| cell.recipe.maker == "tar2sqfs" && cell.recipe.codec == "none";
        let tables = seed.tables(&asked, &results(&plan, is_missing));
        let found = tables.iter().find(|table| table.title.starts_with(start)).unwrap();
        shown += &shown_as_text(found);
        shown.push('\n');
    }
    for document in Document::all().unwrap() {
        for (name, quick, luks) in [("quick", true, false), ("full", false, false), ("luks", false, true)] {
            let mut asked = DocumentRequest { luks, ..asked(document, quick) };
            asked.settings.jobs = Some(40);
            shown += &format!("{} {name} {:016x}\n", document.name, digest(document, &asked));
        }
    }
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/src/seed/golden.txt");
    if std::env::var_os("PACKFS_WRITE_GOLDEN").is_some() {
        std::fs::write(golden, &shown).unwrap();
    }
    assert_eq!(shown, std::fs::read_to_string(golden).unwrap(), "{shown}");
}
