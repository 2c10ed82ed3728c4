//! A table in aligned columns that fit the terminal: what does not fit loses its spreads, then the
//! ends of long words, and becomes a list at last.

use super::Style;
use crate::report::grid::{Grid, GridCell, Heading};
use crate::results::Table;

/// Between columns.
const GAP: usize = 2;

/// Columns of words are cut down to so many characters, not further.
const FEWEST: usize = 12;

/// The lines of a table with its notes.
pub fn lines(table: &Table, style: Style, width: Option<usize>) -> Vec<String> {
    let width = width.unwrap_or(usize::MAX);
    let mut grid = escaped(Grid::new(table, true), style);
    let mut widths = widths(&grid);
    if total(&widths) > width {
        grid = escaped(Grid::new(table, false), style);
        widths = self::widths(&grid);
    }
    shrink(&mut widths, &grid.headings, width);
    let mut lines = if total(&widths) > width { list(&grid, style) } else { columns(&grid, &widths, style) };
    for (index, why) in grid.notes.iter().enumerate() {
        lines.push(style.dim(&format!("({}) {why}", index + 1)));
    }
    lines
}

/// Columns that words take on the terminal, colours aside.
pub fn shown_width(words: &str) -> usize {
    let mut width = 0;
    let mut in_colour = false;
    for c in words.chars() {
        match (in_colour, c) {
            (false, '\x1b') => in_colour = true,
            (false, _) => width += 1,
            (true, c) => in_colour = c != 'm',
        }
    }
    width
}

/// The same words, none of which acts on a terminal.
fn escaped(mut grid: Grid, style: Style) -> Grid {
    let escape = |words: &mut String| *words = style.safe(words);
    grid.headings.iter_mut().for_each(|heading| escape(&mut heading.title));
    grid.rows.iter_mut().flatten().for_each(|cell| escape(&mut cell.text));
    grid.notes.iter_mut().for_each(escape);
    grid
}

fn widths(grid: &Grid) -> Vec<usize> {
    let of_column = |index: usize| {
        let cells = grid.rows.iter().filter_map(move |row| row.get(index)).map(|cell| cell.text.as_str());
        let all = cells.chain(std::iter::once(grid.headings[index].title.as_str()));
        all.map(|words| words.chars().count()).max().unwrap_or(0)
    };
    (0..grid.headings.len()).map(of_column).collect()
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

fn shrink(widths: &mut [usize], headings: &[Heading], width: usize) {
    while total(widths) > width {
        let too_much = total(widths) - width;
        let words =
            widths.iter_mut().zip(headings).filter(|(width, heading)| !heading.figures && **width > FEWEST);
        let Some((widest, _)) = words.max_by_key(|(width, _)| **width) else { return };
        *widest = widest.saturating_sub(too_much).max(FEWEST);
    }
}

fn columns(grid: &Grid, widths: &[usize], style: Style) -> Vec<String> {
    let fitted = |words: &str, index: usize| fit(words, widths[index], grid.headings[index].figures);
    let joined = |cells: Vec<String>| cells.join(&" ".repeat(GAP));
    let titles = grid.headings.iter().enumerate();
    let heading = joined(titles.map(|(index, heading)| style.bold(&fitted(&heading.title, index))).collect());
    let row = |row: &Vec<GridCell>| {
        let cells = row.iter().enumerate();
        let painted =
            cells.map(|(index, cell)| paint(&fitted(&cell.text, index), cell, &grid.headings[index], style));
        joined(painted.collect())
    };
    std::iter::once(heading).chain(grid.rows.iter().map(row)).collect()
}

/// Words in so many columns: figures to the right, words to the left and cut if they are too long.
fn fit(words: &str, width: usize, to_the_right: bool) -> String {
    if words.chars().count() > width {
        let kept: String = words.chars().take(width.saturating_sub(1)).collect();
        return kept + "~";
    }
    if to_the_right { format!("{words:>width$}") } else { format!("{words:width$}") }
}

fn paint(words: &str, cell: &GridCell, heading: &Heading, style: Style) -> String {
    match (cell.missing, heading.quoted) {
        (true, _) => style.yellow(words),
        (false, true) => style.dim(words),
        (false, false) => words.to_owned(),
    }
}

/// Each row as lines of `heading: cell`, a blank line between rows.
fn list(grid: &Grid, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &grid.rows {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let cells = row.iter().zip(&grid.headings).filter(|(cell, _)| !cell.text.is_empty());
        lines.extend(cells.map(|(cell, heading)| {
            format!("{}: {}", style.bold(&heading.title), paint(&cell.text, cell, heading, style))
        }));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Terminal;
    use crate::results::{Cell, Column, Spread, Unit};

    fn table() -> Table {
        let column = |title: &str, unit| Column { title: title.into(), unit, quoted: title == "theirs" };
        let figure = |figures: &[f64]| Cell::Figure(Spread::of(figures.iter().copied()).unwrap());
        Table {
            title: String::new(),
            method: String::new(),
            columns: vec![
                column("subject", Unit::Text),
                column("wall", Unit::Seconds),
                column("theirs", Unit::Seconds),
            ],
            rows: vec![
                vec![Cell::Text("packfs squashfs zstd:15".into()), figure(&[1.0, 1.5, 2.0]), figure(&[20.0])],
                vec![Cell::Text("mkdwarfs".into()), Cell::Missing("it is not on PATH".into()), Cell::Empty],
            ],
        }
    }

    fn at(width: usize) -> Vec<String> {
        lines(&table(), Style::Terminal(Terminal::default()), Some(width))
    }

    #[test]
    fn wide_terminals_show_all() {
        assert_eq!(
            at(80),
            [
                "subject                                   wall  theirs (quoted)",
                "packfs squashfs zstd:15  1.50 s (1.00 to 2.00)           20.0 s",
                "mkdwarfs                           missing (1)                 ",
                "(1) it is not on PATH",
            ]
        );
    }

    #[test]
    fn narrow_ones_lose_spreads_then_words_then_columns() {
        assert_eq!(at(53)[1], "packfs squashfs zstd:15       1.50 s           20.0 s");
        assert_eq!(at(46)[1], "packfs squashfs~       1.50 s           20.0 s");
        assert!(at(46).iter().all(|line| line.chars().count() <= 46));
        assert_eq!(
            at(30)[..3],
            ["subject: packfs squashfs zstd:15", "wall: 1.50 s", "theirs (quoted): 20.0 s"]
        );
        assert_eq!(at(30)[3..6], ["", "subject: mkdwarfs", "wall: missing (1)"]);
    }

    #[test]
    fn colours_take_no_room() {
        let style = Style::Terminal(Terminal { width: None, colours: true });
        let painted = lines(&table(), style, Some(80));
        assert!(painted[2].contains("\x1b[33m"));
        for (painted, plain) in painted.iter().zip(at(80)) {
            assert_eq!(shown_width(painted), plain.chars().count());
        }
    }
}
