"""Recordings of event cameras from Python."""

import numpy as np
import pytest

import leaklab


def lists(count=20):
    """Recordings of a dot that moves right (class 0) or down (class 1) on a sensor of 8x6 pixels."""
    columns = {"t": [], "x": [], "y": [], "p": [], "offsets": [0], "labels": []}
    rng = np.random.default_rng(3)
    for i in range(count):
        start = rng.integers(0, 1000)
        for step in range(30):
            along, across = step % 6, rng.integers(0, 6)
            columns["t"].append(start + 100 * step)
            columns["x"].append(along if i % 2 == 0 else across)
            columns["y"].append(across if i % 2 == 0 else along)
            columns["p"].append(step % 2)
        columns["offsets"].append(len(columns["t"]))
        columns["labels"].append(i % 2)
    return columns


def save(path, **change):
    arrays = {
        f"{part}_{name}": np.array(values) for part in ("train", "test") for name, values in lists().items()
    }
    np.savez(path, sensor=[6, 8], class_names=["right", "down"], **(arrays | change))
    return path


def test_lists_are_cut_into_steps(tmp_path):
    data = leaklab.load_dataset("events", data_dir=save(tmp_path / "dots.npz"), time_steps=30, step_us=100)
    assert data.shape == [2, 6, 8] and data.class_names == ["right", "down"]
    spikes = data.recordings([0, 3], train=True)
    expected = np.zeros((30, 2, 2, 6, 8), np.uint8)
    given = lists()
    for place, index in enumerate([0, 3]):
        for event in range(30 * index, 30 * index + 30):
            step = (given["t"][event] - given["t"][30 * index]) // 100
            expected[step, place, given["p"][event], given["y"][event], given["x"][event]] = 1
    assert np.array_equal(spikes, expected)
    halved = leaklab.load_dataset("events", data_dir=tmp_path / "dots.npz", time_steps=1, downsample=2)
    whole = leaklab.load_dataset("events", data_dir=tmp_path / "dots.npz", time_steps=1).recordings()
    sums = whole.reshape(1, 20, 2, 3, 2, 4, 2).sum(axis=(4, 6))
    assert np.array_equal(halved.recordings(), sums > 0)
    with pytest.raises(leaklab.LeakLabError, match="has recordings, not images"):
        data.train_images


def test_dense_recordings_are_the_same(tmp_path):
    data = leaklab.load_dataset("events", data_dir=save(tmp_path / "dots.npz"), time_steps=30, step_us=100)
    frames = {
        f"{part}_events": data.recordings(train=part == "train").transpose(1, 0, 2, 3, 4)
        for part in ("train", "test")
    }
    labels = {"train_labels": data.train_labels, "test_labels": data.test_labels}
    np.savez(tmp_path / "dense.npz", class_names=data.class_names, **frames, **labels)
    dense = leaklab.load_dataset("events", data_dir=tmp_path / "dense.npz", time_steps=30)
    assert dense.digest == data.digest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"train_x": np.full(600, 8)},
            r"bad.npz, offset \d+: array 'train_x': element 0 is not one of 0 to 7",
        ),
        ({"train_t": np.arange(600)[::-1]}, r"array 'train_t': element 1 is 598 us, before"),
        ({"train_p": np.full(600, 2)}, "not 0, 1 or -1"),
        (
            {"train_offsets": np.array([0, *range(30, 600, 30), 2**31])},
            "element 20 must be at least 570 and at most 600",
        ),
        ({"test_labels": np.zeros(3, int)}, "one label for each of 20 recordings"),
    ],
)
def test_errors_have_an_offset(tmp_path, change, message):
    with pytest.raises(leaklab.LeakLabError, match=message):
        leaklab.load_dataset("events", data_dir=save(tmp_path / "bad.npz", **change))


def test_a_run_of_own_recordings(tmp_path):
    save(tmp_path / "dots.npz")
    settings = {"dataset": "events:dots", "data_dir": tmp_path, "network": "2x6x8-8C3-2P-16FC-2o", "tau": 20,
                "time_steps": 30, "epochs": 3, "batch": 4, "augment": {"crop": 1, "flip": False, "shift": 2},
                "noise": ["background/channel"]}
    result = leaklab.train(settings, tmp_path / "run")
    assert result["outcome"] == "finished"
    assert leaklab.evaluate(tmp_path / "run")["images"] == 20
    assert (
        "background/channel/3"
        == leaklab.evaluate(tmp_path / "run", noise="background", severity=3)["stimulus"]
    )
    with pytest.raises(leaklab.LeakLabError, match="acts on what is encoded"):
        leaklab.evaluate(tmp_path / "run", noise="gaussian", severity=3)
    assert set(leaklab.analyse(tmp_path / "run", "all")) >= {"robustness", "example_image"}
    data = leaklab.load_dataset("events:dots", data_dir=tmp_path, time_steps=30)
    net = leaklab.Network.load(tmp_path / "run")
    spikes = leaklab.evaluate(net, data.recordings(), data.test_labels)
    assert spikes["correct"] == leaklab.evaluate(tmp_path / "run")["correct"]
    assert leaklab.evaluate(tmp_path / "run", data) == leaklab.evaluate(tmp_path / "run")


def test_a_run_refuses_recordings_that_are_divided_otherwise(tmp_path):
    run, digits = tmp_path / "run", {"dataset": "digits-events", "network": "2x16x16-4C3-2P-10o", "tau": 20}
    leaklab.train(digits | {"time_steps": 60, "epochs": 1, "train_limit": 20, "test_limit": 10}, run)
    load = lambda **other: leaklab.load_dataset("digits-events", test_limit=10, **other)
    assert leaklab.evaluate(run, load(time_steps=60)) == leaklab.evaluate(run)
    other, net = load(), leaklab.Network.load(run)
    right = r'have 100 steps; load them with load_dataset\("digits-events", time_steps=60\)'
    for call, words in [
        (lambda: leaklab.evaluate(run, other), right),
        (lambda: leaklab.evaluate(run, load(time_steps=60, step_us=2000)), "have 60 steps of 2000 us"),
        (lambda: leaklab.evaluate(run, other.recordings(), other.test_labels), "x has 100 steps, .* with 60"),
        (lambda: leaklab.evaluate(run, leaklab.load_dataset("digits")), "on recordings, and .* has images"),
        (lambda: leaklab.evaluate(net, other, time_steps=60), "time_steps is 60, and .* have 100 steps"),
        (lambda: leaklab.evaluate(net, other, encoder="signed"), "encoder is for images"),
        (lambda: leaklab.evaluate(net, other.recordings(), other.test_labels, seed=3), "seed is for images"),
        (lambda: other.recordings([-1]), "no recording -1"),
    ]:
        with pytest.raises(leaklab.LeakLabError, match=words):
            call()
    # A network without a run accepts any number of steps.
    assert leaklab.evaluate(net, other)["images"] == 10


def test_digits_recorded_by_a_camera():
    data = leaklab.load_dataset("digits-events", time_steps=60, test_limit=30)
    spikes = data.recordings()
    assert spikes.shape == (60, 30, 2, 16, 16)
    # Every recording has both polarities and spikes in all three saccades.
    assert spikes.sum(axis=(0, 3, 4)).min() > 20
    assert spikes.reshape(3, 20, 30, -1).sum(axis=(1, 3)).min() > 20
