//! From records to one self-contained HTML page.
//!
//! [`page`] is the page itself (sections, figures, theme, downloads), for any content. The page of a study is
//! built from a folder of tables, read as typed rows. This crate makes no verdicts: every verdict on the page
//! comes from a table.
#![forbid(unsafe_code)]

pub mod figure;
pub mod html;
pub mod page;
pub mod palette;
pub mod study;

pub use figure::{Figure, Panel, Series};
pub use html::Html;
pub use page::{Page, Section};
