//! The format of plans: rows that may hold further rows, which inherit the keys they leave out.

use packfs::{Error, Result, one_line};
use serde::Deserialize;
use toml::{Table, Value};

use super::target::Target;
use crate::results::Recipe;
use crate::session::{parse_recipe, recipe_label};
use crate::workload::{Need, Workload};

/// A plan with targets.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanFile {
    /// Name on the command line.
    pub name: String,
    /// One line about its purpose.
    pub title: String,
    /// Measured runs of each cell.
    pub runs: u32,
    /// The comparisons.
    pub cases: Vec<Case>,
}

/// packfs and a rival under one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The work that is measured.
    pub workload: Workload,
    /// The side of packfs.
    pub packfs: Side,
    /// The side that packfs is held against; none if only limits are set.
    pub rival: Option<Side>,
    /// Devices below images.
    pub devices: Vec<String>,
    /// The limits.
    pub target: Target,
}

/// An image of a tree, and its reader where the workload reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Name of the tree.
    pub tree: String,
    /// Recipe of the image.
    pub recipe: Recipe,
    /// Its reader.
    pub reader: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    #[serde(default = "usual_runs")]
    runs: u32,
    /// Device, or devices, of cases that name none.
    device: Option<Value>,
    case: Vec<Table>,
}

fn usual_runs() -> u32 {
    5
}

/// Device below images where none is named.
const USUAL_DEVICE: &str = "memory";

impl PlanFile {
    /// Reads a plan.
    ///
    /// Errors: `Usage`, with the place.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let refuse = |why: String| Error::usage(format!("plan {name:?}: {why}"));
        let file: File = toml::from_str(text).map_err(|error| refuse(one_line(&error.to_string())))?;
        let device = file.device.unwrap_or_else(|| USUAL_DEVICE.into());
        let mut rows: Vec<Table> = file.case.into_iter().flat_map(leaves).collect();
        for row in &mut rows {
            row.entry("device").or_insert_with(|| device.clone());
        }
        let cases = rows.into_iter().map(Case::of).collect::<Result<_, String>>().map_err(refuse)?;
        Ok(Self { name: name.into(), title: file.title, runs: file.runs, cases })
    }
}

fn leaves(mut outer: Table) -> Vec<Table> {
    let Some(Value::Array(cases)) = outer.remove("cases") else { return vec![outer] };
    let inner = cases.iter().filter_map(Value::as_table);
    inner.flat_map(|row| leaves(outer.clone().into_iter().chain(row.clone()).collect())).collect()
}

fn devices(value: Value) -> Result<Vec<String>, String> {
    let devices: Option<Vec<String>> = match value {
        Value::String(device) => Some(vec![device]),
        Value::Array(devices) => devices.iter().map(|it| it.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    devices
        .filter(|devices| !devices.is_empty())
        .ok_or_else(|| "device takes a name, or a list of names".into())
}

impl Case {
    /// Reads a row: keys of its own, all others are limits.
    fn of(mut row: Table) -> Result<Self, String> {
        let devices = row.remove("device").map_or(Ok(Vec::new()), devices)?;
        let mut word = |key: &str| row.remove(key).and_then(|value| value.as_str().map(str::to_owned));
        let tree = word("tree").ok_or("a case has no tree")?;
        let workload = Workload::named(&word("workload").ok_or("a case has no workload")?);
        let workload = workload.map_err(|error| error.to_string())?;
        let packfs = word("packfs").ok_or("a case has no image of packfs")?;
        let image = word("image").unwrap_or_default();
        let rival_tree = word("rival_tree").unwrap_or_else(|| tree.clone());
        let rival = word("rival").map(|rival| Side::of(&rival, &image, rival_tree, workload)).transpose()?;
        let target = Target::of(row)?;
        if rival.is_none() && target.needs_rival() {
            return Err(format!("{packfs}: a part of a rival's figure needs a rival"));
        }
        let packfs = Side::of(&packfs, &image, tree, workload)?;
        Ok(Self { workload, packfs, rival, devices, target })
    }

    /// Spells a case: `build debian: packfs squashfs zstd:15 128K, mksquashfs squashfs zstd:15
    /// 128K`.
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

impl Side {
    /// Reads `RECIPE` or `RECIPE @ READER`, in which `{image}` stands for `image`.
    fn of(text: &str, image: &str, tree: String, workload: Workload) -> Result<Self, String> {
        let text = text.replace("{image}", image);
        let (recipe, reader) =
            text.split_once(" @ ").map_or((&*text, None), |(recipe, reader)| (recipe, Some(reader)));
        let needs_reader = matches!(workload.need(), Need::Unpacker | Need::Mount | Need::LargeFile);
        if needs_reader != reader.is_some() {
            let takes = if needs_reader { "a reader, as in \"RECIPE @ READER\"" } else { "no reader" };
            return Err(format!("{text:?}: {} takes {takes}", workload.name()));
        }
        let recipe = parse_recipe(recipe).map_err(|error| error.to_string())?;
        Ok(Self { tree, recipe, reader: reader.map(str::to_owned) })
    }

    /// Spells a side: `packfs squashfs zstd:15 128K by kernel`.
    pub fn label(&self) -> String {
        let reader = self.reader.iter().map(|reader| format!(" by {reader}"));
        [recipe_label(&self.recipe)].into_iter().chain(reader).collect()
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
    fn a_case_is_measured_on_its_own_devices_or_on_those_of_the_plan() {
        let case = "tree = 't'\nworkload = 'build'\npackfs = 'packfs:erofs:lz4'";
        let devices = |first: &str, row: &str| {
            let text = format!("title = 't'\n{first}\n[[case]]\n{case}\n{row}");
            PlanFile::parse("p", &text).unwrap().cases[0].devices.clone()
        };
        assert_eq!(devices("", ""), ["memory"]);
        assert_eq!(devices("device = 'disk'", ""), ["disk"]);
        assert_eq!(devices("device = 'disk'", "device = ['sd', 'hdd']"), ["sd", "hdd"]);
    }

    #[test]
    fn states_the_fault() {
        for (case, word) in [
            ("workload='build'\npackfs='packfs:erofs'", "no tree"),
            ("tree='t'\npackfs='packfs:erofs'", "no workload"),
            ("tree='t'\nworkload='list'\npackfs='packfs:erofs'", "a reader"),
            ("tree='t'\nworkload='build'\npackfs='packfs:erofs @ kernel'", "no reader"),
            ("tree='t'\nworkload='build'\npackfs='packfs:erofs'\nwall=0.5", "needs a rival"),
            ("tree='t'\nworkload='build'\npackfs='packfs:erofs'\ndevice_requests=1.0", "needs a rival"),
            ("tree='t'\nworkload='build'\npackfs='packfs'", "is no subject"),
            ("tree='t'\nworkload='build'\npackfs='packfs:erofs'\nspeed=2", "speed"),
            ("tree='t'\nworkload='build'\npackfs='packfs:erofs'\ndevice=[]", "device takes"),
        ] {
            let error = PlanFile::parse("p", &format!("title='t'\n[[case]]\n{case}")).unwrap_err();
            assert!(error.to_string().contains(word), "{word}: {error}");
        }
    }
}
