"""LeakLab: train spiking neural networks with and without leak, and find out what leak does.

>>> import leaklab
>>> net = leaklab.Network("1x8x8-16C3-2P-10o", tau=30)
>>> data = leaklab.load_dataset("digits", test_limit=20)
>>> x = leaklab.encode(data.test_images, time_steps=30, seed=1, samples=data.test_samples)
>>> net.forward(x).prediction.shape
(20, 10)
"""

from . import theory
from ._leaklab import (
    Dataset,
    Forward,
    Gradients,
    Layer,
    LeakLabError,
    Network,
    __version__,
    analyse,
    encode,
    evaluate,
    load_dataset,
    resume,
    tables,
    train,
)

__all__ = [
    "Dataset",
    "Forward",
    "Gradients",
    "Layer",
    "LeakLabError",
    "Network",
    "__version__",
    "analyse",
    "encode",
    "evaluate",
    "load_dataset",
    "resume",
    "tables",
    "theory",
    "train",
]
