//! A directory as a page and as JSON, sent in parts, however many entries it has.

use crate::address::segment;
use crate::body::Pieces;
use crate::options::SiteOptions;
use bytes::Bytes;
use packfs::sink::{Row, time_text};
use packfs::{DirCursor, DirEntry, FileType, ImagePath, InodeId, Name, Opened, Result, escaped};
use packfs_page::{STYLE, escape};
use std::ops::ControlFlow;
use std::sync::Arc;

const ENTRIES_AT_ONCE: usize = 500;

/// Style of listings, beyond that of all pages.
const LISTING_STYLE: &str = "\
table { width: 100%; }
td { overflow-wrap: anywhere; }
td.figure { overflow-wrap: normal; }
nav { margin: .25rem 0 1rem; font-size: 1.1rem; overflow-wrap: anywhere; }
";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Html,
    Json,
}

impl Form {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Form::Html => "text/html; charset=utf-8",
            Form::Json => "application/json",
        }
    }
}

enum Stage {
    Begin,
    /// The flag is true before the first entry.
    Entries(DirCursor, bool),
    End,
}

pub(crate) struct Listing {
    image: Arc<Opened>,
    options: Arc<SiteOptions>,
    dir: InodeId,
    path: ImagePath,
    form: Form,
    stage: Stage,
}

impl Listing {
    /// `path` is that of the request.
    pub(crate) fn new(
        image: Arc<Opened>,
        options: Arc<SiteOptions>,
        dir: InodeId,
        path: ImagePath,
        form: Form,
    ) -> Self {
        Listing { image, options, dir, path, form, stage: Stage::Begin }
    }

    fn head(&self) -> String {
        if self.form == Form::Json {
            return "[".into();
        }
        let title = escape(&format!("/{}", self.path.names().map(shown).collect::<Vec<_>>().join("/")));
        let parent = if self.path.is_root() {
            ""
        } else {
            "<tr><td colspan=\"4\"><a href=\"../\">../</a></td></tr>\n"
        };
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}{LISTING_STYLE}</style>\n</head>\n<body>\n\
             <h1>{}</h1>\n<nav>{}</nav>\n<table>\n<tr><th>Name</th><th class=\"figure\">Size</th>\
             <th>Modified (UTC)</th><th>Mode</th></tr>\n{parent}",
            escape(&self.options.title),
            self.crumbs(),
        )
    }

    fn crumbs(&self) -> String {
        let depth = self.path.names().count();
        let mut crumbs = format!("<a href=\"{}\">/</a>", up(depth));
        for (index, name) in self.path.names().enumerate() {
            let href = up(depth - 1 - index);
            crumbs.push_str(&format!(" <a href=\"{href}\">{}</a> /", escape(&shown(name))));
        }
        crumbs
    }

    fn tail(&self) -> &'static str {
        match self.form {
            Form::Html => "</table>\n</body>\n</html>\n",
            Form::Json => "]\n",
        }
    }

    fn entries(&self, from: DirCursor) -> Result<(Vec<DirEntry>, DirCursor)> {
        let (mut entries, mut next) = (Vec::new(), from);
        self.image.volume().read_dir(self.dir, from, &mut |entry, cursor| {
            entries.push(entry);
            next = cursor;
            if entries.len() < ENTRIES_AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok((entries, next))
    }

    fn row(&self, entry: &DirEntry) -> Result<Row> {
        let volume = self.image.volume();
        let name = Name::new(&entry.name)
            .map_err(|fault| packfs::Error::corrupt(self.image.image().name(), fault))?;
        let mut path = self.path.clone();
        path.push(name);
        let inode = volume.inode(entry.id)?;
        let is_link = inode.kind.file_type() == FileType::Symlink;
        let target = if is_link { Some(volume.read_link(entry.id)?) } else { None };
        Ok(Row::new(path, entry.id, &inode, target))
    }

    fn html_row(row: &Row) -> String {
        let name = row.path.file_name().map(|name| name.as_bytes()).unwrap_or_default();
        let slash = if row.file_type == FileType::Directory { "/" } else { "" };
        let text = escape(&escaped(name).to_string());
        let target = row.target.as_ref().map(|target| {
            format!(" <span class=\"faint\">→ {}</span>", escape(&escaped(target).to_string()))
        });
        let size = if row.file_type == FileType::File { row.len.to_string() } else { String::new() };
        format!(
            "<tr><td><a href=\"./{}{slash}\">{text}{slash}</a>{}</td><td class=\"figure\">{size}</td>\
             <td>{}</td><td><code>{}</code></td></tr>\n",
            segment(name),
            target.unwrap_or_default(),
            time_text(row.meta.mtime, 0),
            row.mode_text(),
        )
    }
}

impl Pieces for Listing {
    fn next(&mut self) -> Result<Option<Bytes>> {
        let (from, is_first, mut text) = match self.stage {
            Stage::Begin => (DirCursor::default(), true, self.head()),
            Stage::Entries(from, is_first) => (from, is_first, String::new()),
            Stage::End => return Ok(None),
        };
        let (entries, next) = self.entries(from)?;
        let mut separator = if is_first { "\n" } else { ",\n" };
        for entry in &entries {
            // One damaged entry must not hide the others.
            let row = match self.row(entry) {
                Ok(row) => row,
                Err(error) => {
                    (self.options.on_fault)(&error);
                    continue;
                }
            };
            match self.form {
                Form::Html => text.push_str(&Self::html_row(&row)),
                Form::Json => {
                    text.push_str(separator);
                    text.push_str(&(self.options.json_of)(&row));
                    separator = ",\n";
                }
            }
        }
        self.stage = Stage::Entries(next, separator == "\n");
        if entries.len() < ENTRIES_AT_ONCE {
            text.push_str(self.tail());
            self.stage = Stage::End;
        }
        Ok(Some(text.into()))
    }
}

/// Relative address of the directory `levels` up.
fn up(levels: usize) -> String {
    if levels == 0 { "./".into() } else { "../".repeat(levels) }
}

fn shown(name: Name<'_>) -> String {
    escaped(name.as_bytes()).to_string()
}
