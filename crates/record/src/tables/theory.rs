//! Tables of the theory of one neuron.

crate::row! {
    /// One point of a coherence curve, from theory or simulation.
    pub struct CoherenceRow in "coherence" {
        /// Name of the neuron.
        curve: String [""],
        /// Frequency, in the unit of the table's axis (see its definition).
        frequency: f64 [""],
        /// Coherence between stimulus and spike train, 0 to 1.
        coherence: f64 [""],
        /// Lower end of the 95 % interval; empty for theory.
        low: Option<f64> [""],
        /// Upper end of the interval.
        high: Option<f64> [""],
    }
}
