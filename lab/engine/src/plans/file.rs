//! The format of plans: rows that may hold further rows, which inherit the keys they leave out.

use std::fmt;

use packfs::{Error, Result, one_line};
use serde::Deserialize;
use toml::{Table, Value};

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

/// Upper limits; those that are not set are not looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Target {
    /// Time, as a part of the rival's.
    pub wall: Option<f64>,
    /// Time, in seconds.
    pub seconds: Option<f64>,
    /// Processor time, as a part of the rival's.
    pub cpu: Option<f64>,
    /// Length of the image, as a part of the rival's.
    pub size: Option<f64>,
    /// Length of the image, in bytes.
    pub bytes: Option<u64>,
    /// Bytes that the device below reads, as a part of the rival's.
    pub device_bytes: Option<f64>,
    /// Requests in which it reads them, as a part of the rival's.
    pub device_requests: Option<f64>,
    /// Memory of the program, or of the one that serves a mount, in MiB.
    pub memory_mib: Option<u64>,
    /// Bytes of memory that each file, folder or other entry of the tree adds to that.
    pub memory_per_entry: u64,
}

impl Target {
    /// Returns true if a limit is a part of the rival's figure.
    fn needs_rival(&self) -> bool {
        let parts = [self.wall, self.cpu, self.size, self.device_bytes, self.device_requests];
        parts.iter().any(Option::is_some)
    }
}

/// Spelled for lists: `time at most 0.4, size at most 0.99`.
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
            self.seconds.map(|most| format!("time at most {most} s")),
            part("processor time", self.cpu),
            part("size", self.size),
            self.bytes.map(|most| format!("size at most {most} bytes")),
            part("bytes from the device", self.device_bytes),
            part("requests to the device", self.device_requests),
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
    /// Device, or devices, of cases that name none.
    device: Option<Value>,
    /// Cases, and rows of what several have in common.
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

/// Returns the rows in a row that hold no further ones, with all that it gives them.
fn leaves(mut outer: Table) -> Vec<Table> {
    let Some(Value::Array(cases)) = outer.remove("cases") else { return vec![outer] };
    let inner = cases.iter().filter_map(Value::as_table);
    inner.flat_map(|row| leaves(outer.clone().into_iter().chain(row.clone()).collect())).collect()
}

/// Reads a device, or a list of such.
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
        let target: Target = row.try_into().map_err(|error: toml::de::Error| one_line(&error.to_string()))?;
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
