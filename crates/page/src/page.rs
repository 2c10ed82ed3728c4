//! Self-contained pages: one HTML file each with its style, script and data, without network
//! access.
//!
//! Scripts and styles are files beside the code that uses them. Data is embedded as JSON that no
//! string in it can end ([`data`]), and a script creates elements of it, never markup; markup
//! written by Rust goes through [`escape`].

use std::fmt::Write as _;

use packfs::{Error, Result, acts_on_terminals, printable};
use serde::Serialize;

/// Style of all pages: colors of both schemes and of series, legends, tables, controls.
pub const STYLE: &str = include_str!("base.css");

/// Script of all pages: creates elements, formats numbers, keeps the selection in the address.
const SCRIPT: &str = include_str!("base.js");

/// Refuses all other sources, whatever a name in the data contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// One page.
pub struct Page {
    /// Title of the tab.
    pub title: String,
    /// Additional styles.
    pub style: &'static str,
    /// Additional scripts, in this order.
    pub scripts: &'static [&'static str],
    /// JSON for the script, from [`data`].
    pub data: String,
    /// Markup of the body.
    pub body: String,
}

impl Page {
    /// Returns the whole file.
    pub fn html(&self) -> String {
        let mut html = String::with_capacity(self.data.len() + self.body.len() + (64 << 10));
        let title = escape(&self.title);
        // Writing to a string cannot fail.
        let _ = write!(
            html,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n{}\n\
             <script type=\"application/json\" id=\"data\">{}</script>\n<script>\n(() => {{\n{SCRIPT}",
            self.style, self.body, self.data
        );
        for script in self.scripts {
            html.push_str(script);
        }
        html.push_str("})();\n</script>\n</body>\n</html>\n");
        html
    }
}

/// Returns a value as JSON for a script element: `<`, `>` and `&` occur only in strings, and are
/// escaped there; so are the two line separators that older scripts reject.
///
/// NaN and infinite numbers become `null`.
///
/// Errors: keys of maps that are not strings.
pub fn data(value: &impl Serialize) -> Result<String> {
    let json = serde_json::to_string(value)
        .map_err(|error| Error::failed(format!("the data of a page cannot be written as JSON: {error}")))?;
    let mut embedded = String::with_capacity(json.len() + json.len() / 64);
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string cannot fail.
                let _ = write!(embedded, "\\u{:04x}", u32::from(c));
            }
            c => embedded.push(c),
        }
    }
    Ok(embedded)
}

/// Escapes text for HTML, between tags and within quoted attributes. Characters that could disguise
/// a text are escaped as on a terminal.
pub fn escape(words: &str) -> String {
    let mut escaped = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c != '\n' && acts_on_terminals(c) => escaped.push_str(&printable(&c.to_string())),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters that end a script element, an attribute or a line unexpectedly.
    const ODD: &str = "</script><b>&\"'<!--\u{2028}\\";

    #[test]
    fn no_string_ends_the_element_that_the_data_is_in() {
        let embedded = data(&[ODD]).unwrap();
        assert!(!embedded.contains(['<', '>', '&', '\u{2028}']), "{embedded}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&embedded).unwrap(), [ODD]);
    }

    #[test]
    fn markup_of_names_is_words() {
        assert_eq!(escape("</b>&\"'"), "&lt;/b&gt;&amp;&quot;&#39;");
        assert_eq!(escape("a\x1b[m\u{202e}\n"), "a\\x1b[m\\xe2\\x80\\xae\n");
    }

    #[test]
    fn a_page_has_no_external_resources() {
        let page = Page {
            title: ODD.into(),
            style: "",
            scripts: &[],
            data: data(&ODD).unwrap(),
            body: format!("<p>{}</p>", escape(ODD)),
        };
        let html = page.html();
        assert_eq!(html.matches("</script>").count(), 2);
        // The namespace of SVG is an address that is never fetched.
        let addresses = html.replace("http://www.w3.org/2000/svg", "");
        assert!(
            !addresses.contains("http://")
                && !addresses.contains("https://")
                && !addresses.contains("@import")
        );
        assert!(!addresses.contains("<link rel=\"stylesheet\"") && !addresses.contains("<script src"));
    }
}
