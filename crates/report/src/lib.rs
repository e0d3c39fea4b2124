//! From records to one self-contained HTML page.
//!
//! [`page`] is the page itself (sections, figures, theme, downloads), for any content; the study's page is
//! built from a folder of tables, read as typed rows. Nothing here judges: a verdict on the page stands in a
//! table.
#![forbid(unsafe_code)]

pub mod figure;
pub mod html;
pub mod page;
pub mod palette;
pub mod study;

pub use figure::{Figure, Panel, Series};
pub use html::Html;
pub use page::{Page, Section};
