"""Export of networks to other tools, and import."""

import subprocess

import numpy as np
import pytest

import leaklab

nir = pytest.importorskip("nir")


def lif(shape, tau=30.0, dt=1e-4, r=None):
    """A LIF node of Python's nir with LeakLab's dynamics."""
    full = lambda value: np.full(shape, value, dtype=np.float32)
    seconds = dt / (1 - np.exp(-1 / tau))
    return nir.LIF(full(seconds), full(seconds / dt if r is None else r), full(0), full(1))


@pytest.mark.parametrize("tau", [30.0, float("inf")])
def test_nir_reads_what_is_written(tmp_path, tau):
    net = leaklab.Network("2x7x5-6C3-2P-10FC-4o", tau=tau, seed=2)
    net.to_nir(tmp_path / "net.nir")
    graph = nir.read(tmp_path / "net.nir")
    kinds = {name: type(node).__name__ for name, node in graph.nodes.items()}
    neuron, last = ("lif", "li") if tau == 30.0 else ("if", "i")
    assert kinds == {
        "input": "Input",
        "conv1": "Conv2d",
        f"conv1_{neuron}": neuron.upper(),
        "pool1": "AvgPool2d",
        "pool1_if": "IF",
        "flatten": "Flatten",
        "fc1": "Linear",
        f"fc1_{neuron}": neuron.upper(),
        "fc2": "Linear",
        f"fc2_{last}": last.upper(),
        "output": "Output",
    }
    assert graph.check_types()
    for name, values in net.weights.items():
        assert (
            np.array_equal(graph.nodes[name].weight, values)
            and graph.nodes[name].weight.dtype == np.float32
        )
    assert graph.nodes["pool1_if"].v_threshold.shape == (6, 3, 2)
    assert np.all(graph.nodes["pool1_if"].v_threshold == 0.875)
    assert np.all(graph.nodes[f"conv1_{neuron}"].v_reset == 0)
    if tau == 30.0:
        node = graph.nodes["conv1_lif"]
        assert node.tau == pytest.approx(np.full((6, 7, 5), 1e-4 / (1 - np.exp(-1 / 30))), rel=1e-7)
        assert node.r == pytest.approx(node.tau / 1e-4, rel=1e-6)
    # Nothing is lost if Python's nir writes the graph and LeakLab reads it.
    nir.write(tmp_path / "theirs.nir", graph)
    assert leaklab.Network.from_nir(tmp_path / "theirs.nir") == net
    leaklab.Network.from_nir(tmp_path / "theirs.nir").to_nir(tmp_path / "again.nir")
    assert (tmp_path / "again.nir").read_bytes() == (tmp_path / "net.nir").read_bytes()


def test_nir_from_python_runs(tmp_path):
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(6, 9)).astype("f4"), rng.normal(size=(3, 6)).astype("f4")
    nodes = [nir.Affine(first, np.zeros(6, "f4")), lif((6,)), nir.Linear(second)]
    nir.write(tmp_path / "g.nir", nir.NIRGraph.from_list(*nodes))
    with pytest.raises(leaklab.LeakLabError, match="integrate_output=True"):
        leaklab.Network.from_nir(tmp_path / "g.nir")
    with pytest.warns(UserWarning, match="integrating output"):
        net = leaklab.Network.from_nir(tmp_path / "g.nir", integrate_output=True)
    assert net.notation == "1x1x9-6FC-3o" and net.tau == 30
    x = rng.choice(np.float32([0, 1]), size=(20, 4, 1, 1, 9))
    # The same equations in plain NumPy, in float64.
    hidden, output, spikes = np.zeros((4, 6)), np.zeros((4, 3)), 0
    decay = np.exp(-1 / 30)
    for step in x[:, :, 0, 0]:
        hidden = decay * hidden + step @ first.astype(float).T
        fired = hidden > 1
        hidden[fired] = 0
        output = decay * output + fired @ second.astype(float).T
        spikes += fired
    out = net.forward(x)
    assert np.array_equal(out.spike_counts[0], spikes)
    assert out.prediction == pytest.approx(output / 20, abs=1e-5)


def test_gains_are_folded_into_the_weights_with_a_warning(tmp_path):
    weights = np.ones((6, 9), "f4")
    nodes = [nir.Linear(weights), lif((6,), r=1.0), nir.Linear(np.ones((3, 6), "f4"))]
    nir.write(tmp_path / "g.nir", nir.NIRGraph.from_list(*nodes))
    with pytest.raises(leaklab.LeakLabError, match="'lif' .*dt="):
        leaklab.Network.from_nir(tmp_path / "g.nir", integrate_output=True)
    with pytest.warns(UserWarning, match="multiplied by"):
        net = leaklab.Network.from_nir(tmp_path / "g.nir", dt=1e-4, integrate_output=True)
    assert net.weights["fc1"] == pytest.approx(weights * (1 - np.exp(-1 / 30)), rel=1e-6)


def test_nodes_without_counterpart_are_named(tmp_path):
    cuba = nir.CubaLIF(*(np.ones(6, "f4") for _ in range(5)))
    nir.write(tmp_path / "g.nir", nir.NIRGraph.from_list(nir.Linear(np.ones((6, 9), "f4")), cuba))
    with pytest.raises(leaklab.LeakLabError, match="'cubalif' .*CubaLIF"):
        leaklab.Network.from_nir(tmp_path / "g.nir")
    (tmp_path / "no.nir").write_bytes(b"not HDF5")
    with pytest.raises(leaklab.LeakLabError, match="no.nir: not a readable NIR file"):
        leaklab.Network.from_nir(tmp_path / "no.nir")


def test_folders_and_arrays(tmp_path, run, program):
    numpy = pytest.importorskip("safetensors.numpy")
    net = leaklab.Network.load(run)
    command = [program, "export", run, "--safetensors", tmp_path / "hub", "--npz", tmp_path / "net.npz"]
    subprocess.run(command, check=True, capture_output=True)
    tensors = numpy.load_file(tmp_path / "hub/model.safetensors")
    arrays = np.load(tmp_path / "net.npz")
    for name, values in net.weights.items():
        assert np.array_equal(tensors[name], values) and np.array_equal(arrays[name], values)
    assert leaklab.Network.load(tmp_path / "hub") == net
    accuracy = leaklab.evaluate(run)["accuracy"]
    assert f"| accuracy | {100 * accuracy:.2f} % |" in (tmp_path / "hub/README.md").read_text()
    net.save(tmp_path / "saved")
    assert leaklab.Network.load(tmp_path / "saved") == net
