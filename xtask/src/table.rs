//! Text tables, aligned for a terminal or as Markdown.

pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    /// First column with figures; these columns are right-aligned.
    figures_from: usize,
}

impl Table {
    pub fn new(headings: &[&str], figures_from: usize) -> Self {
        Self {
            headings: headings.iter().map(|text| (*text).to_owned()).collect(),
            rows: vec![],
            figures_from,
        }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.headings.len(), "a row has a cell for each heading");
        self.rows.push(cells);
    }

    pub fn text(&self) -> String {
        self.lines().map(|row| self.padded(row).join("  ").trim_end().to_owned() + "\n").collect()
    }

    pub fn markdown(&self) -> String {
        let mut lines: Vec<_> =
            self.lines().map(|row| format!("| {} |\n", self.padded(row).join(" | "))).collect();
        let rules: Vec<_> = (0..self.headings.len())
            .map(|column| {
                let dashes = "-".repeat(self.width(column).max(3) - 1);
                if column < self.figures_from { format!(":{dashes}") } else { format!("{dashes}:") }
            })
            .collect();
        lines.insert(1, format!("| {} |\n", rules.join(" | ")));
        lines.concat()
    }

    fn lines(&self) -> impl Iterator<Item = &Vec<String>> {
        std::iter::once(&self.headings).chain(&self.rows)
    }

    fn width(&self, column: usize) -> usize {
        self.lines().map(|row| row[column].chars().count()).max().unwrap_or(0).max(2)
    }

    fn padded(&self, row: &[String]) -> Vec<String> {
        let pad = |(column, cell): (usize, &String)| {
            let width = self.width(column);
            if column < self.figures_from { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        };
        row.iter().enumerate().map(pad).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["codec", "wall"], 1);
        table.row(vec!["xz".into(), "12.5 s".into()]);
        table
    }

    #[test]
    fn aligns_names_left_and_figures_right() {
        assert_eq!(table().text(), "codec    wall\nxz     12.5 s\n");
    }

    #[test]
    fn writes_a_markdown_table() {
        assert_eq!(table().markdown(), "| codec |   wall |\n| :---- | -----: |\n| xz    | 12.5 s |\n");
    }

    #[test]
    #[should_panic(expected = "a cell for each heading")]
    fn refuses_a_row_of_another_width() {
        table().row(vec![]);
    }
}
