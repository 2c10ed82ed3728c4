//! Pages that stand alone: one HTML file each with its style, its script and its data, which asks
//! no network for anything.
//!
//! Scripts and styles are files of their own beside the code that uses them. Data goes in as JSON
//! that no string in it can end ([`Page::data`]), and a script makes elements of it, never markup;
//! what Rust writes as markup goes through [`escape`].

use std::fmt::Write as _;

use packfs::{Error, Result, acts_on_terminals, printable};
use serde::Serialize;

/// Style of all pages: colors of both schemes and of series, legends, tables, controls.
pub const STYLE: &str = include_str!("base.css");

/// Script of all pages: creates elements, spells figures, keeps the selection in the address.
const SCRIPT: &str = include_str!("base.js");

/// Nothing from anywhere else, whatever a name in the data says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// One page.
pub struct Page {
    /// Words for the tab.
    pub title: String,
    /// Styles beyond those that all pages share.
    pub style: &'static str,
    /// Scripts beyond the one that all pages share, in this order.
    pub scripts: &'static [&'static str],
    /// JSON for the script, as [`data`] makes it.
    pub data: String,
    /// Markup.
    pub body: String,
}

impl Page {
    /// The whole file.
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

/// Something as JSON that may stand in a script element: `<`, `>` and `&` occur in strings alone,
/// and are spelled as JSON's escapes there; so are the two line separators that older scripts
/// stumble over.
///
/// Figures that are no numbers, or infinite, become `null`.
///
/// Errors: keys of maps that are no strings.
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

/// Words as HTML, between tags and within the quotes of attributes. What could make one text look
/// like another is written as on a terminal.
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
