#!/usr/bin/env python3
"""Runs networks of LeakLab in Norse, snnTorch and SpikingJelly, and one of snnTorch in LeakLab, using NIR.

    python tools/nir_roundtrip.py [--epochs 3] [--images 355] [--leaklab PROGRAM] [--work DIR]

Needs leaklab, torch, nir, nirtorch, norse, snntorch and spikingjelly (`tools/check-nir` installs them). Each
file is written by `leaklab export --nir --target TOOL`, loaded by the tool's own importer with its default
options, and run without changes on the same input spikes. The output contains the tables of
docs/interoperability.md. Exits with 1 if a class differs, or more than one spike in ten thousand.
"""

import argparse
import contextlib
import copy
import io
import pathlib
import subprocess
import sys
import tempfile
import warnings

import nir
import norse.torch
import numpy as np
import snntorch
import torch
from snntorch.export_nir import export_to_nir
from snntorch.import_nir import import_from_nir
from spikingjelly.activation_based import nir_exchange

import leaklab

STEPS = 100


def in_norse(path):
    return norse.torch.from_nir(nir.read(path))


def in_snntorch(path):
    with contextlib.redirect_stdout(io.StringIO()):
        return import_from_nir(nir.read(path))


def in_spikingjelly(path):
    return nir_exchange.import_from_nir(path)


TOOLS = {"norse": in_norse, "snntorch": in_snntorch, "spikingjelly": in_spikingjelly}


def run(module, x, neurons):
    """Runs a torch module on x. Returns the spikes of the neuron nodes [T, N, ...] and all outputs."""
    spikes = {name: [] for name in neurons}
    children = dict(module.named_children())
    for name in neurons:
        keep = lambda _, __, out, name=name: spikes[name].append(
            (out[0] if isinstance(out, tuple) else out).detach()
        )
        children[name].register_forward_hook(keep)
    outputs, state = [], None
    with torch.no_grad():
        for step in torch.from_numpy(x):
            out = module(step) if state is None else module(step, state)
            out, state = out if isinstance(out, tuple) else (out, None)
            outputs.append(out)
    return [torch.stack(spikes[name]).numpy() for name in neurons], torch.stack(outputs).numpy()


def integrate(signal, tau):
    """LeakLab's output layer: U = lambda U + input, prediction U / T."""
    potential = np.zeros(signal.shape[1:], dtype=np.float64)
    for step in signal:
        potential = np.exp(-1 / tau) * potential + step
    return potential / len(signal)


def first_differences(net, x, ours, spikes):
    """Distance between potential and threshold at the first different spike of each image, in float64.

    Later differences of an image follow from the first one. If two programs sum a potential in different
    orders and it is within rounding errors of the threshold, it may cross the threshold in only one of them.
    """
    distances = []
    for image in range(x.shape[1]):
        before = x[:, image]
        for layer, theirs in zip(net.layers, spikes, strict=False):
            mine = ours["spikes"][layer.name][:, image]
            different = np.argwhere(mine != theirs[:, image])
            if len(different):
                step, *neuron = different[0]
                weight = torch.from_numpy(net.weights[layer.name]).double()
                potential = 0.0
                for t in range(step + 1):
                    if layer.kind == "conv":
                        given = torch.from_numpy(before[t]).double()[None]
                        drive = torch.nn.functional.conv2d(given, weight, padding=1)[0]
                    else:
                        drive = weight @ torch.from_numpy(before[t].reshape(-1)).double()
                    potential += drive[tuple(neuron)].item()
                    if t < step:
                        potential = 0.0 if mine[(t, *neuron)] else np.exp(-1 / net.tau) * potential
                distances.append(abs(potential - net.v_th))
                break
            before = mine
    return distances


def compare(title, ours, spikes, prediction):
    """Prints a table that compares spikes; returns whether they agree well enough."""
    columns = "layer | spikes, LeakLab | spikes, other | neurons with equal count | spikes that differ"
    print(f"\n{title}\n\n| {columns} |")
    print("| --- | --- | --- | --- | --- |")
    good = True
    for layer, theirs in zip(ours["layers"], spikes, strict=True):
        mine = ours["spikes"][layer]
        same_counts = (mine.sum(0, dtype=int) == theirs.sum(0).round().astype(int)).mean()
        different = int((mine != theirs).sum())
        total = int(mine.sum())
        print(f"| {layer} | {total} | {int(theirs.sum())} | {100 * same_counts:.3f} % | {different} |")
        good &= different <= 1e-4 * total
    classes = (prediction.argmax(1) == ours["prediction"].argmax(1)).mean()
    difference = np.abs(prediction - ours["prediction"]).max()
    print(f"\nPredictions differ by at most {difference:.1e}; {100 * classes:.2f} % of the classes agree.")
    return bool(good and classes == 1.0)


def from_leaklab(tau, arguments, work):
    """Trains one network in LeakLab and runs it in every tool."""
    folder = work / f"tau-{tau}"
    config = {"dataset": "digits", "tau": tau, "epochs": arguments.epochs, "seed": 1}
    result = leaklab.train(config, folder)
    net = leaklab.Network.load(folder)
    data = leaklab.load_dataset("digits", test_limit=arguments.images)
    x = leaklab.encode(data.test_images, STEPS, 1, samples=data.test_samples)
    out = net.forward(x)
    layers = [layer.name for layer in net.layers[:-1]]
    ours = {
        "layers": layers,
        "prediction": out.prediction,
        "spikes": {name: out.spikes(name) for name in layers},
    }
    accuracy = 100 * result["last"]["test_accuracy"]
    print(f"\n## tau = {tau}\n\n`{net.notation}`, {result['epochs']} epochs, test accuracy {accuracy:.2f} %,")
    print(f"{len(data.test_labels)} test images, {STEPS} steps, {int((x != 0).sum())} input spikes.")
    good = True
    for target, load in TOOLS.items():
        path = work / f"tau-{tau}-{target}.nir"
        command = [arguments.leaklab, "export", folder, "--nir", path, "--target", target]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        edges = nir.read(path).edges
        neurons = [next(to for fro, to in edges if fro == layer) for layer in layers]
        spikes, signal = run(load(path), x, neurons)
        good &= compare(f"**{target}**", ours, spikes, integrate(signal, tau))
        distances = first_differences(net, x, ours, spikes)
        if distances:
            where = f"there the potential is within {max(distances):.1e} of the threshold"
            print(f"{len(distances)} images differ; at the first different spike, {where}.")
    return good


def from_snntorch(work):
    """Runs a network in LeakLab that snnTorch made and exported."""
    torch.manual_seed(3)
    neuron = lambda shape: snntorch.Leaky(
        beta=torch.full(shape, 0.95),
        threshold=torch.ones(shape),
        init_hidden=True,
        reset_mechanism="zero",
        reset_delay=False,
    )
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 6, 3, padding=1, bias=False),
        neuron((6, 8, 8)),
        torch.nn.Flatten(),
        torch.nn.Linear(384, 40, bias=False),
        neuron((40,)),
        torch.nn.Linear(40, 10, bias=False),
    )
    data = leaklab.load_dataset("digits", test_limit=100)
    x = leaklab.encode(data.test_images, 30, 1)
    with contextlib.redirect_stdout(io.StringIO()):
        graph = export_to_nir(module, torch.zeros(1, 1, 8, 8), ignore_dims=[0])
    nir.write(work / "snntorch.nir", graph)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        net = leaklab.Network.from_nir(work / "snntorch.nir", integrate_output=True)
    print(f"\n## A graph of snnTorch in LeakLab\n\n`{net.notation}`, tau {net.tau:.6g} steps (beta 0.95).")
    for note in notes:
        if issubclass(note.category, UserWarning):
            print(f"- {note.message}")
    out = net.forward(x)
    ours = {
        "layers": ["conv1", "fc1"],
        "prediction": out.prediction,
        "spikes": {n: out.spikes(n) for n in ("conv1", "fc1")},
    }
    spikes, signal = run(module, x, ["1", "4"])
    return compare("**snnTorch's own run** on the same input", ours, spikes, integrate(signal, net.tau))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--images", type=int, default=355)
    parser.add_argument("--leaklab", default="leaklab", help="the program")
    parser.add_argument("--work", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = arguments.work or pathlib.Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        good = [from_leaklab(tau, arguments, work) for tau in (30.0, float("inf"))]
        good.append(from_snntorch(work))
    print(f"\n{'All agree.' if all(good) else 'Not all agree.'}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
