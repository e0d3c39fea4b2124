//! The signed Poisson encoder (SPEC section 3).
