//! The page: headings, prose and figures in one HTML file that works offline.
//!
//! Styles, script, Vega-Lite and all numbers are inside the file. A content security policy forbids every
//! request, and every script except for the page's own, which it identifies by their SHA-256. Even if text
//! were not escaped correctly, it could not run as a script.

use crate::figure::{Figure, Panel, Series};
use crate::html::{Html, script_json};
use crate::palette::COLOURS;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use leaklab_record::Table;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");
const VEGA: [&str; 3] = [
    include_str!("../assets/vendor/vega.min.js"),
    include_str!("../assets/vendor/vega-lite.min.js"),
    include_str!("../assets/vendor/vega-embed.min.js"),
];
const LICENCES: &str = include_str!("../assets/vendor/LICENCES.txt");
const MARK: &str = "<svg viewBox=\"0 0 32 32\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2.4\" \
    stroke-linecap=\"round\" stroke-linejoin=\"round\" aria-hidden=\"true\"><path d=\"M2 26c4 0 6-2 8-9 1 5 \
    3 7 6 8 3-2 4-8 5-20v21c2-6 3-6 4-6 1 4 2 6 5 6\"/></svg>";

/// A whole page.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Heading and window title.
    pub title: String,
    /// One line above the heading.
    pub eyebrow: String,
    /// What a reader should know who reads nothing else.
    pub lead: Html,
    /// The sections, in order.
    pub sections: Vec<Section>,
    /// Text at the end of the page.
    pub footer: Html,
    /// Seconds after which the page reloads itself; only while a study runs.
    pub refresh: Option<u32>,
}

/// A part of a page with its own heading.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// Anchor; letters, digits and hyphens.
    pub id: String,
    /// Short name in the table of contents.
    pub name: String,
    /// Heading; none if it is empty.
    pub heading: String,
    /// Prose before the figures.
    pub text: Html,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Tables and notes after the figures.
    pub after: Html,
}

impl Section {
    /// A section without figures yet.
    pub fn new(id: &str, name: &str, heading: &str, text: Html) -> Self {
        let (id, name, heading) = (id.to_owned(), name.to_owned(), heading.to_owned());
        Section { id, name, heading, text, ..Section::default() }
    }
}

/// The page as one HTML file. Equal pages give equal bytes.
pub fn render(page: &Page) -> String {
    let scripts: Vec<String> = VEGA.iter().map(|text| without_source_map(text)).collect();
    let hashes: Vec<String> = scripts
        .iter()
        .map(String::as_str)
        .chain([SCRIPT])
        .map(|text| format!("'sha256-{}'", hash(text)))
        .collect();
    let policy = format!(
        "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; \
         form-action 'none'",
        hashes.join(" ")
    );
    let refresh = page.refresh.map(|s| format!(" data-refresh=\"{s}\"")).unwrap_or_default();
    let contents =
        Html::join(page.sections.iter().map(|s| Html::fill("<a href=\"#{}\">{}</a>", &[&s.id, &s.name])));
    let body = Html::join(page.sections.iter().map(section));
    let title = Html::text(&page.title);
    let eyebrow = Html::text(&page.eyebrow);
    let palette: Value = COLOURS
        .iter()
        .map(|&(token, light, dark)| (token.to_owned(), json!({ "light": light, "dark": dark })))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let palette = script_json(&palette);
    let (lead, footer) = (&page.lead, &page.footer);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"{refresh}>\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"LeakLab {}\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<div class=\"layout\">\n\
         <div class=\"rail\">\n<div class=\"brand\">{MARK}<span>LeakLab</span></div>\n\
         <nav class=\"contents\" aria-label=\"Contents\">{contents}</nav>\n\
         <div class=\"theme\"><button type=\"button\">Dark theme</button></div>\n</div>\n<main>\n\
         <header>\n<p class=\"eyebrow\">{eyebrow}</p>\n<h1>{title}</h1>\n\
         <div class=\"lead\">{lead}</div>\n</header>\n\
         <noscript><p class=\"notice\">The figures are drawn by a script in this file, but scripts are \
         disabled. The text and the tables are complete without it.</p></noscript>\n{body}\n<footer>{footer}\
         <p>Figures are drawn by Vega-Lite, which this file contains with its \
         <a href=\"#licences\">licences</a>; nothing is loaded from elsewhere.</p>\n<details id=\"licences\">\
         <summary>Licences</summary><pre>{}</pre></details></footer>\n</main>\n</div>\n\
         <script type=\"application/json\" id=\"palette\">{palette}</script>\n",
        env!("CARGO_PKG_VERSION"),
        Html::text(LICENCES)
    );
    for script in scripts.iter().map(String::as_str).chain([SCRIPT]) {
        out.push_str("<script>");
        out.push_str(script);
        out.push_str("</script>\n");
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn section(section: &Section) -> Html {
    let text = if section.text.is_empty() {
        Html::new()
    } else {
        Html::fill("<div class=\"prose\">{}</div>\n", &[&section.text])
    };
    let heading = if section.heading.is_empty() {
        Html::new()
    } else {
        Html::fill("<h2>{}</h2>\n", &[&section.heading])
    };
    let figures = Html::join(section.figures.iter().map(figure));
    Html::fill(
        "<section id=\"{}\">\n{}{}{}{}</section>\n",
        &[&section.id, &heading, &text, &figures, &section.after],
    )
}

fn figure(figure: &Figure) -> Html {
    let panels = Html::join(figure.panels.iter().map(|panel| {
        let title =
            if panel.title.is_empty() { Html::new() } else { Html::fill("<h4>{}</h4>", &[&panel.title]) };
        let label = if panel.title.is_empty() { &figure.title } else { &panel.title };
        // Space is reserved before the picture is drawn, so that the page does not jump.
        let room = (panel.height + 52) as usize;
        Html::fill(
            "<div class=\"panel\">{}<div class=\"view\" role=\"group\" aria-label=\"{}\" \
             style=\"min-height:{}px\"></div></div>\n",
            &[&title, label, &room],
        )
    }));
    let data = json!({
        "table": table(&figure.data),
        "series": figure.series.as_ref().map(|series| json!({
            "column": series.column,
            "items": series.items.iter().map(|item| json!({
                "value": item.value, "label": item.label, "colour": item.colour, "shown": item.shown
            })).collect::<Vec<_>>(),
        })),
        "panels": figure.panels.iter().map(|panel| json!({
            "title": panel.title, "spec": panel.spec, "height": panel.height
        })).collect::<Vec<_>>(),
    });
    let zoom = if figure.panels.iter().any(Panel::zooms) {
        Html::markup(
            "<button type=\"button\" data-action=\"zoom\" aria-pressed=\"false\" title=\"Scroll or pinch to \
             zoom, drag to move; press again to reset\">Zoom</button>",
        )
    } else {
        Html::new()
    };
    // `script_json` leaves no character that HTML could misinterpret.
    let data = Html::fill("{}", &[&RawJson(script_json(&data))]);
    Html::fill(
        "<figure class=\"figure\" id=\"{}\">\n<div class=\"figure-head\"><h3>{}</h3>\n<div class=\"tools\">\
         {}<button type=\"button\" data-action=\"numbers\" aria-pressed=\"false\">Numbers</button>\
         <button type=\"button\" data-action=\"csv\">CSV</button>\
         <button type=\"button\" data-action=\"svg\">SVG</button>\
         <button type=\"button\" data-action=\"png\">PNG</button></div></div>\n\
         {}<div class=\"panels\" data-columns=\"{}\">\n{}</div>\n<figcaption>{}</figcaption>\n\
         <script type=\"application/json\">{}</script>\n</figure>\n",
        &[
            &figure.id,
            &figure.title,
            &zoom,
            &figure.series.as_ref().map(buttons).unwrap_or_default(),
            &figure.columns,
            &panels,
            &figure.caption,
            &data,
        ],
    )
}

fn buttons(series: &Series) -> Html {
    let items = Html::join(series.items.iter().enumerate().map(|(i, item)| {
        Html::fill(
            "<button type=\"button\" data-series=\"{}\" data-colour=\"{}\" aria-pressed=\"{}\" \
             title=\"Show or hide\">{}</button>",
            &[&i, &item.colour, &(if item.shown { "true" } else { "false" }), &item.label],
        )
    }));
    Html::fill("<div class=\"series\" role=\"group\" aria-label=\"Series\">{}</div>\n", &[&items])
}

fn table(table: &Table) -> Value {
    let columns: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    json!({ "name": table.name, "columns": columns, "rows": table.rows })
}

/// JSON made safe by [`script_json`], which is inserted into a template unescaped.
struct RawJson(String);

impl crate::html::Piece for RawJson {
    fn write(&self, out: &mut String) {
        out.push_str(&self.0);
    }
}

/// Removes the address of the source map, which a browser's developer tools would request.
fn without_source_map(script: &str) -> String {
    script.lines().filter(|line| !line.starts_with("//# sourceMappingURL")).collect::<Vec<_>>().join("\n")
}

/// SHA-256 in base64, as in a content security policy.
fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Item, Panel};
    use leaklab_record::Rows;

    leaklab_record::row! {
        /// A row for the test.
        pub struct Named in "named" {
            /// A name.
            name: String [""],
        }
    }

    #[test]
    fn hash_is_base64_of_sha256() {
        // The known answer for the empty text.
        assert_eq!(hash(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    #[test]
    fn vendored_files_are_those_of_the_table() {
        let readme = include_str!("../assets/vendor/README.md");
        for text in VEGA {
            let digest: String = leaklab_record::hexadecimal(Sha256::new_with_prefix(text));
            assert!(readme.contains(&digest), "a vendored file is not the one named in its README: {digest}");
        }
    }

    #[test]
    fn scripts_cannot_end_early() {
        for text in VEGA.into_iter().chain([SCRIPT]) {
            assert!(!text.contains("</script") && !text.contains("<!--"));
        }
        assert!(!STYLE.contains("</style"));
    }

    #[test]
    fn hostile_names_stay_text() {
        let name = "\"><script>alert(1)</script><!-- '&\u{202e}漢";
        let mut data = Rows::new(name, "");
        data.rows.push(Named { name: name.to_owned() });
        let item = Item { value: name.into(), label: name.into(), colour: "@blue", shown: true };
        let series = Series { column: Named::name, items: vec![item] };
        let panels = vec![Panel::new(name, json!({ "mark": name }))];
        let figure = Figure::new("f", name, Html::text(name), &data, panels).with_series(series);
        let mut part = Section::new("s", name, name, Html::text(name));
        part.figures.push(figure);
        let page = Page {
            title: name.into(),
            eyebrow: name.into(),
            lead: Html::text(name),
            sections: vec![part],
            ..Page::default()
        };
        let text = render(&page);
        assert!(!text.contains("<script>alert") && !text.contains("<!-- "));
        assert_eq!(text.matches("<script").count(), text.matches("</script>").count());
        // The four scripts, the palette and the figure's data.
        assert_eq!(text.matches("</script>").count(), 6);
    }
}
