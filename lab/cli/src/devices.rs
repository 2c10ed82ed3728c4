//! `packfs lab devices`: the devices that can be simulated, and whether the simulation is what it
//! says.

use std::process::ExitCode;

use owo_colors::OwoColorize;
use packfs::{Result, escaped};
use packfs_device::check::{Checked, Effort, Row, check};
use packfs_device::{DeviceSpec, builtin_names, find};
use packfs_terminal::json::{self, Value, json};
use packfs_terminal::report::{self, Out};
use packfs_terminal::{Outcome, text};

/// List devices that can be simulated under an image, and check that they are as slow as they are
/// to be
///
/// A device is one of those that come with packfs or a TOML file. With --check it is attached and
/// measured as a benchmark of disks does, which needs root; exit code 1 if a figure is outside its
/// tolerance, as it is on a machine that is busy.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Names of devices, or files (.toml) that describe some; all that come with packfs by default
    #[arg(value_name = "NAME|FILE")]
    devices: Vec<String>,

    /// Measure each device and hold it against its figures
    #[arg(long)]
    check: bool,

    /// Take seconds a device instead of half a minute
    #[arg(long, requires = "check")]
    quick: bool,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  packfs lab devices                       what there is
  packfs lab devices my-disk.toml          whether a description is right
  sudo packfs lab devices --check --quick sd hdd my-disk.toml";

impl Opts {
    /// Lists or checks.
    pub fn run(self) -> Outcome {
        let names: Vec<String> =
            if self.devices.is_empty() { builtin_names().map(str::to_owned).collect() } else { self.devices };
        // What is wrong with one is said before anything is measured.
        let specs = names.iter().map(|name| find(name)).collect::<Result<Vec<_>>>()?;
        if !self.check {
            return list(&specs, self.json);
        }
        let effort = if self.quick { Effort::Quick } else { Effort::Full };
        let mut is_met = true;
        let mut documents = Vec::new();
        for spec in &specs {
            let checked = check(spec, effort)?;
            is_met &= checked.is_met();
            for refused in &checked.refused {
                report::warning(&format!("{}: the kernel does not take {refused}", spec.name));
            }
            if self.json {
                documents.push(document(&checked));
            } else {
                let mut out = Out::stdout();
                table(&mut out, &checked)?;
                out.finish()?;
            }
        }
        if self.json {
            json::print(&Value::Array(documents))?;
        }
        Ok(if is_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn list(specs: &[DeviceSpec], as_json: bool) -> Outcome {
    if as_json {
        json::print(&Value::Array(specs.iter().map(figures).collect()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = Out::stdout();
    for spec in specs {
        out.line(format_args!("{}  {}", spec.name.bold(), escaped(spec.title.as_bytes())))?;
        out.line(format_args!("  {}", summary(spec)))?;
        for source in &spec.sources {
            out.line(format_args!("  source: {}", escaped(source.as_bytes())))?;
        }
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn summary(spec: &DeviceSpec) -> String {
    let rate = |rate: u64| format!("{:.1} MB/s", rate as f64 / 1e6);
    let mut parts = vec![format!("reads {} after {}", rate(spec.read.rate), span(spec.read.latency))];
    if spec.read.rate_at_end() != spec.read.rate {
        parts.push(format!("{} at its end", rate(spec.read.rate_at_end())));
    }
    match &spec.write {
        Some(write) => parts.push(format!("writes {} after {}", rate(write.rate), span(write.latency))),
        None => parts.push("read-only".into()),
    }
    if let Some(seek) = &spec.seek {
        parts.push(format!("seeks {} on average", span(seek.average)));
    }
    if let Some(iops) = spec.limits.iops {
        parts.push(format!("{} requests a second at most", text::count(u64::from(iops))));
    }
    parts.push(text::size(spec.medium.capacity));
    parts.join(", ")
}

fn span(nanos: u64) -> String {
    let micros = nanos as f64 / 1e3;
    if micros < 1000.0 { format!("{micros:.0} us") } else { format!("{:.1} ms", micros / 1e3) }
}

fn table(out: &mut Out, checked: &Checked) -> Result<()> {
    let title = escaped(checked.spec.title.as_bytes()).to_string();
    let (base, each) = checked.path_cost;
    out.line(format_args!("{}  {title}", checked.spec.name.bold()))?;
    out.line(format_args!(
        "  {:<34}{:>12}{:>12}        {:>8}{:>8}",
        "", "stated", "measured", "error", "late"
    ))?;
    for row in &checked.rows {
        let stated = row.stated.map_or_else(|| "-".to_owned(), figure);
        let error = row.error().map_or_else(|| "-".to_owned(), |error| format!("{:+.1} %", error * 100.0));
        let verdict = if row.is_met() { String::new() } else { format!("  {}", "outside".red()) };
        out.line(format_args!(
            "  {:<34}{stated:>12}{:>12} {:<7}{error:>8}{:>8}{verdict}",
            row.what,
            figure(row.measured),
            row.unit.word(),
            format!("{:.1} %", row.late * 100.0),
        ))?;
    }
    out.line(format_args!(
        "  the way there and back takes {} and {each:.2} ns a byte by itself; {:.1} s",
        span(base),
        checked.time as f64 / 1e9
    ))
}

/// Three digits that count, and all before the point.
fn figure(value: f64) -> String {
    match value {
        value if value >= 1000.0 => text::count(value.round() as u64),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn document(checked: &Checked) -> Value {
    let row = |row: &Row| {
        json!({
            "what": row.what, "unit": row.unit.word(), "stated": row.stated, "measured": row.measured,
            "error": row.error(), "tolerance": row.tolerance, "met": row.is_met(), "late": row.late,
        })
    };
    let found = json!({
        "rows": checked.rows.iter().map(row).collect::<Value>(),
        "met": checked.is_met(),
        "path_cost_ns": checked.path_cost.0,
        "path_cost_ns_per_byte": checked.path_cost.1,
        "refused_attributes": checked.refused,
        "seconds": checked.time as f64 / 1e9,
    });
    let mut document = figures(&checked.spec);
    if let (Value::Object(all), Value::Object(found)) = (&mut document, found) {
        all.extend(found);
    }
    document
}

fn figures(spec: &DeviceSpec) -> Value {
    let mut figures = json!({
        "name": spec.name,
        "title": spec.title,
        "sources": spec.sources,
        "capacity": spec.medium.capacity,
        "block_len": spec.medium.block_len,
        "writable": spec.is_writable(),
        "read_rate": spec.read.rate,
        "read_rate_at_end": spec.read.rate_at_end(),
        "read_latency_ns": spec.read.latency,
    });
    if let Some(write) = &spec.write {
        figures["write_rate"] = write.rate.into();
        figures["write_latency_ns"] = write.latency.into();
    }
    if let Some(seek) = &spec.seek {
        figures["seek_average_ns"] = seek.average.into();
    }
    figures["iops_limit"] = spec.limits.iops.into();
    figures["rate_limit"] = spec.limits.rate.into();
    figures["queue_depth"] = spec.queue.depth.into();
    figures
}
