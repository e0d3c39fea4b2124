from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Model", "coherence", "cross_spectrum", "log_rate", "power_spectrum", "rate"]

Model = Literal["lif", "if", "eif", "qif"]

@overload
def rate(mu: float, d: float, model: Model = "lif", *, tau_r: float = 0.0) -> float: ...
@overload
def rate(mu: ArrayLike, d: ArrayLike, model: Model = "lif", *, tau_r: float = 0.0) -> NDArray[np.float64]: ...
@overload
def log_rate(mu: float, d: float, model: Model = "lif", *, tau_r: float = 0.0) -> float: ...
@overload
def log_rate(
    mu: ArrayLike, d: ArrayLike, model: Model = "lif", *, tau_r: float = 0.0
) -> NDArray[np.float64]: ...
@overload
def coherence(
    mu: float, d: float, omega: float, model: Model = "lif", *, d_bg: float = 0.0, tau_r: float = 0.0
) -> float: ...
@overload
def coherence(
    mu: ArrayLike,
    d: ArrayLike,
    omega: ArrayLike,
    model: Model = "lif",
    *,
    d_bg: float = 0.0,
    tau_r: float = 0.0,
) -> NDArray[np.float64]: ...
@overload
def power_spectrum(
    mu: float, d: float, omega: float, model: Model = "lif", *, d_bg: float = 0.0, tau_r: float = 0.0
) -> float: ...
@overload
def power_spectrum(
    mu: ArrayLike,
    d: ArrayLike,
    omega: ArrayLike,
    model: Model = "lif",
    *,
    d_bg: float = 0.0,
    tau_r: float = 0.0,
) -> NDArray[np.float64]: ...
@overload
def cross_spectrum(
    mu: float, d: float, omega: float, model: Model = "lif", *, d_bg: float = 0.0, tau_r: float = 0.0
) -> complex: ...
@overload
def cross_spectrum(
    mu: ArrayLike,
    d: ArrayLike,
    omega: ArrayLike,
    model: Model = "lif",
    *,
    d_bg: float = 0.0,
    tau_r: float = 0.0,
) -> NDArray[np.complex128]: ...
