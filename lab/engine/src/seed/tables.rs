//! The engine: draws the tables of any document from results, and finds its plan by the figures
//! that they look up.

use super::DocumentRequest;
use super::document::{
    Document, Kind, Layout, RowSpec, RowsPer, TableSpec, Timed, UsageFigure, UsageOf, Value, Variables,
};
use super::row::Row;
use crate::lookup::Lookup;
use crate::results::{Cell, Column, Recipe, Results, Table, Unit};
use crate::session::{Cell as PlannedCell, Plan, parse_recipe};
use crate::workload::Workload;

impl Document {
    /// Returns the plan that measures everything its tables show.
    pub fn plan(&self, asked: &DocumentRequest) -> Plan {
        let results = Results::default();
        let engine = Engine { document: self, asked, found: Lookup::new(&results) };
        engine.tables();
        let mut plan = asked.empty_plan(self);
        engine.found.into_cells().into_iter().for_each(|cell| plan.add(cell));
        plan
    }

    /// Returns its tables, with its own figures and those of a session.
    pub fn tables(&self, asked: &DocumentRequest, results: &Results) -> Vec<Table> {
        Engine { document: self, asked, found: Lookup::new(results) }.tables()
    }
}

struct Engine<'a> {
    document: &'a Document,
    asked: &'a DocumentRequest,
    found: Lookup<'a>,
}

impl Engine<'_> {
    fn tables(&self) -> Vec<Table> {
        let specs = self.document.tables.iter();
        let specs: Vec<_> =
            specs.filter_map(|spec| Some((self.document.layouts.get(&spec.layout)?, spec))).collect();
        let mut tables = Vec::new();
        let (once, devices) = ([String::new()], self.asked.devices(&self.document.devices));
        for group in specs.chunk_by(|a, b| a.0.per_device && b.0.per_device) {
            let is_repeated = group.iter().any(|(layout, _)| layout.per_device);
            for device in if is_repeated { devices } else { &once } {
                tables.extend(group.iter().map(|(layout, spec)| self.table(layout, spec, device)));
            }
        }
        tables
    }

    fn table(&self, layout: &Layout, spec: &TableSpec, device: &str) -> Table {
        let common = self.in_tree(self.common(spec)).set("device", device);
        let mut rows: Vec<_> = self.rows(&spec.rows).into_iter().map(|row| common.with(row)).collect();
        rows.retain(|row| layout.having.as_ref().is_none_or(|name| row.0.contains_key(name)));
        if let Some(figure) = &layout.falling {
            rows.sort_by(|a, b| b.figure(figure).total_cmp(&a.figure(figure)));
        }
        let rows = self.repeated(rows, layout.rows_per).into_iter().map(|row| self.in_tree(row));
        let cells = |row: Row| layout.columns.iter().map(|column| self.cell(&column.is, &row)).collect();
        let columns = layout.columns.iter().map(|column| Column {
            title: column.title.clone(),
            unit: column.unit.unwrap_or(Unit::Text),
            quoted: self.document.is_quoted(&column.is),
        });
        Table {
            title: common.fill(&layout.title).unwrap_or_default(),
            method: common.fill(&layout.method).unwrap_or_default(),
            columns: columns.collect(),
            rows: rows.map(cells).collect(),
        }
    }

    fn common(&self, spec: &TableSpec) -> Row {
        let row = Row(spec.variables.clone());
        match row.text("workload").and_then(|name| Workload::named(&name).ok()) {
            Some(workload) => row
                .set("workload-title", &*workload.row().title)
                .set("workload-command", &*workload.row().command),
            None => row,
        }
    }

    /// Returns the row with the name of its tree, which the variable `role` numbers.
    fn in_tree(&self, row: Row) -> Row {
        let role = row.figure("role") as usize;
        row.set("tree", self.asked.roles.id(role))
    }

    /// Returns the variables of rows: those of the list, then those on LUKS. Sessions of minutes
    /// leave out rows marked `full`.
    fn rows(&self, specs: &[RowSpec]) -> Vec<Variables> {
        let mut rows = Vec::new();
        for spec in specs {
            let list = match spec {
                RowSpec::List(name) => self.document.rows.get(name).map_or(&[][..], Vec::as_slice),
                RowSpec::Row(row) => std::slice::from_ref(row),
            };
            let mut list: Vec<_> = list.iter().map(|row| self.document.variables(row)).collect();
            list.retain(|row| !self.asked.settings.quick || !row.contains_key("full"));
            let on_luks = |row: &Variables| {
                let mut row = row.clone();
                let luks = row.get("luks").filter(|_| self.asked.luks)?.as_table()?.clone();
                // The document's figures are of the filesystem without LUKS.
                row.retain(|_, variable| !variable.is_array());
                row.extend(luks);
                Some(row)
            };
            let luks: Vec<_> = list.iter().filter_map(on_luks).collect();
            rows.extend(list.into_iter().chain(luks));
        }
        rows
    }

    fn repeated(&self, rows: Vec<Row>, per: Option<RowsPer>) -> Vec<Row> {
        let with_jobs =
            |row: &Row, from| self.jobs(from).map(|jobs| row.clone().set("jobs", jobs)).collect::<Vec<_>>();
        match per {
            None => rows,
            Some(RowsPer::Jobs) => rows.iter().flat_map(|row| with_jobs(row, 1)).collect(),
            Some(RowsPer::SeveralJobs) => rows.iter().flat_map(|row| with_jobs(row, 2)).collect(),
            Some(RowsPer::Device) => {
                let devices = self.asked.devices(&self.document.devices).iter();
                devices
                    .flat_map(|device| rows.iter().map(move |row| row.clone().set("device", &**device)))
                    .collect()
            }
        }
    }

    fn jobs(&self, from: u32) -> std::ops::RangeInclusive<u32> {
        from..=self.asked.settings.jobs.unwrap_or(1).clamp(1, self.document.most_jobs.unwrap_or(1))
    }

    fn cell(&self, value: &Value, row: &Row) -> Cell {
        match value {
            Value::Named(name) => {
                self.document.values.get(name).map_or(Cell::Empty, |value| self.cell(value, row))
            }
            Value::Of(kind) => self.computed(kind, row).unwrap_or(Cell::Empty),
        }
    }

    fn computed(&self, kind: &Kind, row: &Row) -> Option<Cell> {
        Some(match kind {
            Kind::Text(template) => Cell::Text(row.fill(template)?),
            Kind::Missing(template) => Cell::Missing(row.fill(template)?),
            Kind::Count(name) | Kind::Quote(name) => row.cell(name),
            Kind::Size(name) if row.text(name)? == "tree" => Cell::exact(self.tree_bytes(row)?),
            Kind::Size(name) => self.found.size(&row.text("tree")?, &subject(row, name)?),
            Kind::Seconds(timed) => self.found.of_runs(planned(timed, row)?, |run| Some(run.wall)),
            Kind::Rate(timed) => {
                self.found.of_runs(planned(timed, row)?, |run| run.bytes.map(|bytes| bytes as f64 / run.wall))
            }
            Kind::Usage(of) => self.usage(of, row)?,
            Kind::Ratio(of) => {
                let whole = self.median(&of.1, row);
                Cell::exact(self.median(&of.0, row)? / whole.filter(|whole| *whole != 0.0)?)
            }
            Kind::First(of) => {
                let cells: Vec<_> = of.iter().map(|value| self.cell(value, row)).collect();
                let figure = cells.iter().find(|cell| matches!(cell, Cell::Figure(_)));
                figure.or_else(|| cells.iter().find(|cell| **cell != Cell::Empty))?.clone()
            }
            Kind::Fastest(of) => self.fastest(of, row)?,
            Kind::Throughput(of) => match self.cell(of, row) {
                Cell::Figure(spread) => Cell::exact(self.tree_bytes(row)? / spread.median),
                other => other,
            },
            Kind::Rank(place) => self.rank(*place, row)?,
        })
    }

    fn median(&self, value: &Value, row: &Row) -> Option<f64> {
        match self.cell(value, row) {
            Cell::Figure(spread) => Some(spread.median),
            _ => None,
        }
    }

    fn tree_bytes(&self, row: &Row) -> Option<f64> {
        Some(self.found.tree(&row.text("tree")?).map_or(0.0, |tree| tree.bytes as f64))
    }

    /// Returns the smallest figure over all numbers of jobs, or the last reason if there is none.
    fn fastest(&self, of: &Value, row: &Row) -> Option<Cell> {
        let cells = self.jobs(1).map(|jobs| self.cell(of, &row.clone().set("jobs", jobs)));
        cells.reduce(|a, b| match (&a, &b) {
            (Cell::Figure(first), Cell::Figure(second)) if second.median >= first.median => a,
            (Cell::Figure(_), Cell::Missing(_) | Cell::Empty) => a,
            _ => b,
        })
    }

    /// Returns a figure of compsize; where it is missing, the share gives the reason for the whole
    /// row.
    fn usage(&self, of: &UsageOf, row: &Row) -> Option<Cell> {
        let found = self.found.usage(&row.text("tree")?, &subject(row, &of.of)?, &row.text(&of.codec)?);
        Some(match (found, of.figure) {
            (Ok(usage), UsageFigure::Share) if usage.uncompressed == 0 => Cell::exact(0.0),
            (Ok(usage), UsageFigure::Share) => Cell::exact(usage.disk as f64 / usage.uncompressed as f64),
            (Ok(usage), UsageFigure::Disk) => Cell::exact(usage.disk as f64),
            (Ok(usage), UsageFigure::Uncompressed) => Cell::exact(usage.uncompressed as f64),
            (Ok(usage), UsageFigure::Referenced) => Cell::exact(usage.referenced as f64),
            (Err(why), UsageFigure::Share) => why,
            (Err(_), _) => Cell::Empty,
        })
    }

    /// Returns the name at a place of the document's ranking, in the tree and on the device of a
    /// row.
    fn rank(&self, place: isize, row: &Row) -> Option<Cell> {
        let ranking = self.document.ranking.as_ref()?;
        let mut ranked = Vec::new();
        for other in self.rows(&[RowSpec::List(ranking.rows.clone())]) {
            let row = row.with(other);
            let factors: Vec<_> = ranking.by.iter().map(|value| self.median(value, &row)).collect();
            let score = factors.into_iter().product::<Option<f64>>();
            ranked.extend(row.text(&ranking.name).zip(score));
        }
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        let place = if place < 0 { ranked.len().checked_add_signed(place)? } else { place.unsigned_abs() };
        ranked.get(place).map(|(name, _)| Cell::Text(name.clone()))
    }
}

fn subject(row: &Row, name: &str) -> Option<Recipe> {
    parse_recipe(&row.text(name)?).ok()
}

fn planned(timed: &Timed, row: &Row) -> Option<PlannedCell> {
    let workload = match timed.workload {
        Some(workload) => workload,
        None => Workload::named(&row.text("workload")?).ok()?,
    };
    Some(PlannedCell {
        tree: row.text("tree")?,
        recipe: subject(row, &timed.of)?,
        reader: timed.reader.clone(),
        workload,
        device: row.text("device")?,
        jobs: timed.jobs.or_else(|| row.text("jobs")?.parse().ok()),
    })
}
