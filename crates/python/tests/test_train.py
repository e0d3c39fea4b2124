"""Training, evaluation and analyses from Python."""

import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import SMALL

import leaklab


def weights(folder):
    return (pathlib.Path(folder) / "checkpoint.safetensors").read_bytes()


def test_events_and_summary(tmp_path):
    events = []
    result = leaklab.train(SMALL, tmp_path / "run", callback=events.append)
    assert result["outcome"] == "finished" and result["epochs"] == 2
    assert result["last"]["test_accuracy"] > 0.3
    names = [event["event"] for event in events]
    assert names[0] == "started" and names.count("epoch") == 2
    assert names.count("batch") == 2 * events[0]["batches"]
    assert (
        [event for event in events if event["event"] == "epoch"][-1]["test_accuracy"]
        == result["last"]["test_accuracy"]
    )


def test_a_dict_and_the_program_train_the_same_bits(tmp_path, program, run):
    arguments = [f"--set={key}={value}" for key, value in SMALL.items()]
    subprocess.run([program, "train", "--quiet", *arguments, "--out", tmp_path / "cli"], check=True)
    assert weights(tmp_path / "cli") == weights(run)
    leaklab.train(run / "run.toml", tmp_path / "file")
    assert weights(tmp_path / "file") == weights(run)


def test_stopped_and_resumed_gives_the_same_bits(tmp_path, run):
    out = tmp_path / "run"
    stopped = leaklab.train(
        SMALL, out, callback=lambda event: not (event["event"] == "batch" and event["batch"] == 2)
    )
    assert stopped["outcome"] == "interrupted" and stopped["epochs"] == 0
    assert leaklab.resume(out)["outcome"] == "finished"
    assert weights(out) == weights(run)


def test_an_exception_in_the_callback_comes_back(tmp_path):
    def callback(event):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        leaklab.train(SMALL, tmp_path / "run", callback=callback)


def test_ctrl_c_stops_with_a_checkpoint(tmp_path):
    script = (
        "import leaklab, sys\n"
        f"leaklab.train({SMALL | {'epochs': 100_000}!r}, sys.argv[1], "
        "callback=lambda e: print(e['event'], flush=True) if e['event'] == 'epoch' else None)\n"
    )
    for extra in (script, script.split(", callback")[0] + ")\n"):
        out = tmp_path / str(len(extra))
        process = subprocess.Popen(
            [sys.executable, "-c", extra, out], stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
        deadline = time.time() + 60
        while not (out / "checkpoint.safetensors").exists() and time.time() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1].decode()
        assert error.rstrip().endswith("KeyboardInterrupt"), error
        assert (out / "checkpoint.safetensors").exists()


def one_training(folder, seed):
    """The work of one joblib worker."""
    leaklab.train(SMALL | {"seed": seed}, folder, threads=2)
    return weights(folder)


def test_four_trainings_in_parallel_give_the_same_bits(tmp_path):
    joblib = pytest.importorskip("joblib")
    seeds = [1, 2, 3, 4]
    together = joblib.Parallel(n_jobs=4)(
        joblib.delayed(one_training)(tmp_path / f"together-{seed}", seed) for seed in seeds
    )
    threads = joblib.Parallel(n_jobs=4, prefer="threads")(
        joblib.delayed(one_training)(tmp_path / f"threads-{seed}", seed) for seed in seeds
    )
    separate = [one_training(tmp_path / f"separate-{seed}", seed) for seed in seeds]
    assert together == separate and threads == separate and len(set(separate)) == 4


def test_evaluation_is_what_training_measured_and_what_forward_gives(run):
    result = leaklab.evaluate(run)
    assert result["images"] == 100 and result["stimulus"] == "clean"
    assert result["split"] == "test" and result["level"] is None
    assert leaklab.evaluate(run, train=True)["split"] == "train"
    assert result["accuracy_low"] < result["accuracy"] < result["accuracy_high"]
    data = leaklab.load_dataset("digits", test_limit=100)
    x = leaklab.encode(data.test_images, SMALL["time_steps"], SMALL["seed"], samples=data.test_samples)
    out = leaklab.Network.load(run).forward(x)
    assert (out.prediction.argmax(axis=1) == data.test_labels).sum() == result["correct"]
    assert out.synops.sum() / 100 == pytest.approx(result["synops"])
    noisy = leaklab.evaluate(run, noise="gaussian", scenario="channel", severity=8, limit=50)
    assert noisy["images"] == 50 and noisy["stimulus"] == "gaussian/channel/8"
    assert noisy == leaklab.evaluate(run, noise="gaussian/channel", severity=8, limit=50)
    assert noisy["accuracy"] < result["accuracy"] and noisy["level"] > 0
    own = leaklab.evaluate(run, data.test_images, data.test_labels, samples=data.test_samples)
    assert own["images"] == 100 and own["split"] is None
    assert own | {"split": result["split"]} == result
    # Without sample numbers, images have those of a whole test set.
    whole = leaklab.load_dataset("digits")
    assert whole.test_samples[7] == 2**31 + 7
    own = leaklab.evaluate(run, whole.test_images, whole.test_labels)
    assert own["sse"] == leaklab.evaluate(run, whole)["sse"]
    with pytest.raises(leaklab.LeakLabError, match="samples is for arrays"):
        leaklab.evaluate(run, whole, samples=whole.test_samples)
    with pytest.raises(leaklab.LeakLabError, match="samples is for images, and spikes were given"):
        leaklab.evaluate(run, x, data.test_labels, samples=data.test_samples)


def test_trained_weights_run_with_another_leak(run):
    plain = leaklab.evaluate(run)
    same = leaklab.evaluate(run, tau=SMALL["tau"])
    other = leaklab.evaluate(run, tau=3.0, readout_tau=float("inf"))
    assert same == plain and other["sse"] != plain["sse"]
    assert plain["tau"] == plain["readout_tau"] == plain["trained_tau"] == other["trained_tau"] == 30.0
    assert (other["tau"], other["readout_tau"], other["layer_tau"]) == (3.0, float("inf"), {})
    assert plain["leak"] == plain["trained_leak"] == "30" and "inf" in other["leak"]
    assert leaklab.evaluate(run, layer_tau={"conv1": 5})["layer_tau"] == {"conv1": 5.0}
    net = leaklab.Network.load(run).with_leak(3.0, readout_tau=float("inf"))
    data = leaklab.load_dataset("digits", test_limit=100)
    x = leaklab.encode(data.test_images, SMALL["time_steps"], SMALL["seed"], samples=data.test_samples)
    assert (net.forward(x).prediction.argmax(axis=1) == data.test_labels).sum() == other["correct"]
    with pytest.raises(leaklab.LeakLabError, match="conv1"):
        leaklab.evaluate(run, layer_tau={"fc9": 3.0})


def test_analyses_are_columns(run):
    table = leaklab.analyse(run, "activity", images=50)
    assert list(table["layer"]) == ["conv1", "pool1", "fc1"] or "conv1" in list(table["layer"])
    assert table["spike_rate"].dtype == np.float64 and len(table["spike_rate"]) == len(table["layer"])
    spectrum = leaklab.analyse(run, "critical_frequency_summary", images=50)
    assert 0 < spectrum["mean"][0] < 0.5
    found = leaklab.tables(run)
    assert {"activity", "critical_frequency_summary", "input_spectrum"} <= set(found)
    assert np.array_equal(found["activity"]["spike_rate"], table["spike_rate"], equal_nan=True)
    assert "input_spectrum" in leaklab.analyse(run, "spectrum", images=50)
    curves = leaklab.analyse(run, "robustness", images=20, noise=["deletion/channel"])
    assert "deletion" in set(curves["noise"]) and set(curves["images"]) == {20}


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda run: leaklab.train({"dataset": "digits"}), "tau is missing"),
        (lambda run: leaklab.train({"dataset": "digits", "tau": 30, "epoch": 3}), "`epochs`"),
        (lambda run: leaklab.train({"dataset": "digits", "tau": object()}), "tau is a object"),
        (lambda run: leaklab.train({"dataset": "digits", "tau": 30, "network": "8x8-10o"}), "network"),
        (lambda run: leaklab.train(3), "a dict of settings"),
        (lambda run: leaklab.train("absent.toml"), "absent.toml"),
        (lambda run: leaklab.train(SMALL, run), "there is a run here already"),
        (lambda run: leaklab.resume("/nowhere"), "not a run folder"),
        (lambda run: leaklab.evaluate("/nowhere"), "not a run folder"),
        (lambda run: leaklab.evaluate(run, noise="pink"), "gaussian"),
        (lambda run: leaklab.analyse(run, "colour"), "robustness"),
        (lambda run: leaklab.analyse(run, "robustness", noise=["pink/pixel"]), "gaussian"),
        (lambda run: leaklab.tables("/nowhere"), "not a run folder.* leaklab.train makes one"),
        (lambda run: leaklab.compare("/nowhere"), "not a run folder"),
        (lambda run: leaklab.compare(["/nowhere", run], "out"), "not a run folder"),
        (lambda run: leaklab.advise("/nowhere", "gaussian/pixel"), "not the folder of a study"),
        (lambda run: leaklab.advise(run, "gaussian/pixel"), "not the folder of a study"),
        (lambda run: leaklab.advise(run, "gaussian"), "such as gaussian/pixel"),
        (lambda run: leaklab.advise(run, "gaussian/pixel", severity=9), "severity is 9; .* from 1 to 8"),
        (lambda run: leaklab.advise(run, "gaussian/pixel", synops_budget=-1), "synops_budget is -1"),
        (lambda run: leaklab.train({"dataset": np.zeros((3, 4)), "tau": 30}), "dataset is of type ndarray"),
        (lambda run: leaklab.train({1: 2}), "the name of a setting must be a string, and 1 is not"),
        (
            lambda run: leaklab.train(SMALL | {"seed": 2**70}),
            r"seed is 1180591620717411303424; .* to 2\^63-1",
        ),
        (lambda run: leaklab.train(SMALL, "new", callback=3), "callback is of type int"),
        (lambda run: leaklab.train(SMALL, "new", threads=-1), "threads is -1; a whole number from 1 to 1024"),
        (lambda run: leaklab.evaluate(run, limit=-1), "limit is -1; a whole number of 1 or more"),
        (lambda run: leaklab.evaluate(run, limit=0), "limit is 0; a whole number of 1 or more"),
        (lambda run: leaklab.evaluate(run, noise="gaussian", severity=-1), "severity is -1; .* from 0 to 8"),
        (
            lambda run: leaklab.evaluate(run, noise="gaussian/pixel", scenario="channel", severity=1),
            "contradict",
        ),
        (lambda run: leaklab.evaluate(run, np.zeros((2, 1, 4, 4)), [0, 1]), "for images of 1x8x8, and these"),
        (lambda run: leaklab.evaluate(run, np.zeros((0, 1, 8, 8)), []), "x has no samples"),
        (lambda run: leaklab.evaluate(run, "digits", [0]), "x cannot be read as an array of numbers"),
        (lambda run: leaklab.evaluate(run, np.zeros((9, 2, 1, 8, 8)), [0, 1]), "x has 9 steps, .* with 10"),
        (lambda run: leaklab.analyse(run, "activity", images=-1), "images is -1; a whole number"),
    ],
)
def test_refusals_are_sentences(call, words, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(leaklab.LeakLabError, match=words):
        call(run)


def test_numpy_values_are_settings(tmp_path):
    config = SMALL | {
        "tau": np.float64("inf"),
        "epochs": np.int64(1),
        "schedule": {"after": np.array([1]), "times": 0.5},
    }
    assert leaklab.train(config, tmp_path / "run")["epochs"] == 1
    assert leaklab.Network.load(tmp_path / "run").tau == float("inf")
