//! One page that needs no network: plots, a table of all measurements that can be filtered and
//! sorted, and the sections of the report. What is chosen on it stands in its address behind `#`:
//! `report.html#filter=erofs`. What can be said without a script is said without one.

mod rows;

use packfs::Result;
use packfs_page::{Page, data, escape};

use crate::report::context;
use crate::report::grid::{Grid, GridCell, Heading};
use crate::report::sections::{Part, Section, sections};
use crate::results::{Results, Table};

/// The whole file.
///
/// Errors: none that results can cause; figures that are no numbers are `null` to the script.
pub fn html(results: &Results) -> Result<String> {
    let page = Page {
        title: format!("{} - packfs lab", results.title),
        style: include_str!("html/report.css"),
        scripts: &[
            include_str!("html/axes.js"),
            include_str!("html/plots.js"),
            include_str!("html/table.js"),
            include_str!("html/main.js"),
        ],
        data: data(&rows::data(results))?,
        body: body(results),
    };
    Ok(page.html())
}

/// Fills the names in braces of `report.html`, which no text of results can hold by then.
fn body(results: &Results) -> String {
    // The page's own table has them all.
    let sections: Vec<_> =
        sections(results).into_iter().filter(|section| section.title != "All measurements").collect();
    let machine = &results.machine;
    let about = [&machine.processor, &machine.kernel, &machine.started].map(|words| escape(words)).join(", ");
    let link = |section: &Section| {
        format!("<a href=\"#\" data-to=\"{}\">{}</a>\n", anchor(section.title), section.title)
    };
    let parts: [(&str, String); 5] = [
        ("{title}", escape(&results.title)),
        ("{headline}", escape(&context::headline(results))),
        ("{about}", about),
        ("{links}", sections.iter().map(link).collect()),
        ("{sections}", sections.iter().map(section).collect()),
    ];
    let mut rest = include_str!("html/report.html");
    let mut body = String::new();
    for (name, words) in parts {
        let (before, after) = rest.split_once(name).unwrap_or((rest, ""));
        body.push_str(before);
        body.push_str(&words);
        rest = after;
    }
    body + rest
}

fn anchor(title: &str) -> String {
    title.to_lowercase().replace(' ', "-")
}

fn section(section: &Section) -> String {
    let parts: String = section.parts.iter().map(|it| part(section.title, it)).collect();
    format!("<h2 id=\"{}\">{}</h2>\n{parts}", anchor(section.title), section.title)
}

fn part(title: &str, part: &Part) -> String {
    let list = |rows: Vec<String>| format!("<dl>\n{}</dl>\n", rows.concat());
    match part {
        Part::Facts(lines) => list(lines.iter().map(|(label, what)| fact(label, what)).collect()),
        Part::Reasons(reasons) => list(
            reasons
                .iter()
                .map(|(what, why)| {
                    format!("<dt class=\"alert\">{}</dt><dd>{}</dd>\n", escape(what), escape(why))
                })
                .collect(),
        ),
        Part::Words(words) => format!("<p>{words}</p>\n"),
        Part::Table(it) => table(title, it),
    }
}

fn fact(label: &str, what: &str) -> String {
    let what = if label == "Command" { format!("<code>{}</code>", escape(what)) } else { escape(what) };
    format!("<dt>{label}</dt><dd>{what}</dd>\n")
}

fn table(section: &str, table: &Table) -> String {
    let grid = Grid::new(table, true);
    let title = escape(if table.title.is_empty() { section } else { &table.title });
    let mut html = String::new();
    if !table.title.is_empty() {
        html += &format!("<h3>{title}</h3>\n");
    }
    if !table.method.is_empty() {
        html += &format!("<p class=\"faint\">{}</p>\n", escape(&table.method));
    }
    html += &format!("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table>\n");
    let heading = |it: &Heading| format!("<th scope=\"col\"{}>{}</th>", class(it, false), escape(&it.title));
    html += &format!(
        "<thead><tr>{}</tr></thead>\n<tbody>\n",
        grid.headings.iter().map(heading).collect::<String>()
    );
    let cell = |(cell, heading): (&GridCell, &Heading)| {
        let words = escape(&cell.text);
        let words = if heading.code { format!("<code>{words}</code>") } else { words };
        format!("<td{}>{words}</td>", class(heading, cell.missing))
    };
    for row in &grid.rows {
        html += &format!("<tr>{}</tr>\n", row.iter().zip(&grid.headings).map(cell).collect::<String>());
    }
    html += "</tbody>\n</table></div>\n";
    for (index, why) in grid.notes.iter().enumerate() {
        html += &format!("<p class=\"faint\">({}) {}</p>\n", index + 1, escape(why));
    }
    html
}

fn class(heading: &Heading, is_missing: bool) -> String {
    let all = [(heading.figures, "figure"), (heading.quoted, "quoted"), (is_missing, "missing")];
    let words: Vec<_> = all.iter().filter_map(|(is_it, word)| is_it.then_some(*word)).collect();
    if words.is_empty() { String::new() } else { format!(" class=\"{}\"", words.join(" ")) }
}
