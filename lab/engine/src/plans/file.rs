//! The format of plans: rows that may hold further rows, which take over whatever they leave out.

use std::fmt;

use packfs::{Error, Result};
use serde::Deserialize;

use crate::results::Recipe;
use crate::session::{parse_recipe, recipe_label};
use crate::workload::{Need, Workload};

/// A plan with targets.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanFile {
    /// As it is asked for.
    pub name: String,
    /// What it measures, in a line.
    pub title: String,
    /// Measured runs of each cell.
    pub runs: u32,
    /// What images lie on.
    pub device: String,
    /// What is compared.
    pub cases: Vec<Case>,
}

/// packfs and a rival under one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// What is done.
    pub workload: Workload,
    /// What stands for packfs.
    pub packfs: Side,
    /// What it is held against; none where only limits are set.
    pub rival: Option<Side>,
    /// What is to be reached.
    pub target: Target,
}

/// An image of a tree, and its reader where the workload reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Name of the tree.
    pub tree: String,
    /// How the image is made.
    pub recipe: Recipe,
    /// Who reads it.
    pub reader: Option<String>,
}

/// Upper limits; those that are not set are not looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Target {
    /// Time, as a part of the rival's.
    pub wall: Option<f64>,
    /// Processor time, as a part of the rival's.
    pub cpu: Option<f64>,
    /// Length of the image, as a part of the rival's.
    pub size: Option<f64>,
    /// Length of the image, in bytes.
    pub bytes: Option<u64>,
    /// Memory of the program, or of the one that serves a mount, in MiB.
    pub memory_mib: Option<u64>,
    /// Bytes of memory that each file, folder or other entry of the tree adds to that.
    pub memory_per_entry: u64,
}

/// As it is listed: `time at most 0.4, size at most 0.99`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part =
            |what: &str, most: Option<f64>| most.map(|most| format!("{what} at most {most} of the rival's"));
        let per_entry = match self.memory_per_entry {
            0 => String::new(),
            bytes => format!(" and {bytes} bytes an entry"),
        };
        let parts = [
            part("time", self.wall),
            part("processor time", self.cpu),
            part("size", self.size),
            self.bytes.map(|most| format!("size at most {most} bytes")),
            self.memory_mib.map(|most| format!("memory at most {most} MiB{per_entry}")),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        f.write_str(&if parts.is_empty() { "no target".to_owned() } else { parts.join(", ") })
    }
}

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    #[serde(default = "usual_runs")]
    runs: u32,
    #[serde(default = "usual_device")]
    device: String,
    case: Vec<Row>,
}

fn usual_runs() -> u32 {
    5
}

fn usual_device() -> String {
    "memory".into()
}

/// A case, or what several have in common.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Row {
    tree: Option<String>,
    rival_tree: Option<String>,
    workload: Option<Workload>,
    /// What `{image}` stands for in the two that follow.
    image: Option<String>,
    packfs: Option<String>,
    rival: Option<String>,
    wall: Option<f64>,
    cpu: Option<f64>,
    size: Option<f64>,
    bytes: Option<u64>,
    memory_mib: Option<u64>,
    memory_per_entry: Option<u64>,
    cases: Vec<Row>,
}

impl PlanFile {
    /// Reads a plan.
    ///
    /// Errors: `Usage`, with the place.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let refuse = |why: String| Error::usage(format!("plan {name:?}: {why}"));
        let file: File = toml::from_str(text).map_err(|error| refuse(error.to_string()))?;
        let rows = file.case.iter().flat_map(|row| row.leaves(&Row::default()));
        let cases = rows.map(|row| row.case()).collect::<Result<_, String>>().map_err(refuse)?;
        Ok(Self { name: name.into(), title: file.title, runs: file.runs, device: file.device, cases })
    }
}

impl Row {
    /// Rows without further rows, with all that `outer` gives them.
    fn leaves(&self, outer: &Self) -> Vec<Self> {
        let own = Self {
            tree: self.tree.clone().or_else(|| outer.tree.clone()),
            rival_tree: self.rival_tree.clone().or_else(|| outer.rival_tree.clone()),
            workload: self.workload.or(outer.workload),
            image: self.image.clone().or_else(|| outer.image.clone()),
            packfs: self.packfs.clone().or_else(|| outer.packfs.clone()),
            rival: self.rival.clone().or_else(|| outer.rival.clone()),
            wall: self.wall.or(outer.wall),
            cpu: self.cpu.or(outer.cpu),
            size: self.size.or(outer.size),
            bytes: self.bytes.or(outer.bytes),
            memory_mib: self.memory_mib.or(outer.memory_mib),
            memory_per_entry: self.memory_per_entry.or(outer.memory_per_entry),
            cases: vec![],
        };
        if self.cases.is_empty() {
            return vec![own];
        }
        self.cases.iter().flat_map(|inner| inner.leaves(&own)).collect()
    }

    fn case(&self) -> Result<Case, String> {
        let tree = self.tree.clone().ok_or("a case has no tree")?;
        let workload = self.workload.ok_or("a case has no workload")?;
        let packfs = self.packfs.as_deref().ok_or("a case has no image of packfs")?;
        let target = Target {
            wall: self.wall,
            cpu: self.cpu,
            size: self.size,
            bytes: self.bytes,
            memory_mib: self.memory_mib,
            memory_per_entry: self.memory_per_entry.unwrap_or(0),
        };
        let rival = self.rival.as_deref();
        if rival.is_none() && (target.wall.is_some() || target.cpu.is_some() || target.size.is_some()) {
            return Err(format!("{packfs}: a part of a rival's figure needs a rival"));
        }
        let rival_tree = self.rival_tree.clone().unwrap_or_else(|| tree.clone());
        Ok(Case {
            workload,
            packfs: self.side(packfs, tree, workload)?,
            rival: rival.map(|rival| self.side(rival, rival_tree, workload)).transpose()?,
            target,
        })
    }

    /// `RECIPE` or `RECIPE @ READER`.
    fn side(&self, text: &str, tree: String, workload: Workload) -> Result<Side, String> {
        let text = text.replace("{image}", self.image.as_deref().unwrap_or_default());
        let (recipe, reader) =
            text.split_once(" @ ").map_or((&*text, None), |(recipe, reader)| (recipe, Some(reader)));
        let needs_reader = matches!(workload.need(), Need::Unpacker | Need::Mount | Need::LargeFile);
        if needs_reader != reader.is_some() {
            return Err(format!(
                "{text:?}: {} takes {}",
                workload.name(),
                match needs_reader {
                    true => "a reader, as in \"RECIPE @ READER\"",
                    false => "no reader",
                }
            ));
        }
        let recipe = parse_recipe(recipe).map_err(|error| error.to_string())?;
        Ok(Side { tree, recipe, reader: reader.map(str::to_owned) })
    }
}

impl Side {
    /// `packfs squashfs zstd:15 128K`, with its reader.
    pub fn label(&self) -> String {
        let reader = self.reader.iter().map(|reader| format!(" by {reader}"));
        [recipe_label(&self.recipe)].into_iter().chain(reader).collect()
    }
}

impl Case {
    /// `build debian: packfs squashfs zstd:15 128K, mksquashfs squashfs zstd:15 128K`.
    pub fn label(&self) -> String {
        let rival = self.rival.iter().map(|rival| {
            let elsewhere = Some(&rival.tree).filter(|tree| **tree != self.packfs.tree);
            let of = elsewhere.map_or_else(String::new, |tree| format!(" of {tree}"));
            format!(", {}{of}", rival.label())
        });
        let start = format!("{} {}: {}", self.workload.name(), self.packfs.tree, self.packfs.label());
        [start].into_iter().chain(rival).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<String> {
        PlanFile::parse("p", &format!("title = 't'\n{text}")).unwrap().cases.iter().map(Case::label).collect()
    }

    #[test]
    fn rows_take_over_what_they_leave_out() {
        let text = r#"
            [[case]]
            tree = "debian"
            workload = "build"
            packfs = "packfs:squashfs:{image}"
            rival = "mksquashfs:squashfs:{image}"
            cases = [
                { image = "gzip:9:128K", wall = 0.4 },
                { size = 1.0, cases = [{ image = "xz" }, { image = "lz4", rival_tree = "other" }] },
            ]
        "#;
        assert_eq!(
            labels(text),
            [
                "build debian: packfs squashfs gzip:9 128K, mksquashfs squashfs gzip:9 128K",
                "build debian: packfs squashfs xz, mksquashfs squashfs xz",
                "build debian: packfs squashfs lz4, mksquashfs squashfs lz4 of other",
            ]
        );
    }

    #[test]
    fn readers_stand_behind_images() {
        let text = "[[case]]\ntree='t'\nworkload='list'\npackfs='packfs:erofs:lz4 @ packfs-fuse'\n\
                    rival='packfs:erofs:lz4 @ kernel'\nwall=1.0";
        assert_eq!(labels(text), ["list t: packfs erofs lz4 by packfs-fuse, packfs erofs lz4 by kernel"]);
    }

    #[test]
    fn says_what_is_wrong() {
        for (case, word) in [
            ("workload='build'\npackfs='packfs:erofs'", "no tree"),
            ("tree='t'\npackfs='packfs:erofs'", "no workload"),
            ("tree='t'\nworkload='list'\npackfs='packfs:erofs'", "a reader"),
            ("tree='t'\nworkload='build'\npackfs='packfs:erofs @ kernel'", "no reader"),
            ("tree='t'\nworkload='build'\npackfs='packfs:erofs'\nwall=0.5", "needs a rival"),
            ("tree='t'\nworkload='build'\npackfs='packfs'", "is no subject"),
            ("tree='t'\nworkload='build'\npackfs='packfs:erofs'\nspeed=2", "speed"),
        ] {
            let error = PlanFile::parse("p", &format!("title='t'\n[[case]]\n{case}")).unwrap_err();
            assert!(error.to_string().contains(word), "{word}: {error}");
        }
    }
}
