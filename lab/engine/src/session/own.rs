//! A plan of the user's own: some subjects, read in some ways, under some workloads, on some
//! devices.

use super::plan::{Cell, Plan};
use super::spec::parse_recipe;
use crate::results::{Recipe, Settings};
use crate::subject::{Subjects, is_unpacker, is_writable};
use crate::trees::PlannedTree;
use crate::workload::{Need, WORKLOADS, Workload};

/// Extent of a session where nothing is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// A few subjects, one run of each.
    Quick,
    /// The subjects and workloads that most users want.
    #[default]
    Usual,
    /// Everything there is.
    Full,
}

/// Choices of the user; empty ones are filled in by [`Depth`].
#[derive(Clone, Debug, Default)]
pub struct OwnRequest {
    /// Subjects.
    pub subjects: Vec<Recipe>,
    /// Readers.
    pub readers: Vec<String>,
    /// Workloads.
    pub workloads: Vec<Workload>,
    /// Devices below images.
    pub devices: Vec<String>,
    /// Extent of the rest.
    pub depth: Depth,
    /// Settings; 0 runs for 1 or 3 or 5, by depth.
    pub settings: Settings,
}

/// Subjects that are measured where none are named, the most wanted first.
const SUBJECTS: [&str; 14] = [
    "packfs:squashfs:zstd:15:128K",
    "mksquashfs:squashfs:zstd:15:128K",
    "packfs:erofs:zstd:3:64K",
    "mkfs.erofs:erofs:lz4hc:12:64K",
    "packfs:erofs:lz4hc:12:64K",
    "mkdwarfs:dwarfs",
    "packfs:squashfs:xz:1M",
    "mksquashfs:squashfs:xz:1M",
    "packfs:squashfs:lz4hc:12:128K",
    "mksquashfs:squashfs:gzip:9:128K",
    "packfs:squashfs:gzip:9:128K",
    "tar2sqfs:squashfs:zstd:15:128K",
    "mkfs.btrfs:btrfs:zstd:3",
    "mkfs.ext4:ext4",
];

impl Depth {
    fn subject_count(self) -> usize {
        match self {
            Self::Quick => 4,
            Self::Usual => 8,
            Self::Full => SUBJECTS.len(),
        }
    }

    fn runs(self) -> u32 {
        match self {
            Self::Quick => 1,
            Self::Usual => 3,
            Self::Full => 5,
        }
    }

    fn workloads(self) -> Vec<Workload> {
        let quick = [
            Workload::ImageSize,
            Workload::Build,
            Workload::SequentialData,
            Workload::SequentialMetadata,
            Workload::SmallRandomData,
        ];
        let usual =
            [Workload::Decode, Workload::SmallRandomMetadata, Workload::List, Workload::FullRandomData];
        match self {
            Self::Quick => quick.into(),
            Self::Usual => [&quick[..], &usual].concat(),
            Self::Full => WORKLOADS.iter().filter_map(|row| Workload::named(&row.name).ok()).collect(),
        }
    }
}

/// Makes a plan. A missing subject is left out and noted, unless the caller named it; named
/// subjects are tried, and then noted.
pub fn own_plan(tree: PlannedTree, request: &OwnRequest, subjects: &Subjects) -> Plan {
    let depth = request.depth;
    let mut plan = Plan {
        title: tree.facts.id.clone(),
        settings: Settings { quick: depth == Depth::Quick, ..request.settings.or_runs(depth.runs()) },
        ..Plan::default()
    };
    let recipes = if request.subjects.is_empty() {
        let all = SUBJECTS.iter().filter_map(|text| parse_recipe(text).ok());
        all.take(depth.subject_count()).filter(|recipe| is_here(recipe, subjects)).collect()
    } else {
        request.subjects.clone()
    };
    if request.subjects.is_empty() || request.readers.is_empty() {
        plan.missing.clone_from(&subjects.missing);
    }
    let or = |asked: &[String], usual: &[&str]| {
        if asked.is_empty() { usual.iter().map(|&name| name.into()).collect() } else { asked.to_vec() }
    };
    let devices: Vec<String> = or(&request.devices, &["disk"]);
    let mut workloads =
        if request.workloads.is_empty() { depth.workloads() } else { request.workloads.clone() };
    workloads.sort_unstable();
    for device in &devices {
        for &workload in &workloads {
            for recipe in &recipes {
                add(&mut plan, &tree, recipe, workload, device, request, subjects);
            }
        }
    }
    plan.trees.push(tree);
    plan
}

fn is_here(recipe: &Recipe, subjects: &Subjects) -> bool {
    subjects.maker(&recipe.maker).is_ok() || subjects.writable(&recipe.maker).is_ok()
}

fn add(
    plan: &mut Plan,
    tree: &PlannedTree,
    recipe: &Recipe,
    workload: Workload,
    device: &str,
    request: &OwnRequest,
    subjects: &Subjects,
) {
    let mut push = |reader: Option<&str>, jobs: Option<u32>| {
        let (tree, recipe, device) = (tree.facts.id.clone(), recipe.clone(), device.to_owned());
        plan.add(Cell { tree, recipe, reader: reader.map(str::to_owned), workload, device, jobs });
    };
    let is_chosen =
        |name: &str| request.readers.is_empty() || request.readers.iter().any(|asked| asked == name);
    match (workload.need(), is_writable(&recipe.format)) {
        (Need::Writable, true) => push(None, None),
        // Only what reads a copied tree says something of file systems that are written.
        (Need::Mount, true) => push(Some("kernel"), None),
        (Need::Writable, false) | (_, true) => {}
        (Need::Image, false) => push(None, None),
        (Need::Maker, false) => {
            let jobs = request.settings.jobs.unwrap_or(1).max(1);
            let all = if request.depth == Depth::Full { (1..=jobs).collect() } else { vec![jobs] };
            all.into_iter().for_each(|jobs| push(None, Some(jobs)));
        }
        (Need::Unpacker, false) => {
            let here = subjects.unpackers.iter().filter(|unpacker| unpacker.reads(&recipe.format));
            here.filter(|unpacker| is_chosen(unpacker.name()))
                .for_each(|unpacker| push(Some(unpacker.name()), None));
            // Who is named and not here is noted when he is tried.
            let named = request.readers.iter().filter(|name| is_unpacker(name));
            named.filter(|name| subjects.unpacker(name).is_err()).for_each(|name| push(Some(name), None));
        }
        (Need::Mount | Need::LargeFile, false) if request.readers.is_empty() => {
            let here = subjects.readers.iter().filter(|reader| reader.reads(&recipe.format));
            let is_usual = |name: &str| matches!(name, "kernel" | "packfs-fuse");
            here.filter(|reader| {
                request.depth == Depth::Full || is_usual(reader.name()) || recipe.format == "dwarfs"
            })
            .for_each(|reader| push(Some(reader.name()), None));
        }
        (Need::Mount | Need::LargeFile, false) => {
            // An unpacker that was named for other workloads mounts nothing.
            request.readers.iter().filter(|name| !is_unpacker(name)).for_each(|name| push(Some(name), None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::TreeFacts;

    fn subjects() -> Subjects {
        Subjects { makers: vec![], readers: vec![], unpackers: vec![], writable: vec![], missing: vec![] }
    }

    fn tree() -> PlannedTree {
        let facts =
            TreeFacts { id: "t".into(), made_by: String::new(), files: 1, dirs: 1, others: 0, bytes: 1 };
        PlannedTree { facts, path: "/t".into() }
    }

    fn labels(plan: &Plan) -> Vec<String> {
        plan.cells.iter().map(Cell::label).collect()
    }

    #[test]
    fn what_was_named_is_planned_though_it_is_not_here() {
        let request = OwnRequest {
            subjects: vec![parse_recipe("mksquashfs:squashfs:xz").unwrap()],
            readers: vec!["kernel".into()],
            workloads: vec![Workload::List, Workload::ImageSize],
            devices: vec!["disk".into(), "memory".into()],
            ..OwnRequest::default()
        };
        let plan = own_plan(tree(), &request, &subjects());
        let id = "mksquashfs squashfs xz of t";
        let expected = [
            format!("image-size, {id}, disk"),
            format!("list, {id}, kernel, disk"),
            format!("image-size, {id}, memory"),
            format!("list, {id}, kernel, memory"),
        ];
        assert_eq!(labels(&plan), expected);
        assert_eq!(plan.settings.runs, 3);
    }

    #[test]
    fn an_unpacker_that_was_named_is_planned_though_it_is_not_here_and_mounts_nothing() {
        let request = OwnRequest {
            subjects: vec![parse_recipe("mksquashfs:squashfs:xz").unwrap()],
            readers: vec!["unsquashfs".into(), "kernel".into()],
            workloads: vec![Workload::Decode, Workload::List],
            ..OwnRequest::default()
        };
        let id = "mksquashfs squashfs xz of t";
        let expected = [format!("decode, {id}, unsquashfs, disk"), format!("list, {id}, kernel, disk")];
        assert_eq!(labels(&own_plan(tree(), &request, &subjects())), expected);
    }

    #[test]
    fn a_file_system_that_is_written_is_read_by_the_kernel_and_never_built() {
        let request = OwnRequest {
            subjects: vec![parse_recipe("mkfs.btrfs:btrfs:zstd:1").unwrap()],
            depth: Depth::Full,
            settings: Settings { jobs: Some(2), ..Settings::default() },
            ..OwnRequest::default()
        };
        let plan = own_plan(tree(), &request, &subjects());
        let works: Vec<_> = plan.cells.iter().map(|cell| cell.workload).collect();
        assert!(works.contains(&Workload::Write) && works.contains(&Workload::TarRead));
        assert!(!works.contains(&Workload::Build) && !works.contains(&Workload::Decode));
        assert!(
            plan.cells.iter().all(|cell| cell.reader.is_none() || cell.reader.as_deref() == Some("kernel"))
        );
    }

    #[test]
    fn the_makers_that_are_usual_can_all_be_read() {
        assert!(SUBJECTS.iter().all(|text| parse_recipe(text).is_ok()));
        let plan = own_plan(tree(), &OwnRequest::default(), &subjects());
        assert!(plan.cells.is_empty());
    }
}
