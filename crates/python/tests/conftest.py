"""Shared by all tests: the paths of the repository and the program, and one small trained run."""

import os
import pathlib
import signal

import pytest

import leaklab

# A shell starts background jobs with SIGINT ignored, which the processes of these tests would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
ROOT = pathlib.Path(__file__).resolve().parents[3]
SMALL = {
    "dataset": "digits",
    "network": "1x8x8-8C3-2P-10o",
    "tau": 30,
    "time_steps": 10,
    "epochs": 2,
    "train_limit": 600,
    "test_limit": 100,
    "optimiser": "sgd",
    "learning_rate": 0.5,
    "batch": 64,
    "presentations": 1,
    "seed": 3,
}


@pytest.fixture(scope="session")
def program():
    """The leaklab program, to compare with."""
    path = os.environ.get("LEAKLAB")
    if not path:
        pytest.skip("LEAKLAB is not set to the path of the program; tools/check-python sets it")
    return path


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A small trained run."""
    folder = tmp_path_factory.mktemp("runs") / "small"
    leaklab.train(SMALL, folder, threads=1)
    return folder
