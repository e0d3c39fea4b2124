//! A figure: one table, drawn in one or several panels, with its series as buttons above it.
//!
//! A panel's specification is Vega-Lite without `data`, `width`, `height` and `config`: the page's script adds the
//! table's rows, fits the width to the screen, puts in the theme's colours (see [`crate::palette`]), hides the series
//! that are switched off and, on demand, makes the scales zoom. So a specification says what is drawn and nothing else.

use crate::html::Html;
use leaklab_record::Table;
use serde_json::Value;

/// A figure of a page.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Anchor and file name of downloads; letters, digits and hyphens.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What is seen and how to read it.
    pub caption: Html,
    /// The numbers: drawn, and given as CSV.
    pub data: Table,
    /// The series that can be switched on and off.
    pub series: Option<Series>,
    /// The pictures.
    pub panels: Vec<Panel>,
}

impl Figure {
    /// A figure with a single panel.
    pub fn new(id: &str, title: &str, caption: Html, data: Table, spec: Value) -> Self {
        let panels = vec![Panel::new("", spec)];
        Figure { id: id.to_owned(), title: title.to_owned(), caption, data, series: None, panels }
    }

    /// With the series named by a column as buttons.
    pub fn with_series(mut self, series: Series) -> Self {
        self.series = Some(series);
        self
    }
}

/// One picture of a figure.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Heading above the picture; empty if the figure's says it all.
    pub title: String,
    /// Vega-Lite, see the module's text.
    pub spec: Value,
    /// Height of the plotting area in pixels.
    pub height: u32,
}

impl Panel {
    /// A panel of the usual height.
    pub fn new(title: &str, spec: Value) -> Self {
        Panel { title: title.to_owned(), spec, height: 280 }
    }

    /// With another height.
    pub fn with_height(mut self, height: u32) -> Self {
        self.height = height;
        self
    }
}

/// Series of a figure: the values of one column of its table.
#[derive(Debug, Clone)]
pub struct Series {
    /// The column.
    pub column: String,
    /// Its values, in the order of the buttons.
    pub items: Vec<Item>,
}

/// One series.
#[derive(Debug, Clone)]
pub struct Item {
    /// Value in the column.
    pub value: String,
    /// Words on the button.
    pub label: String,
    /// Colour token, see [`crate::palette::COLOURS`].
    pub colour: String,
    /// Whether it is switched on when the page opens.
    pub shown: bool,
}

impl Series {
    /// Series with given values, labels and colour tokens.
    pub fn new<'a>(column: &str, items: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Self {
        let items = items.into_iter().map(|(value, label, colour)| Item {
            value: value.to_owned(),
            label: label.to_owned(),
            colour: colour.to_owned(),
            shown: true,
        });
        Series { column: column.to_owned(), items: items.collect() }
    }

    /// With only those series switched on at first.
    pub fn showing(mut self, shown: impl Fn(&str) -> bool) -> Self {
        self.items.iter_mut().for_each(|item| item.shown = shown(&item.value));
        self
    }

    /// The Vega-Lite colour channel that draws these series; the buttons are its legend.
    pub fn colour(&self) -> Value {
        let domain: Vec<&str> = self.items.iter().map(|item| item.value.as_str()).collect();
        let range: Vec<&str> = self.items.iter().map(|item| item.colour.as_str()).collect();
        serde_json::json!({
            "field": self.column, "type": "nominal", "legend": null,
            "scale": { "domain": domain, "range": range }
        })
    }
}
