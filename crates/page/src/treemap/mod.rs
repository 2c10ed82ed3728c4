//! Map of the space in an image, as a page: files and folders by their size in the image, and other
//! owners of bytes by name.
//!
//! Every byte is counted once. Bytes that files refer to belong to them (`claims.rs`); a shared
//! block is divided among its files by their share of it; all other bytes belong to the owners that
//! the image reports ([`packfs::volume::Space`]). So the figures add up to the image's length. The
//! format makes no difference.

mod accounts;
mod claims;
mod outline;

use packfs::{Opened, Result};
use serde::Serialize;

use crate::{Page, escape};
use accounts::Accounts;
use outline::{MAX_NAMES_LEN, MAX_NODES, Outline};

#[derive(Serialize)]
struct Data<'a> {
    length: u64,
    codecs: Vec<&'static str>,
    nodes: &'a [outline::Node],
}

/// Returns the page, of at most 6 MiB or so for any image: it names the 20,000 largest files and
/// folders, and sums up smaller ones in each folder. `title` and `facts` describe the image.
///
/// Errors: as reading the image's structures: `Corrupt`, `Io`.
pub fn html(opened: &Opened, title: &str, facts: &[(String, String)]) -> Result<String> {
    let accounts = Accounts::of(opened)?;
    let outline = Outline::of(&accounts, MAX_NODES, MAX_NAMES_LEN);
    let data = Data { length: accounts.len(), codecs: accounts.codec_names(), nodes: &outline.nodes };
    let facts: String = facts
        .iter()
        .map(|(label, words)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(label), escape(words)))
        .collect();
    let heading = escape(title);
    let body = format!(
        "<header>\n<h1>{heading}</h1>\n<p id=\"summary\"></p>\n</header>\n<main>\n\
         <noscript><p class=\"alert\">The map is drawn by a script; <code>packfs info --space</code> prints who owns the \
         bytes.</p></noscript>\n\
         <nav id=\"crumbs\" aria-label=\"Folder\"></nav>\n<div id=\"map\" role=\"group\" aria-label=\"Map of stored bytes\"></div>\n\
         <p id=\"details\" aria-live=\"polite\" class=\"faint\"></p>\n<ul class=\"legend\" id=\"legend\"></ul>\n\
         <p class=\"faint screen\">Choose a folder to look into it; arrow keys go from tile to tile, Enter opens, Backspace or \
         Escape goes back.</p>\n\
         <h2 id=\"list-title\">As a table</h2>\n<div id=\"list\"></div>\n\
         <h2>How it is counted</h2>\n\
         <p>Stored is what a file takes of the image: its blocks as they are stored, compressed or not. A block that several \
         files share is divided among them by what each takes of it; where blocks overlap, the one that begins first counts. A \
         file of several names counts at the first. What is in no file belongs to the structure that is named: file data there is that of other \
         copies and subvolumes, and the rest of blocks that files fill in part. Each \
         byte is counted once, so everything adds up to the length of the image. {} files and folders at most stand here by \
         name, the largest; smaller ones are one for each folder.</p>\n\
         <h2>The image</h2>\n<dl>\n{facts}</dl>\n</main>\n",
        format_args!("{},{:03}", MAX_NODES / 1000, MAX_NODES % 1000)
    );
    let page = Page {
        title: format!("{title} - where its bytes go"),
        style: include_str!("treemap.css"),
        scripts: &[include_str!("squarify.js"), include_str!("treemap.js")],
        data: crate::data(&data)?,
        body,
    };
    Ok(page.html())
}
