"""Networks: the reference cases in Python, and arguments that are refused."""

import json
import pickle
import struct

import numpy as np
import pytest
from conftest import ROOT

import leaklab

CASES = sorted((ROOT / "crates/lab/assets/golden").glob("*.safetensors"))


def read(path):
    """Arrays and settings of a reference case."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    settings = json.loads(header.pop("__metadata__")["golden"])
    kinds = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}
    arrays = {}
    for name, entry in header.items():
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        arrays[name] = np.frombuffer(data[start:end], kinds[entry["dtype"]]).reshape(entry["shape"])
    return arrays, settings


def numbered(arrays, prefix):
    """Arrays PREFIX.1, PREFIX.2, ... in order."""
    found = []
    while f"{prefix}.{len(found) + 1}" in arrays:
        found.append(arrays[f"{prefix}.{len(found) + 1}"])
    return found


def close(ours, theirs, tolerance):
    """Within a tolerance relative to the largest entry."""
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= tolerance * max(np.abs(theirs).max(), 1e-30)


def test_there_are_reference_cases():
    assert len(CASES) == 13


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_reference_case(path):
    arrays, settings = read(path)
    layer_tau = {name: float(tau) for name, tau in settings.get("layer_tau", {}).items()}
    readout = settings.get("readout_tau")
    net = leaklab.Network(
        settings["network"],
        tau=float(settings["tau"]),
        v_th=settings["v_th"],
        layer_tau=layer_tau,
        readout_tau=None if readout is None else float(readout),
    )
    assert (
        net.layer_tau == layer_tau
        and net.readout_tau == float(settings["tau"] if readout is None else readout)
    )
    weights = {name[7:]: values for name, values in arrays.items() if name.startswith("weight.")}
    net.set_weights(weights)
    assert all(np.array_equal(net.weights[name], values) for name, values in weights.items())
    masks = numbered(arrays, "mask")
    g = net.gradients(arrays["input"], arrays["labels"], settings["gradient"], masks or None)
    close(g.prediction, arrays["prediction"], 1e-5)
    assert g.loss == pytest.approx(settings["loss"], rel=1e-5)
    for name, values in g.weights.items():
        close(values, arrays[f"gradient.{name}"], 1e-4)
    if masks:
        return  # The other reference values are with dropout, which forward does not have.
    out = net.forward(arrays["input"])
    assert np.array_equal(out.prediction, g.prediction)
    for ours, theirs in zip(out.spike_counts, numbered(arrays, "spike_count"), strict=True):
        assert np.array_equal(ours, theirs)
    norms = np.stack(numbered(arrays, "weighted_input_norm"), axis=1)
    close(out.weighted_input_norm, norms, 1e-4)
    assert out.synops.mean(axis=0) == pytest.approx(settings["synops_per_image"], rel=1e-12)
    for layer, counts in enumerate(out.spike_counts):
        spikes = out.spikes(layer)
        assert spikes.dtype == np.uint8 and spikes.shape == (settings["time_steps"], *counts.shape)
        assert np.array_equal(spikes.sum(axis=0, dtype=np.uint32), counts)


def example(n=5):
    net = leaklab.Network("2x6x6-5C3-2P-8FC-3o", tau=20, seed=4)
    x = np.random.default_rng(1).choice(np.float32([-1, 0, 0, 1]), size=(12, n, 2, 6, 6))
    return net, x


def test_threads_and_layout_change_nothing():
    net, x = example()
    out = net.forward(x)
    labels = np.array([0, 1, 2, 0, 1])
    g = net.gradients(x, labels)
    for other in (np.asfortranarray(x), x.astype(np.float64), x[:, ::-1][:, ::-1]):
        assert np.array_equal(net.forward(other, threads=1).prediction, out.prediction)
    single = net.gradients(x, list(labels), threads=1)
    assert all(np.array_equal(single.weights[name], g.weights[name]) for name in g.weights)


def test_layers_and_spikes_by_name():
    net, x = example(2)
    assert [(layer.name, layer.kind, layer.output) for layer in net.layers] == [
        ("conv1", "conv", [5, 6, 6]),
        ("pool1", "pool", [5, 3, 3]),
        ("fc1", "full", [8]),
        ("fc2", "output", [3]),
    ]
    out = net.forward(x)
    assert np.array_equal(out.spikes("pool1"), out.spikes(1))
    assert out.signal.shape == (12, 2, 3)
    for absent in ("fc2", 3, -1):
        with pytest.raises(IndexError, match="conv1, pool1, fc1"):
            out.spikes(absent)
    one = net.forward(x, membranes="fc1")
    assert list(one.membranes) == ["fc1"]


def test_seeds_and_pickle():
    net, x = example(2)
    assert net == leaklab.Network(net.notation, tau=20, seed=4)
    assert net != leaklab.Network(net.notation, tau=20, seed=5)
    copy = pickle.loads(pickle.dumps(net))
    assert copy == net and copy.tau == 20
    assert np.array_equal(copy.forward(x).prediction, net.forward(x).prediction)


def test_leak_by_layer():
    net = leaklab.Network("1x8x8-4C3-2P-12FC-3o", tau=30, seed=1)
    leaky = net.with_leak(layer_tau={"conv1": 5}, readout_tau=np.inf)
    assert (leaky.tau, leaky.layer_tau, leaky.readout_tau) == (30, {"conv1": 5}, np.inf)
    assert net.layer_tau == {} and net.readout_tau == 30
    assert all(np.array_equal(leaky.weights[name], values) for name, values in net.weights.items())
    assert "layer_tau={'conv1': 5}" in repr(leaky) and "readout_tau=inf" in repr(leaky)
    again = pickle.loads(pickle.dumps(leaky))
    assert (again.layer_tau, again.readout_tau) == (leaky.layer_tau, leaky.readout_tau)
    x = leaklab.encode(np.random.default_rng(1).uniform(-1, 1, (3, 1, 8, 8)).astype("f4"), 40, 1)
    # Only the readout changed: the signal is the same, and the prediction can be computed from it.
    readout = net.with_leak(readout_tau=7.0).forward(x)
    plain = net.forward(x)
    assert np.array_equal(plain.signal, readout.signal)
    decay = np.float32(np.exp(-1 / 7))
    u = np.zeros((3, 3), np.float32)
    for step in range(40):
        u = decay * u + readout.signal[step]
    assert np.array_equal(u / np.float32(40), readout.prediction)
    with pytest.raises(leaklab.LeakLabError, match="conv1, fc1"):
        net.with_leak(layer_tau={"conv2": 5})


def test_readout_divisor(tmp_path):
    net = leaklab.Network("1x8x8-4C3-2P-12FC-3o", tau=9, seed=1)
    other = leaklab.Network("1x8x8-4C3-2P-12FC-3o", tau=9, seed=1, readout_divisor="memory")
    assert (net.readout_divisor, other.readout_divisor) == ("steps", "memory")
    assert net != other and "readout_divisor" not in repr(net) and "readout_divisor='memory'" in repr(other)
    assert pickle.loads(pickle.dumps(other)) == other
    other.save(tmp_path / "model")
    assert leaklab.Network.load(tmp_path / "model") == other
    x = leaklab.encode(np.random.default_rng(1).uniform(-1, 1, (3, 1, 8, 8)).astype("f4"), 30, 1)
    plain, mean = net.forward(x), other.forward(x)
    assert np.array_equal(plain.signal, mean.signal)
    weights = np.exp(-np.arange(30) / 9).sum()
    # Each prediction is rounded once.
    np.testing.assert_allclose(mean.prediction * weights, plain.prediction * 30.0, rtol=2e-7)
    # Without leak, the divisors are the same number.
    plain, mean = (n.with_leak(np.inf).forward(x).prediction for n in (net, other))
    assert np.array_equal(plain, mean)
    with pytest.raises(leaklab.LeakLabError, match="'mean' is not one of steps, memory"):
        leaklab.Network("1x8x8-12FC-3o", readout_divisor="mean")


def test_refused_weights_change_nothing():
    net, _ = example()
    before = net.weights
    with pytest.raises(leaklab.LeakLabError, match=r"'fc1' has shape \[2\]"):
        net.set_weights({"conv1": np.zeros((5, 2, 3, 3)), "fc1": [1.0, 2.0]})
    with pytest.raises(ValueError, match="no weights named 'conv9'"):
        net.set_weights({"conv9": np.zeros(3)})
    with pytest.raises(ValueError, match="finite"):
        net.set_weights({"fc2": np.full((3, 8), np.nan)})
    assert all(np.array_equal(net.weights[name], before[name]) for name in before)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: leaklab.Network("32x32-64C5-10o"), "token 2 '64C5'"),
        (lambda: leaklab.Network("1x4x4-3o"), "hidden layer"),
        (lambda: leaklab.Network("1x4x4-2FC-3o", tau=-1), "tau is -1"),
        (lambda: leaklab.Network("1x4x4-2FC-3o", v_th=0), "v_th is 0"),
        (lambda: example()[0].forward(np.zeros((3, 2, 2, 6, 5))), r"\[T, N, 2, 6, 6\]"),
        (lambda: example()[0].forward(np.zeros((0, 2, 2, 6, 6))), "with 1 to 65535 steps"),
        (lambda: example()[0].forward(np.zeros((66000, 1, 2, 6, 6), np.float32)), "with 1 to 65535 steps"),
        (lambda: example()[0].forward(np.zeros(3)), r"\[T, N, 2, 6, 6\]"),
        (lambda: example()[0].forward(np.full((1, 1, 2, 6, 6), np.inf)), "inf"),
        (lambda: example()[0].forward(np.zeros((1, 1, 2, 6, 6)), threads=0), "threads is 0"),
        (lambda: example()[0].gradients(example()[1], [0, 1]), "2 labels for 5 samples"),
        (lambda: example()[0].gradients(example()[1], [0, 1, 2, 3, 0]), "label 3 is out of range"),
        (lambda: example()[0].gradients(example()[1], [0, 1, 2, -1, 0]), "label -1"),
        (lambda: example()[0].gradients(example()[1], [0] * 5, "surrogate"), "straight-through"),
        (
            lambda: example()[0].gradients(example()[1], [0] * 5, masks=[np.ones((5, 5, 6, 6))]),
            "1 masks for 2",
        ),
        (lambda: example()[0].gradients(example()[1], [0] * 5, masks=[np.ones(3), np.ones(8)]), r"s\[0\]"),
        (lambda: example()[0].gradients(example()[1][:, :0], []), "x has no samples"),
        (lambda: example()[0].calibrate(example()[1][:, :0], 0.1), "x has no samples"),
        (lambda: leaklab.Network.load("/nowhere"), "/nowhere"),
        (lambda: leaklab.Network("1x4x4-2FC-3o", seed=-1), "seed is -1; a whole number of 0 or more"),
        (lambda: leaklab.Network("1x4x4-2FC-3o", seed=2**64), "seed is 18446744073709551616; .* from 0 to"),
        (lambda: example()[0].forward(example()[1].astype(complex)), "x cannot be read as .* complex128"),
        (lambda: example()[0].forward("spikes"), "x cannot be read as an array of numbers"),
        (lambda: example()[0].forward([[1, 2], [3]]), "x cannot be read as an array of numbers"),
        (lambda: example()[0].gradients(example()[1], [0] * 5, masks=["a", "b"]), r"masks\[0\] c"),
        (
            lambda: example()[0].set_weights({1: np.zeros(3)}),
            "the name of a layer must be a string, and 1 is not",
        ),
    ],
)
def test_refusals_are_sentences(call, words):
    with pytest.raises(leaklab.LeakLabError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
