"""Difficult calls: after a fork, with sizes beyond any machine, and with values of the wrong kind."""

import collections
import itertools
import multiprocessing
import pathlib
import pickle
import re
import shutil
import struct
import subprocess
import sys
import threading
import time
import types
import warnings
import zlib

import numpy as np
import pytest
from conftest import SMALL

import leaklab

NOTATION = "1x8x8-4C3-2P-10o"
IMAGES = np.arange(3 * 64, dtype=np.uint8).reshape(3, 1, 8, 8)


def work(queue=None):
    """Everything that uses threads."""
    spikes = leaklab.encode(IMAGES, 6, 1)
    network = leaklab.Network("1x8x8-4C3-2P-128FC-10o", seed=3)  # 128FC is packed by two threads
    forward = network.forward(spikes).prediction
    gradients = network.gradients(spikes, [0, 1, 2]).loss
    rate = leaklab.theory.rate(np.linspace(0.5, 1.5, 200), 0.1)
    result = spikes.sum(), forward.tolist(), gradients, rate.tolist()
    if queue is not None:
        queue.put(result)
    return result


@pytest.mark.skipif(sys.platform != "linux", reason="fork is how Linux starts workers")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_works_as_its_parent_does():
    expected = work()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=work, args=(queue,)) for _ in range(2)]
    for child in children:
        child.start()
    try:
        assert [queue.get(timeout=60) for _ in children] == [expected, expected]
    finally:
        for child in children:
            child.join(10)
            child.kill()
    assert work() == expected


def test_floats_that_look_like_pixels_are_warned_of(run):
    data = leaklab.load_dataset("digits", test_limit=20)
    images, labels = data.test_images, data.test_labels
    with pytest.warns(UserWarning, match="give pixels as uint8"):
        leaklab.evaluate(run, images / np.float32(255), labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leaklab.evaluate(run, images, labels)
        leaklab.evaluate(run, images / np.float32(128) - np.float32(1), labels)


def work_on_runs(folder, queue=None):
    """Trains, evaluates and analyses a small run, and loads data that are computed in parallel."""
    run = folder / f"run-{multiprocessing.current_process().pid}"
    settings = SMALL | {"epochs": 1, "time_steps": 4, "train_limit": 20, "test_limit": 20}
    settings |= {"network": "1x8x8-4C3-2P-128FC-10o"}  # 128FC is packed by two threads
    leaklab.train(settings, run)
    accuracy = leaklab.evaluate(run, threads=1)["accuracy"]
    tables = leaklab.analyse(run, "robustness", noise=["gaussian/pixel"])
    events = leaklab.load_dataset("digits-events", time_steps=4)
    result = accuracy, sorted(tables), len(events.train_labels)
    if queue is not None:
        queue.put(result)
    return result


@pytest.mark.skipif(sys.platform != "linux", reason="fork is how Linux starts workers")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_trains_evaluates_and_analyses(tmp_path):
    expected = work_on_runs(tmp_path)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=work_on_runs, args=(tmp_path, queue))
    child.start()
    try:
        assert queue.get(timeout=120) == expected
    finally:
        child.join(10)
        child.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="fork is how Linux starts workers")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_killed_child_leaves_no_lock(tmp_path):
    """The lock names the child and not its parent, which lives on."""
    leaklab.train(SMALL, tmp_path / "first")
    run = tmp_path / "run"
    child = multiprocessing.get_context("fork").Process(
        target=leaklab.train, args=(SMALL | {"epochs": 1000}, run), kwargs={"threads": 1}
    )
    child.start()
    try:
        deadline = time.monotonic() + 60
        while not (run / "metrics.jsonl").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        with pytest.raises(ValueError, match=f"process {child.pid} "):
            leaklab.resume(run)
    finally:
        child.kill()
        child.join(10)
    stopped = leaklab.resume(run, callback=lambda event: False)
    assert stopped["outcome"] == "interrupted"


@pytest.mark.parametrize("threads", [0, 1025, 10_000, 2**40])
def test_a_number_of_threads_is_checked(tmp_path, threads):
    network = leaklab.Network(NOTATION)
    spikes = leaklab.encode(IMAGES, 2, 1)
    for call in (
        lambda: network.forward(spikes, threads=threads),
        lambda: network.gradients(spikes, [0, 1, 2], threads=threads),
        lambda: leaklab.train(SMALL, tmp_path / "run", threads=threads),
    ):
        with pytest.raises(ValueError, match="a whole number from 1 to 1024 is expected"):
            call()


def test_what_does_not_fit_is_refused_before_it_is_made():
    for steps in (0, 65_536, 2**40, 2**58, 2**63 - 1):
        with pytest.raises(ValueError, match="a whole number from 1 to 65535 is expected"):
            leaklab.encode(IMAGES, steps, 1)
    many = np.broadcast_to(np.zeros((1, 3, 64, 64), np.float32), (2_000, 3, 64, 64))
    with pytest.raises(ValueError, match="of memory, but only .* is available; request fewer"):
        leaklab.encode(many, 65_535, 1)
    with pytest.raises(ValueError, match="points needs about"):
        leaklab.theory.rate(np.ones((10**6, 1)), np.ones(10**6))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report available memory")
def test_a_network_that_does_not_fit_is_refused(tmp_path):
    script = (
        "import leaklab, resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
        "huge = '1x8x8-46000FC-46000FC-10o'\n"
        "calls = [lambda: leaklab.Network(huge), "
        f"lambda: leaklab.train({SMALL!r} | {{'network': huge}}, sys.argv[1])]\n"
        "for call in calls:\n"
        "    try:\n"
        "        call()\n"
        "    except ValueError as error:\n"
        "        print(error)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "run"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(answer) == 2 and all("2119404000 weights needs about" in line for line in answer), answer
    # What the interpreter uses is not available.
    pattern = r"but only (3\.[5-9]|4\.[0-2]) GB is available; choose a smaller network"
    assert all(re.search(pattern, line) for line in answer), answer
    assert not (tmp_path / "run").exists()


def test_settings_that_never_end_are_refused(tmp_path):
    circle = [1]
    circle.append(circle)
    ring = {}
    ring["ring"] = ring
    for value in (circle, ring):
        with pytest.raises(ValueError, match="nested more than 8 levels deep, or contains itself"):
            leaklab.train(SMALL | {"schedule.after": value}, tmp_path / "run")
    with pytest.raises(ValueError, match="schedule.after has more than 100000 values"):
        leaklab.train(SMALL | {"schedule.after": itertools.count()}, tmp_path / "run")


def test_masked_elements_are_refused():
    """NumPy would use the values that the mask hides."""
    network = leaklab.Network(NOTATION)
    spikes = leaklab.encode(IMAGES, 2, 1)
    whole = np.ma.masked_array(spikes, mask=False)
    assert np.array_equal(network.forward(whole).signal, network.forward(spikes).signal)
    with pytest.raises(ValueError, match="x: masked elements must be filled first"):
        network.forward(np.ma.masked_array(spikes, mask=spikes != 0))
    with pytest.raises(ValueError, match="labels: masked elements must be filled first"):
        network.gradients(spikes, np.ma.masked_array([0, 1, 2], mask=[0, 1, 0]))


def test_labels_are_whole_numbers():
    network = leaklab.Network(NOTATION)
    spikes = leaklab.encode(IMAGES, 2, 1)
    expected = network.gradients(spikes, [0, 1, 2]).loss
    for good in (np.array([0, 1, 2], np.uint8), (0, 1, 2), np.array([0, 1, 2], np.uint64)):
        assert network.gradients(spikes, good).loss == expected
    for bad in (
        [0.9, 1.0, 2.0],
        np.array([0, 1, 2], np.float32),
        ["0", "1", "2"],
        [[0, 1, 2]],
        [True, False, True],
    ):
        with pytest.raises(ValueError, match="labels are .*; a list of whole numbers is expected"):
            network.gradients(spikes, bad)
    with pytest.raises(ValueError, match="samples are float64"):
        leaklab.encode(IMAGES, 2, 1, samples=[0.5, 1, 2])
    with pytest.raises(ValueError, match="sample number -1 is not one of"):
        leaklab.encode(IMAGES, 2, 1, samples=[-1, 1, 2])


@pytest.mark.parametrize("answer", [False, np.bool_(False), np.zeros(1, bool)[0]])
def test_false_stops_and_nothing_else_does(tmp_path, answer):
    assert (
        leaklab.train(SMALL, tmp_path / "stopped", callback=lambda event: answer)["outcome"]
        == "interrupted"
    )
    for other in (None, 0, [], np.bool_(True), ""):
        out = tmp_path / f"run-{other!r}"
        assert (
            leaklab.train(SMALL | {"epochs": 1}, out, callback=lambda event: other)["outcome"] == "finished"
        )


def test_a_damaged_checkpoint_is_warned_of(tmp_path, run):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    path = pathlib.Path(copy) / "checkpoint.safetensors"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    for call in (
        lambda: leaklab.evaluate(copy),
        lambda: leaklab.analyse(copy, "activity", images=20),
        lambda: leaklab.Network.load(copy),
        lambda: leaklab.resume(copy),
    ):
        with pytest.warns(UserWarning, match="damaged.*using the previous checkpoint"):
            call()
    assert path.read_bytes() == (pathlib.Path(run) / "checkpoint.safetensors").read_bytes()
    (copy / "best.safetensors").unlink()
    with pytest.raises(ValueError, match="no best.safetensors"):
        leaklab.evaluate(copy, best=True)


def write_png(path):
    """A grey image of 8x8 pixels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    chunk = lambda kind, data: (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    )
    header = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes(8 * 9))
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def test_a_class_without_training_images_is_warned_of(tmp_path):
    data = tmp_path / "data"
    for place in ("train/a", "train/b", "test/a", "test/b", "test/c"):
        write_png(data / place / "1.png")
    (data / "train/c").mkdir()
    settings = {"dataset": "image-folder:8x8", "data_dir": str(data), "network": "8x8-2C3-3o", "tau": 30}
    with pytest.warns(UserWarning, match=r"class 2 \(c\) has no training images"):
        leaklab.train(settings | {"time_steps": 2, "epochs": 1, "learning_rate": 0.1}, tmp_path / "run")


@pytest.mark.parametrize(
    "call",
    [
        "network.gradients(spikes, [0] * 400)",
        "network.forward(spikes)",
        "leaklab.evaluate(network, spikes, [0] * 400)",
        "network.forward(spikes, membranes='conv2')",
        "network.calibrate(spikes, 0.1)",
    ],
)
def test_ctrl_c_does_not_wait_for_the_end(call):
    # Ten times the work of a short call: if Ctrl-C waited for the end, it would take ten times as long.
    script = (
        "import leaklab, numpy, os, signal, threading, time\n"
        "network = leaklab.Network('1x16x16-64C3-64C3-64C3-10o', seed=1)\n"
        "spikes = numpy.random.default_rng(1).integers(-1, 2, (200, 400, 1, 16, 16)).astype(numpy.float32)\n"
        "begun = time.monotonic()\n"
        f"{call.replace('spikes', 'spikes[:, :40]').replace('* 400', '* 40')}\n"
        "short = time.monotonic() - begun\n"
        "threading.Timer(short, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "begun = time.monotonic()\n"
        "try:\n"
        f"    {call}\n"
        "    print('finished')\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted after', (time.monotonic() - begun) / short)\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert answer.startswith("interrupted after"), answer
    assert float(answer.split()[-1]) < 5, answer


def test_ctrl_c_stops_encode_and_theory():
    script = (
        "import leaklab, numpy, os, signal, threading, time\n"
        "images = numpy.zeros((3000, 1, 32, 32), numpy.uint8)\n"
        "drives = numpy.linspace(0, 1, 30000)\n"
        "calls = [lambda: leaklab.encode(images, 100, 1), lambda: leaklab.theory.rate(drives, 0.1, 'eif')]\n"
        "for call in calls:\n"
        "    begun = time.monotonic()\n"
        "    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    try:\n"
        "        call()\n"
        "        time.sleep(1)\n"
        "    except KeyboardInterrupt:\n"
        "        print(time.monotonic() - begun)\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert len(answer.split()) == 2 and all(float(seconds) < 10 for seconds in answer.split()), answer


def test_threads_may_share_a_network():
    network = leaklab.Network("1x16x16-16C3-16C3-10o", seed=1)
    spikes = np.random.default_rng(1).integers(-1, 2, (60, 60, 1, 16, 16)).astype(np.float32)
    faults, running = [], threading.Event()

    def calibrate():
        running.set()
        try:
            network.calibrate(spikes, 0.1, threads=1)
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=calibrate)
    thread.start()
    running.wait()
    uses = 0
    while thread.is_alive() or uses == 0:
        network.forward(spikes[:2, :1], threads=1)
        network.set_weights({"fc1": np.zeros((10, 16 * 256))})
        assert network.tau == 100 and network == network and network.weights["fc1"].shape == (10, 16 * 256)
        uses += 1
    thread.join()
    assert not faults and uses > 0


@pytest.mark.parametrize("layer", ["conv1", "fc1"])
def test_weights_that_are_set_during_a_calibration_are_not_lost(layer):
    network = leaklab.Network("1x16x16-16C3-16C3-10o", seed=1)
    spikes = np.random.default_rng(1).integers(-1, 2, (60, 60, 1, 16, 16)).astype(np.float32)
    thread = threading.Thread(target=lambda: network.calibrate(spikes, 0.1, threads=1))
    thread.start()
    time.sleep(0.1)
    values = np.random.default_rng(2).normal(size=network.weights[layer].shape).astype(np.float32)
    network.set_weights({layer: values})
    assert thread.is_alive(), "the calibration was too short to be disturbed"
    thread.join()
    # Calibration scales hidden layers and leaves the output layer as it is.
    scale = network.weights[layer] / values
    assert np.ptp(scale) < 1e-5 * scale.max() and (layer == "conv1" or np.all(scale == 1))


def test_folders_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    network = leaklab.Network(NOTATION)
    with pytest.raises(ValueError, match="folder is empty; the path of a folder is expected"):
        network.save("")
    with pytest.raises(ValueError, match="out is empty; the path of a folder is expected"):
        leaklab.compare(["run"], "")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="out is file, which is not a folder; choose another"):
        leaklab.train(SMALL, "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_arguments_without_effect_are_refused(tmp_path):
    with pytest.raises(ValueError, match="if_r is for IF nodes .* and this network has none"):
        leaklab.Network("1x8x8-4C3-10o", tau=30).to_nir(tmp_path / "a.nir", if_r=2.0)
    leaklab.Network("1x8x8-4C3-10o", tau=float("inf")).to_nir(tmp_path / "b.nir", if_r=2.0)
    for argument in ({"time_steps": 100}, {"downsample": 1}):
        with pytest.raises(ValueError, match="is for recordings, and data set digits has images"):
            leaklab.load_dataset("digits", **argument)


def test_mappings_are_accepted(tmp_path):
    network = leaklab.Network(NOTATION, layer_tau=types.MappingProxyType({"conv1": 5}))
    assert network == leaklab.Network(NOTATION, layer_tau={"conv1": 5})
    assert network.with_leak(layer_tau=collections.UserDict({"conv1": 7})).layer_tau == {"conv1": 7.0}
    network.set_weights(collections.UserDict(conv1=np.ones((4, 1, 3, 3))))
    assert network.weights["conv1"].min() == 1
    with pytest.raises(TypeError):
        network.set_weights([1])
    settings = types.MappingProxyType(SMALL | {"epochs": 1, "train_limit": 64})
    assert leaklab.train(settings, tmp_path / "run")["outcome"] == "finished"


def test_gradients_and_layers_can_be_pickled():
    network = leaklab.Network(NOTATION)
    gradients = network.gradients(leaklab.encode(IMAGES, 6, 1), [0, 1, 2])
    again = pickle.loads(pickle.dumps(gradients))
    assert again.loss == gradients.loss and np.array_equal(again.prediction, gradients.prediction)
    assert all(np.array_equal(again.weights[name], values) for name, values in gradients.weights.items())
    assert repr(pickle.loads(pickle.dumps(network.layers))) == repr(network.layers)


def test_an_analysis_of_several_tables_returns_them(run):
    spectrum = leaklab.analyse(run, "spectrum", images=10)
    assert "input_spectrum" in spectrum and all(isinstance(table, dict) for table in spectrum.values())
    assert set(leaklab.analyse(run, "example")) >= {"raster", "membrane", "example_image"}
