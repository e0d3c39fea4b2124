//! From records to one self-contained HTML page.
#![forbid(unsafe_code)]
