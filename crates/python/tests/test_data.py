"""Data sets and the encoder."""

import pickle

import numpy as np
import pytest

import leaklab


def test_digits():
    data = leaklab.load_dataset("digits")
    assert data.train_images.shape == (1442, 1, 8, 8) and data.train_images.dtype == np.uint8
    assert data.test_images.shape == (355, 1, 8, 8) and set(data.test_labels) == set(range(10))
    part = leaklab.load_dataset("digits", train_limit=30, test_limit=20)
    assert len(part.train_labels) == 30 and np.bincount(part.train_labels).tolist() == [3] * 10
    assert set(part.test_samples) <= set(data.test_samples)
    for arguments, words in [
        ({"name": "mnits"}, "mnist"),
        ({"train_limit": -1}, "train_limit is -1; a whole number of 1 or more"),
        ({"test_limit": 0}, "test_limit is 0; a whole number of 1 or more"),
        ({"time_steps": 50}, "time_steps is for recordings, and data set digits has images"),
        ({"step_us": 50}, "step_us is for recordings"),
        ({"downsample": 2}, "downsample is for recordings"),
    ]:
        with pytest.raises(leaklab.LeakLabError, match=words):
            leaklab.load_dataset(**({"name": "digits"} | arguments))


def test_a_data_set_can_be_pickled():
    part = leaklab.load_dataset("digits", train_limit=30, test_limit=20)
    copy = pickle.loads(pickle.dumps(part))
    assert copy.digest == part.digest and (copy.name, copy.class_names) == (part.name, part.class_names)
    assert np.array_equal(copy.test_samples, part.test_samples)
    with pytest.raises(leaklab.LeakLabError, match="pickle the name of data set digits-events"):
        pickle.dumps(leaklab.load_dataset("digits-events", train_limit=10, test_limit=10))


def test_the_encoder_is_a_pure_function():
    data = leaklab.load_dataset("digits", test_limit=20)
    x = leaklab.encode(data.test_images, 30, 7, samples=data.test_samples)
    assert x.shape == (30, 20, 1, 8, 8) and x.dtype == np.float32 and set(np.unique(x)) == {-1, 0, 1}
    one = leaklab.encode(data.test_images[4:5], 30, 7, samples=data.test_samples[4:5])
    assert np.array_equal(one[:, 0], x[:, 4])
    assert not np.array_equal(leaklab.encode(data.test_images, 30, 8, samples=data.test_samples), x)
    assert not np.array_equal(leaklab.encode(data.test_images, 30, 7, samples=data.test_samples, epoch=1), x)
    # Floats are not normalised: the same numbers give the same spikes.
    raw = data.test_images.astype(np.float32)
    centred = raw - raw.mean(axis=(1, 2, 3), keepdims=True)
    scaled = centred / np.abs(centred).max(axis=(1, 2, 3), keepdims=True)
    same = leaklab.encode(scaled, 30, 7, samples=data.test_samples) == x
    assert same.mean() > 0.999  # the mean is rounded differently here


def test_a_pixels_rate_is_its_value():
    values = np.array([-1.0, -0.25, 0.0, 0.5, 1.0], dtype=np.float32).reshape(1, 1, 1, 5)
    mean = leaklab.encode(values, 20_000, 3).mean(axis=0).ravel()
    assert np.abs(mean - values.ravel()).max() < 5 * 0.5 / np.sqrt(20_000)
    assert leaklab.encode(values, 100, 3, encoder="unsigned").min() == 0


def test_noise():
    values = np.zeros((2, 1, 4, 4), dtype=np.float32)
    assert not leaklab.encode(values, 50, 1).any()
    assert not leaklab.encode(values, 50, 1, noise="gaussian", scenario="pixel", severity=0).any()
    noisy = leaklab.encode(values, 500, 1, noise="gaussian", scenario="channel", level=0.5)
    assert abs(noisy.std() - 0.5) < 0.02
    flips = leaklab.encode(values, 500, 1, noise="impulse", scenario="channel", level=0.3)
    assert set(np.unique(flips)) == {-1, 0, 1}


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"noise": "pink", "severity": 1}, "gaussian"),
        ({"noise": "gaussian", "scenario": "air", "severity": 1}, "channel"),
        ({"noise": "gaussian"}, "severity="),
        ({"noise": "gaussian", "severity": 9}, "9"),
        ({"severity": 3}, "without a noise"),
        ({"scenario": "pixel"}, "without a noise"),
        ({"encoder": "morse"}, "unsigned"),
        ({"samples": [1, 2, 3]}, "3 sample numbers for 2 images"),
        ({"time_steps": 0}, "time_steps is 0"),
        ({"images": np.full((1, 1, 2, 2), 1.5)}, "uint8"),
        ({"images": np.zeros((4, 4))}, r"\[N, C, H, W\]"),
        ({"images": np.zeros((1, 0, 4, 4))}, "no pixels"),
        ({"images": "x"}, "array of numbers"),
        ({"images": np.zeros((2, 1, 4, 4), complex)}, "images cannot be read as .* complex128"),
        ({"time_steps": -5}, "time_steps is -5; a whole number from 1 to 65535"),
        ({"seed": -1}, "seed is -1; a whole number of 0 or more"),
        ({"epoch": 2**24}, "epoch is 16777216; a whole number from 0 to 16777215"),
        ({"noise": "gaussian", "severity": -1}, "severity is -1; a whole number from 0 to 8"),
    ],
)
def test_refusals_are_sentences(arguments, words):
    whole = {"images": np.zeros((2, 1, 4, 4)), "time_steps": 5, "seed": 1} | arguments
    with pytest.raises(leaklab.LeakLabError, match=words):
        leaklab.encode(**whole)
