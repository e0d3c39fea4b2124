//! One spiking neuron as equations: firing rate, spectra, coherence and the simulation beside them.
#![forbid(unsafe_code)]
