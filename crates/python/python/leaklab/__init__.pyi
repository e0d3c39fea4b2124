import pathlib
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import theory as theory

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

__version__: str

Path = str | PathLike[str]
Noise = Literal[
    "gaussian",
    "impulse",
    "deletion",
    "jitter",
    "stuck-pixel",
    "salt-and-pepper",
    "background",
    "hot-pixel",
    "polarity-flip",
]
Scenario = Literal["pixel", "channel"]
Columns = dict[str, NDArray[Any]]

class LeakLabError(ValueError):
    """The request cannot be met; the message states what is wrong, where, and what is expected."""

@final
class Layer:
    """One layer of a network."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Literal["conv", "pool", "full", "output"]: ...
    @property
    def input(self) -> list[int]: ...
    @property
    def output(self) -> list[int]: ...

@final
class Forward:
    """The results of a forward pass."""

    @property
    def prediction(self) -> NDArray[np.float32]:
        """Output potential after the last step divided by T, [N, classes]."""
    @property
    def signal(self) -> NDArray[np.float32]:
        """Weighted input of the output layer, [T, N, classes]."""
    @property
    def membranes(self) -> dict[str, NDArray[np.float32]]:
        """Potentials of the layers that `forward(membranes=...)` named, [T, N, ...]."""
    @property
    def spike_counts(self) -> list[NDArray[np.uint32]]:
        """Number of spikes of each neuron, one array [N, ...] per hidden layer, including pools."""
    @property
    def synops(self) -> NDArray[np.uint64]:
        """Synaptic operations, [N, conv, fully connected and output layers]."""
    @property
    def weighted_input_norm(self) -> NDArray[np.float64]:
        """Time mean of the norm of the weighted input, [N, hidden layers including pools]."""
    def spikes(self, layer: int | str) -> NDArray[np.uint8]:
        """Spikes of a hidden layer, [T, N, ...]."""

@final
class Gradients:
    """Loss and gradients of a batch."""

    @property
    def loss(self) -> float: ...
    @property
    def prediction(self) -> NDArray[np.float32]: ...
    @property
    def weights(self) -> dict[str, NDArray[np.float32]]: ...

@final
class Network:
    """A spiking network in the paper's notation, such as "1x8x8-16C3-2P-64FC-10o"."""

    def __new__(
        cls,
        notation: str,
        tau: float = 100.0,
        v_th: float = 1.0,
        seed: int = 0,
        layer_tau: Mapping[str, float] | None = None,
        readout_tau: float | None = None,
        readout_divisor: str = "steps",
    ) -> Network: ...
    def with_leak(
        self,
        tau: float | None = None,
        *,
        layer_tau: Mapping[str, float] | None = None,
        readout_tau: float | None = None,
    ) -> Network:
        """The same weights with another leak; time constants that are not given do not change."""
    @property
    def notation(self) -> str: ...
    @property
    def tau(self) -> float: ...
    @property
    def layer_tau(self) -> dict[str, float]:
        """Time constants of the hidden layers that have their own."""
    @property
    def readout_tau(self) -> float: ...
    @property
    def readout_divisor(self) -> str:
        """What the output after the last step is divided by: "steps", or "memory" for the sum of the weights
        that leak gives to the steps."""
    @property
    def v_th(self) -> float: ...
    @property
    def layers(self) -> list[Layer]: ...
    @property
    def weights(self) -> dict[str, NDArray[np.float32]]:
        """A copy of the weights, [out, in, 3, 3] or [out, in], by layer name."""
    def set_weights(self, weights: Mapping[str, ArrayLike]) -> None:
        """Replaces the weights of the named layers."""
    def forward(
        self, x: ArrayLike, *, membranes: str | Sequence[str] = (), threads: int | None = None
    ) -> Forward:
        """Runs the network on input spikes, float32 [T, N, C, H, W]; membranes names layers to record."""
    def calibrate(self, x: ArrayLike, spike_rate: float, *, threads: int | None = None) -> None:
        """Scales the weights until every hidden conv and fully connected layer fires at spike_rate on x."""
    def gradients(
        self,
        x: ArrayLike,
        labels: ArrayLike,
        gradient: Literal["straight-through", "exact"] = "straight-through",
        masks: Sequence[ArrayLike] | None = None,
        *,
        threads: int | None = None,
    ) -> Gradients:
        """The loss and its gradient with respect to every weight, averaged over the samples."""
    @staticmethod
    def load(path: Path, *, best: bool = False) -> Network:
        """The network of a run folder, or of a folder written by `save`."""
    def save(self, folder: Path) -> None:
        """Writes model.safetensors, config.json and a model card."""
    def to_nir(
        self,
        path: Path,
        *,
        target: Literal["generic", "norse", "snntorch", "spikingjelly"] = "generic",
        dt: float | None = None,
        if_r: float | None = None,
        if_as_lif: bool = False,
    ) -> None:
        """Writes a NIR graph, in the layout of Python's nir."""
    @staticmethod
    def from_nir(
        path: Path, *, dt: float | None = None, if_r: float = 1.0, integrate_output: bool = False
    ) -> Network:
        """The network of a NIR graph of any tool; the error names a node without counterpart."""

@final
class Dataset:
    """Images or recordings of events, and labels."""

    @staticmethod
    def from_arrays(
        train_images: ArrayLike,
        train_labels: ArrayLike,
        test_images: ArrayLike | None = None,
        test_labels: ArrayLike | None = None,
        *,
        class_names: Sequence[str] | None = None,
        name: str = "data",
    ) -> Dataset:
        """A data set of images [N, C, H, W] or [N, H, W], or of features [N, F]."""
    def save(self, path: Path) -> None:
        """Writes an .npz file, which the program reads as the data set npz."""
    def recordings(self, indices: ArrayLike | None = None, *, train: bool = False) -> NDArray[np.uint8]:
        """Spikes of recordings, [T, N, C, H, W]."""
    @property
    def shape(self) -> list[int]: ...
    @property
    def digest(self) -> str: ...

    @property
    def name(self) -> str: ...
    @property
    def class_names(self) -> list[str]: ...
    @property
    def train_images(self) -> NDArray[np.uint8]: ...
    @property
    def train_labels(self) -> NDArray[np.uint8]: ...
    @property
    def train_samples(self) -> NDArray[np.uint32]: ...
    @property
    def test_images(self) -> NDArray[np.uint8]: ...
    @property
    def test_labels(self) -> NDArray[np.uint8]: ...
    @property
    def test_samples(self) -> NDArray[np.uint32]: ...

def load_dataset(
    name: str,
    *,
    data_dir: Path | None = None,
    train_limit: int | None = None,
    test_limit: int | None = None,
    seed: int = 0,
    time_steps: int | None = None,
    step_us: int | None = None,
    downsample: int | None = None,
) -> Dataset:
    """Loads a data set by name; digits and digits-events need no files.

    time_steps (100 if not given), step_us and downsample divide recordings of events into steps and pixels;
    they are refused for images.
    """

def encode(
    images: ArrayLike,
    time_steps: int,
    seed: int,
    *,
    encoder: Literal["signed", "unsigned"] = "signed",
    noise: Noise | None = None,
    scenario: Scenario | None = None,
    severity: int | None = None,
    level: float | None = None,
    epoch: int = 0,
    samples: ArrayLike | None = None,
) -> NDArray[np.float32]:
    """Images, uint8 or floats in [-1, 1], [N, C, H, W], as spikes [T, N, C, H, W]."""

def train(
    config: Mapping[str, Any] | Path,
    out: Path | None = None,
    *,
    initial: Network | None = None,
    exist_ok: bool = False,
    callback: Callable[[dict[str, Any]], object] | None = None,
    threads: int | None = None,
    checkpoint_minutes: float = 10.0,
    stop_on_divergence: bool = False,
) -> dict[str, Any]:
    """Trains a network into a run folder; settings are a dict or a TOML file.

    Returns a dict: run, outcome ("finished", "interrupted" or "diverged"), epochs, best_epoch, best_accuracy,
    last, validation and notices.
    """

def study(
    config: Mapping[str, Any] | Path,
    out: Path | None = None,
    *,
    callback: Callable[[dict[str, Any]], object] | None = None,
    threads: int | None = None,
    checkpoint_minutes: float = 10.0,
) -> dict[str, Any]:
    """Trains every condition and seed, measures, compares, and writes the page; continues an existing study.

    Returns a dict: outcome ("finished", or "interrupted" if the callback returned False), report, folder,
    name and runs.
    """

def resume(
    run: Path,
    *,
    callback: Callable[[dict[str, Any]], object] | None = None,
    threads: int | None = None,
    checkpoint_minutes: float = 10.0,
    stop_on_divergence: bool = False,
    data_dir: Path | None = None,
) -> dict[str, Any]:
    """Continues a run from its last checkpoint, with bit-identical results; returns what train returns."""

def evaluate(
    network: Network | Path,
    x: Dataset | ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    noise: Noise | None = None,
    scenario: Scenario | None = None,
    severity: int | None = None,
    level: float | None = None,
    best: bool = False,
    train: bool = False,
    limit: int | None = None,
    data_dir: Path | None = None,
    time_steps: int | None = None,
    encoder: Literal["signed", "unsigned"] | None = None,
    seed: int | None = None,
    threads: int | None = None,
    tau: float | None = None,
    layer_tau: Mapping[str, float] | None = None,
    readout_tau: float | None = None,
    samples: ArrayLike | None = None,
) -> dict[str, Any]:
    """Accuracy of a run on its test set, or of any network on a data set, images or spikes.

    A run sees images as in training: with its time steps, encoder and seed, normalised by its own training
    images. samples are the sample numbers of images; if not given, those of a test set, 2**31 + i.

    Returns a dict: images, correct, accuracy, accuracy_low, accuracy_high, sse, spike_rate, synops, layers,
    tau, layer_tau, readout_tau (numbers, as of a Network), leak (as text), stimulus, level, split, epoch, and
    for a run trained_tau, trained_layer_tau, trained_readout_tau and trained_leak.
    """

@overload
def analyse(  # type: ignore[overload-overlap]
    run: Path,
    name: Literal["all", "mechanism", "spectrum", "example"],
    *,
    images: int | None = None,
    noise: str | Sequence[str] = (),
    best: bool = False,
    data_dir: Path | None = None,
    threads: int | None = None,
    tau: float | None = None,
    layer_tau: Mapping[str, float] | None = None,
    readout_tau: float | None = None,
) -> dict[str, Columns]:
    """Runs all analyses of a run, or one of several tables; mechanism is also for a study."""

@overload
def analyse(
    run: Path,
    name: str,
    *,
    images: int | None = None,
    noise: str | Sequence[str] = (),
    best: bool = False,
    data_dir: Path | None = None,
    threads: int | None = None,
    tau: float | None = None,
    layer_tau: Mapping[str, float] | None = None,
    readout_tau: float | None = None,
) -> Columns:
    """Runs an analysis and returns one of its tables as a dict of arrays."""

def advise(
    study: Path,
    noise: str,
    *,
    severity: int | None = None,
    synops_budget: float | None = None,
    baseline: str | None = None,
    data_dir: Path | None = None,
    threads: int | None = None,
) -> dict[str, Any]:
    """The most robust network of a study under a noise such as "gaussian/pixel", and the leak to run it with.

    Returns a dict: stimulus, budget, trained, hidden, readout, chosen_accuracy, accuracy, low, high, gain,
    gain_low, gain_high, baseline_readout, gain_over_readout, gain_over_readout_low, gain_over_readout_high,
    synops, synops_ratio, spike_rate, candidates, seeds and images.
    """

def tables(run: Path) -> dict[str, Columns]:
    """Every table of a run or of a study."""

def compare(
    runs: Path | Sequence[Path], out: Path | None = None, *, baseline: str | None = None
) -> dict[str, Columns]:
    """Compares analysed runs and judges the paper's claims."""

def report(folder: Path, out: Path | None = None) -> pathlib.Path:
    """Writes the page of a study or run and returns its path."""
