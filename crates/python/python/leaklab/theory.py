"""Theory of one spiking neuron: rate, spectra and coherence, exact and vectorised over arrays.

The neuron is ``dv/dt = f(v) + mu + sqrt(2 d) xi`` with threshold 1 and reset 0. Time is in membrane time
constants, and ``omega`` is an angular frequency. Models are "lif" (f = -v), "if" (f = 0), "eif" and "qif".
"""

from typing import Literal

from ._leaklab import coherence, cross_spectrum, log_rate, power_spectrum, rate

Model = Literal["lif", "if", "eif", "qif"]
"""Names of the neuron models."""

del Literal

__all__ = ["Model", "coherence", "cross_spectrum", "log_rate", "power_spectrum", "rate"]
