//! One page that needs no network: plots, a table of all measurements that can be filtered and
//! sorted, the tables of the session, what is missing, machine and method. What is chosen on it
//! stands in its address behind `#`: `report.html#filter=erofs`. What can be said without a script
//! is said without one, by `html/report.html`.

mod rows;

use packfs::Result;
use packfs_page::{Page, data, escape};

use crate::report::shown;
use crate::results::Results;

/// The whole file.
///
/// Errors: none that results can cause; figures that are no numbers are `null` to the script.
pub fn html(results: &Results) -> Result<String> {
    let mut markup = shown::environment();
    markup.add_filter("e", |words: &str| escape(words));
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
        body: shown::render(&markup, include_str!("html/report.html"), results)?,
    };
    Ok(page.html())
}
