"""LeakLab: train spiking neural networks with and without leak, and measure what leak does.

>>> import leaklab
>>> net = leaklab.Network("1x8x8-16C3-2P-10o", tau=30)
>>> data = leaklab.load_dataset("digits", test_limit=20)
>>> x = leaklab.encode(data.test_images, time_steps=30, seed=1, samples=data.test_samples)
>>> net.forward(x).prediction.shape
(20, 10)
"""

from os import PathLike
from typing import Any, Literal

from numpy.typing import NDArray

from . import theory
from ._leaklab import (
    Dataset,
    Forward,
    Gradients,
    Layer,
    LeakLabError,
    NOISES,
    Network,
    __version__,
    advise,
    analyse,
    compare,
    encode,
    evaluate,
    load_dataset,
    report,
    resume,
    study,
    tables,
    train,
)

Path = str | PathLike[str]
"""Path of a file or folder."""
Noise = Literal[NOISES]
"""Names of the noises."""
Scenario = Literal["pixel", "channel"]
"""Where noise acts: on pixels before they are encoded, or on spikes."""
Columns = dict[str, NDArray[Any]]
"""A table: an array for each column."""

del NOISES, PathLike, Any, Literal, NDArray

__all__ = [
    "Columns",
    "Dataset",
    "Forward",
    "Gradients",
    "Layer",
    "LeakLabError",
    "Network",
    "Noise",
    "Path",
    "Scenario",
    "__version__",
    "advise",
    "analyse",
    "compare",
    "encode",
    "evaluate",
    "load_dataset",
    "report",
    "resume",
    "study",
    "tables",
    "theory",
    "train",
]
