//! Noise in the input layer.
