//! A figure: one table, drawn in one or several panels, with its series as buttons above it.
//!
//! A panel's specification is Vega-Lite without `data`, `width`, `height` and `config`. The page's script
//! adds the table's rows, fits the width to the screen, inserts the theme's colours (see [`crate::palette`]),
//! hides the series that are switched off and, on demand, makes the scales zoom. So a specification states
//! only what is drawn.

use crate::html::Html;
use leaklab_record::{Row, Rows, Table};
use serde_json::{Value, json};

/// A field that the page's script adds to every row of a figure with series: the label of the row's series.
pub const LABEL: &str = "series_label";

/// A figure of a page.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Anchor and file name of downloads; letters, digits and hyphens.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What the figure shows and how to read it.
    pub caption: Html,
    /// The numbers that are drawn and offered as CSV.
    pub data: Table,
    /// The series that can be switched on and off.
    pub series: Option<Series>,
    /// The pictures.
    pub panels: Vec<Panel>,
    /// Number of panels side by side, if the screen is wide enough.
    pub columns: usize,
}

impl Figure {
    /// A figure of some rows.
    pub fn new<R: Row>(id: &str, title: &str, caption: Html, data: &Rows<R>, panels: Vec<Panel>) -> Self {
        let count = panels.len();
        let columns = if count > 0 && count.is_multiple_of(3) { 3 } else { count.min(2) };
        let (id, title) = (id.to_owned(), title.to_owned());
        Figure { id, title, caption, data: data.table(), series: None, panels, columns }
    }

    /// Adds the series, which are shown as buttons.
    pub fn with_series(mut self, series: Series) -> Self {
        self.series = Some(series);
        self
    }

    /// Sets the number of panels side by side.
    pub fn with_columns(mut self, columns: usize) -> Self {
        self.columns = columns;
        self
    }
}

/// One picture of a figure.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Heading above the picture; empty if the figure's heading is enough.
    pub title: String,
    /// Vega-Lite specification, see the documentation of this module.
    pub spec: Value,
    /// Height of the plotting area in pixels.
    pub height: u32,
}

impl Panel {
    /// A panel of the default height.
    pub fn new(title: &str, spec: Value) -> Self {
        Panel { title: title.to_owned(), spec, height: 280 }
    }

    /// Whether an axis is quantitative, so that it can be zoomed.
    pub fn zooms(&self) -> bool {
        fn numeric(spec: &Value) -> bool {
            let axis = |name: &str| spec["encoding"][name]["type"] == "quantitative";
            let mut layers = spec["layer"].as_array().into_iter().flatten();
            axis("x") || axis("y") || layers.any(numeric)
        }
        numeric(&self.spec)
    }

    /// Sets the height.
    pub fn with_height(mut self, height: u32) -> Self {
        self.height = height;
        self
    }
}

/// Series of a figure: the values of one column of its table.
#[derive(Debug, Clone)]
pub struct Series {
    /// The column.
    pub column: &'static str,
    /// Its values, in the order of the buttons.
    pub items: Vec<Item>,
}

/// One series.
#[derive(Debug, Clone)]
pub struct Item {
    /// Value in the column.
    pub value: String,
    /// Text on the button.
    pub label: String,
    /// Colour token, see [`crate::palette::COLOURS`].
    pub colour: &'static str,
    /// Whether it is switched on when the page opens.
    pub shown: bool,
}

impl Series {
    /// The Vega-Lite colour channel that draws these series; the buttons are its legend.
    pub fn colour(&self) -> Value {
        let range: Vec<&str> = self.items.iter().map(|item| item.colour).collect();
        json!({
            "field": self.column, "type": "nominal", "legend": null,
            "scale": { "domain": self.values(), "range": range }
        })
    }

    /// The values, in the order of the buttons.
    pub fn values(&self) -> Vec<&str> {
        self.items.iter().map(|item| item.value.as_str()).collect()
    }
}
