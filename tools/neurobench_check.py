#!/usr/bin/env python3
"""Compares LeakLab's NeuroBench numbers with those of the `neurobench` package (PyPI).

    pip install neurobench safetensors snntorch
    python tools/neurobench_check.py            # compare with the recorded numbers
    python tools/neurobench_check.py --record   # write crates/lab/tests/neurobench.json again

The networks of the reference cases (weights and input spikes) run in PyTorch as plain modules under
NeuroBench's own `Benchmark`. Its results are stored in crates/lab/tests/neurobench.json, and the Rust test
`neurobench` requires that LeakLab's counts for the same weights and spikes are equal. Each case also runs
with every fifth weight set to zero, because NeuroBench counts only weights that are not zero.
"""

import argparse
import json
import math
import re
import sys
from pathlib import Path

import snntorch
import torch
from safetensors import safe_open
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from neurobench import __version__ as version
from neurobench.benchmarks import Benchmark
from neurobench.metrics.static import Footprint
from neurobench.metrics.workload import ActivationSparsity, NeuronOperations, SynapticOperations
from neurobench.models import TorchModel

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "crates/lab/assets/golden"
RECORD = ROOT / "crates/lab/tests/neurobench.json"
# The two cases with dropout, which is for training only, and the four with leak by layer are omitted.
CASES = [
    "if_conv",
    "lif_conv",
    "lif_conv_exact",
    "lif_fc",
    "lif_noisy_input",
    "lif_threshold",
    "three_channels",
]


class Leaky(snntorch.SpikingNeuron):
    """A layer of spiking neurons; with `decay` 1 and threshold 0.75 they are those of a pool.

    NeuroBench determines the cost of a neuron from the name of its class, and reads its potential from `mem`.
    """

    def __init__(self, decay, threshold):
        super().__init__(threshold=threshold, init_hidden=True, reset_mechanism="zero")
        self._buffers.clear()  # the footprint includes only the weights
        self.decay, self.limit = decay, threshold

    def start(self):
        self.mem = None

    def forward(self, current):
        u = current if self.mem is None else self.mem + current
        spikes = (u > self.limit).to(current.dtype)
        self.mem = self.decay * u * (1 - spikes)
        return spikes


class Network(nn.Module):
    """The network of a reference case, step by step. The output layer is a plain Linear: it never fires."""

    def __init__(self, notation, tau, threshold, weights):
        super().__init__()
        decay = 1.0 if tau == math.inf else math.exp(-1 / tau)
        self.layers = nn.ModuleList()
        for token in notation.split("-")[1:]:
            if re.fullmatch(r"\d+C3", token):
                weight = weights.pop(0)
                layer = nn.Conv2d(weight.shape[1], weight.shape[0], 3, padding=1, bias=False)
                layer.weight.data = weight
                self.layers += [layer, Leaky(decay, threshold)]
            elif token in ("2P", "2s"):
                self.layers += [nn.AvgPool2d(2), Leaky(1.0, 0.75)]
            else:
                weight = weights.pop(0)
                layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
                layer.weight.data = weight
                self.layers += [layer] if token.endswith("o") else [layer, Leaky(decay, threshold)]

    def forward(self, images):
        """images: [1, T, C, H, W]; returns the output layer's weighted input, summed over time."""
        for layer in self.layers:
            if isinstance(layer, Leaky):
                layer.start()
        total = 0
        for x in images.unbind(1):
            for layer in self.layers:
                x = layer(x.flatten(1) if isinstance(layer, nn.Linear) else x)
            total = total + x
        return total


def measure(name, zeroed):
    """NeuroBench's numbers for one reference case."""
    with safe_open(GOLDEN / f"{name}.safetensors", "pt") as file:
        settings = json.loads(file.metadata()["golden"])
        names = [k for k in file.keys() if k.startswith("weight.")]
        order = sorted(names, key=lambda k: (not k.startswith("weight.conv"), k))
        # In float64, in which the reference spikes were computed; their distance from the threshold also
        # allows float32.
        weights = [file.get_tensor(k).double() for k in order]
        images = file.get_tensor("input").double().transpose(0, 1)
    if zeroed:
        for weight in weights:
            weight.view(-1)[::5] = 0
    tau = math.inf if settings["tau"] == "inf" else settings["tau"]
    # The footprint is measured with 32-bit weights.
    network = Network(settings["network"], tau, settings["v_th"], [w.float() for w in weights])
    footprint = Footprint()(TorchModel(network))
    model = TorchModel(network.double())
    model.add_activation_module(Leaky)
    loader = DataLoader(TensorDataset(images, torch.zeros(len(images))), batch_size=1)
    with torch.no_grad():
        metrics = [SynapticOperations, ActivationSparsity, NeuronOperations]
        results = Benchmark(model, loader, [], [], [[], metrics]).run(quiet=True)
    operations = results["SynapticOperations"]
    return {
        "case": name,
        "zeroed": zeroed,
        "effective_acs": operations["Effective_ACs"],
        "effective_macs": operations["Effective_MACs"],
        "dense": operations["Dense"],
        "activation_sparsity": results["ActivationSparsity"],
        "footprint": footprint,
        "effective_neuron_ops": results["NeuronOperations"]["Effective Neuron Ops"],
        "dense_neuron_ops": results["NeuronOperations"]["Neuron Dense Ops"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write the numbers instead of comparing them")
    record = parser.parse_args().record
    rows = [measure(name, zeroed) for name in CASES for zeroed in (False, True)]
    for row in rows:
        print(json.dumps(row))
    if record:
        lines = ",\n".join("    " + json.dumps(row) for row in rows)
        RECORD.write_text(f'{{\n  "neurobench": "{version}",\n  "rows": [\n{lines}\n  ]\n}}\n')
        print(f"neurobench {version}: {len(rows)} rows written to {RECORD.relative_to(ROOT)}")
        return 0
    known = json.loads(RECORD.read_text())["rows"]
    differ = [row["case"] for row, old in zip(rows, known) if row != old]
    if len(rows) != len(known) or differ:
        print(f"neurobench {version}: differs from the record in {differ or 'the number of rows'}")
        return 1
    print(f"neurobench {version}: {len(rows)} rows equal the record")
    return 0


if __name__ == "__main__":
    sys.exit(main())
