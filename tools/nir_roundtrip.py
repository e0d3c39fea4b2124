#!/usr/bin/env python3
"""A digits network of LeakLab in Norse and snnTorch, by way of NIR, on the same input spikes; and one of theirs in LeakLab.

    python tools/nir_roundtrip.py [--epochs 5] [--images 355] [--work DIR]

Needs leaklab, torch, nir, nirtorch, norse and snntorch. Prints the tables of docs/interoperability.md. Where a tool
cannot read a node, or reads it as something else, the graph is rewritten into an equivalent one before it is handed
over; what was rewritten is printed, and so is what the tool makes of the file as it stands and with one rewriting
left out. Exits with 1 if a rewritten graph disagrees with LeakLab in more than one spike in ten thousand,
or in any class.
"""

import argparse
import contextlib
import copy
import io
import pathlib
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

import leaklab

DT = 1e-4


def rewritten(graph, *, fold_r=False, sum_pool=False):
    """An equivalent graph that the tools can run, and what was changed.

    Neither tool has LI or I nodes, so the graph ends at the last matrix and the caller integrates. Both hand Flatten's
    dimensions to torch, which counts the batch. fold_r multiplies r into the weights before a LIF node.
    sum_pool turns the mean of a pool and threshold 0.75 into the sum and threshold 3.
    """
    nodes, edges = copy.deepcopy(graph.nodes), list(graph.edges)
    changes = []
    (readout,) = [name for name, node in nodes.items() if isinstance(node, (nir.LI, nir.I))]
    ((matrix, _),) = [edge for edge in edges if edge[1] == readout]
    edges = [edge for edge in edges if readout not in edge] + [(matrix, "output")]
    changes.append(f"{type(nodes.pop(readout)).__name__} taken off, the script integrates")
    for name, node in nodes.items():
        if isinstance(node, nir.Flatten):
            nodes[name] = nir.Flatten(None, start_dim=1, end_dim=-1)
            changes.append("Flatten counts the batch")
        if isinstance(node, nir.AvgPool2d) and sum_pool:
            nodes[name] = nir.SumPool2d(node.kernel_size, node.stride, node.padding)
            ((_, neuron),) = [edge for edge in edges if edge[0] == name]
            nodes[neuron].v_threshold = 4 * nodes[neuron].v_threshold
            changes.append("AvgPool2d and threshold 0.75 as SumPool2d and 3")
        if isinstance(node, nir.LIF) and fold_r:
            ((before, _),) = [edge for edge in edges if edge[1] == name]
            nodes[before].weight = nodes[before].weight * node.r.flat[0]
            node.r = np.ones_like(node.r)
            changes.append("r multiplied into the weights")
    return nir.NIRGraph(nodes, edges, type_check=False), sorted(set(changes))


def run(module, x, neurons):
    """Steps a torch module through x; the spikes of each neuron node [T, N, ...] and the last output at every step."""
    spikes = {name: [] for name in neurons}
    children = dict(module.named_children())
    for name in neurons:
        keep = lambda _, __, out, name=name: spikes[name].append((out[0] if isinstance(out, tuple) else out).detach())
        children[name].register_forward_hook(keep)
    outputs, state = [], None
    with torch.no_grad():
        for step in torch.from_numpy(x):
            out = module(step) if state is None else module(step, state)
            out, state = out if isinstance(out, tuple) else (out, None)
            outputs.append(out)
    return [torch.stack(spikes[name]).numpy() for name in neurons], torch.stack(outputs).numpy()


def in_snntorch(graph):
    with contextlib.redirect_stdout(io.StringIO()):
        return import_from_nir(copy.deepcopy(graph))


def in_norse(graph):
    return norse.torch.from_nir(copy.deepcopy(graph), dt=DT, ignore_warnings=True)


def integrate(signal, tau):
    """LeakLab's output layer: U = lambda U + input, prediction U / T."""
    potential = np.zeros(signal.shape[1:], dtype=np.float64)
    for step in signal:
        potential = np.exp(-1 / tau) * potential + step
    return potential / len(signal)


def first_differences(net, x, ours, spikes):
    """Where spikes part, image by image: how far from the threshold the potential lay there, in double precision.

    Later differences of an image follow from its first one. A potential that two programs sum up in another order may
    cross the threshold in one and not in the other if it lies within rounding of it.
    """
    distances = []
    for image in range(x.shape[1]):
        before = x[:, image]
        for layer, theirs in zip(net.layers, spikes, strict=False):
            mine = ours["spikes"][layer.name][:, image]
            parted = np.argwhere(mine != theirs[:, image])
            if len(parted):
                step, *neuron = parted[0]
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
    """One table of agreement; returns whether it is good enough."""
    print(f"\n{title}\n\n| layer | spikes, LeakLab | spikes, other | neurons with equal count | spikes that differ |")
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


def attempt(title, load, graph, x, ours):
    """What a tool makes of a graph, in a sentence."""
    neurons = [next(to for fro, to in graph.edges if fro == layer) for layer in ours["layers"]]
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            spikes, _ = run(load(graph), x, neurons)
        totals = [int(s.sum()) for s in spikes]
        mine = [int(ours["spikes"][layer].sum()) for layer in ours["layers"]]
        ratios = ", ".join(f"{100 * theirs / max(total, 1):.1f} %" for theirs, total in zip(totals, mine))
        print(f"- {title}: it runs, with {ratios} of LeakLab's spikes in {', '.join(ours['layers'])}")
    except Exception as error:
        text = " ".join(str(error).split())
        print(f"- {title}: {type(error).__name__}: {text[:160]}")


def from_leaklab(tau, arguments, work):
    """One network of LeakLab in both tools."""
    folder = work / f"tau-{tau}"
    config = {"dataset": "digits", "tau": tau, "epochs": arguments.epochs, "seed": 1}
    result = leaklab.train(config, folder)
    net = leaklab.Network.load(folder)
    data = leaklab.load_dataset("digits", test_limit=arguments.images)
    steps = 30
    x = leaklab.encode(data.test_images, steps, 1, samples=data.test_samples)
    out = net.forward(x)
    layers = [layer.name for layer in net.layers[:-1]]
    ours = {"layers": layers, "prediction": out.prediction, "spikes": {name: out.spikes(name) for name in layers}}
    print(f"\n## tau = {tau}\n\n`{net.notation}`, {result['epochs']} epochs, test accuracy {100 * result['last']['test_accuracy']:.2f} %,")
    print(f"{len(data.test_labels)} test images, {steps} steps, {int((x != 0).sum())} input spikes.\n")
    good = True
    for name, load, as_lif, options in (
        ("snnTorch", in_snntorch, True, {}),
        ("Norse", in_norse, False, {"fold_r": True, "sum_pool": True}),
    ):
        net.to_nir(work / "plain.nir")
        plain = nir.read(work / "plain.nir")
        net.to_nir(work / "net.nir", if_as_lif=as_lif)
        whole = nir.read(work / "net.nir")
        graph, changes = rewritten(whole, **options)
        neurons = [next(to for fro, to in graph.edges if fro == layer) for layer in layers]
        print()
        attempt(f"{name}, the file as it stands", load, plain, x, ours)
        if as_lif:
            attempt(f"{name}, without --if-as-lif", load, rewritten(plain, **options)[0], x, ours)
            misread = copy.deepcopy(graph)
            for layer in (name for name in layers if name.startswith("pool")):
                node = misread.nodes[f"{layer}_lif"]
                node.tau, node.r = np.full_like(node.tau, DT / 0.1), np.full_like(node.r, 10)
            attempt(f"{name}, pools with the decay of 0.9 that its reader gives IF", load, misread, x, ours)
        for option in options:
            attempt(f"{name}, without {option}", load, rewritten(whole, **options | {option: False})[0], x, ours)
        changes += ["exported with --if-as-lif"] if as_lif else []
        spikes, signal = run(load(graph), x, neurons)
        good &= compare(f"**{name}**, after: {'; '.join(changes)}", ours, spikes, integrate(signal, tau))
        distances = first_differences(net, x, ours, spikes)
        if distances:
            print(f"{len(distances)} images differ; where they part, the potential lies within {max(distances):.1e} of the threshold.")
    return good


def from_snntorch(work):
    """A network that snnTorch made and exported, in LeakLab."""
    torch.manual_seed(3)
    neuron = lambda shape: snntorch.Leaky(
        beta=torch.full(shape, 0.95), threshold=torch.ones(shape), init_hidden=True, reset_mechanism="zero", reset_delay=False
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
    ours = {"layers": ["conv1", "fc1"], "prediction": out.prediction, "spikes": {n: out.spikes(n) for n in ("conv1", "fc1")}}
    spikes, signal = run(module, x, ["1", "4"])
    return compare("**snnTorch's own run** on the same input", ours, spikes, integrate(signal, net.tau))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--images", type=int, default=355)
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
