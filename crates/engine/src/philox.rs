//! Philox4x32-10, the counter-based generator behind every random number.
