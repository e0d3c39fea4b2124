"""Whole studies from Python: stopping and continuing, where robustness comes from, and advice."""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import SMALL

import leaklab

STUDY = SMALL | {"tau": [30, float("inf")], "seeds": [1, 2], "noise": ["gaussian/pixel"], "mechanism": False}
del STUDY["seed"]


def weights(study):
    """The trained weights of each run."""
    runs = sorted((pathlib.Path(study) / "runs").iterdir())
    return {run.name: (run / "checkpoint.safetensors").read_bytes() for run in runs}


@pytest.fixture
def out(tmp_path, study):
    """The folder of a new study that already has the theory tables, which never change and take seconds."""
    shutil.copytree(study / "theory", tmp_path / "study/theory")
    return tmp_path / "study"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A finished study whose networks have learned."""
    folder = tmp_path_factory.mktemp("studies") / "whole"
    assert leaklab.study(STUDY, folder)["outcome"] == "finished"
    return folder


def test_ctrl_c_stops_a_study_while_its_runs_train(out):
    # The runs take hours. If Ctrl-C waited for them, this test would time out.
    settings = STUDY | {"epochs": 200_000}
    script = (
        "import leaklab, sys\n"
        "inf = float('inf')\n"
        f"leaklab.study({settings!r}, sys.argv[1], "
        "callback=lambda e: print('epoch', flush=True) if e['event'] == 'epoch' else None)\n"
    )
    command, pipe = [sys.executable, "-c", script, out], subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe)
    try:
        assert process.stdout.readline().strip() == b"epoch"
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        error = process.communicate(timeout=300)[1].decode()
    finally:
        process.kill()
    assert error.rstrip().endswith("KeyboardInterrupt"), error
    assert time.monotonic() - begun < 240
    checkpoints = list(out.glob("runs/*/checkpoint.safetensors"))
    assert checkpoints and (out / "report.html").exists()
    # The same call continues the study.
    events = []
    stop = lambda event: events.append(event) or event["event"] != "started"
    assert leaklab.study(settings, out, callback=stop, threads=1)["outcome"] == "interrupted"
    assert events[-1]["event"] == "started" and events[-1]["epoch"] >= 1


def test_ctrl_c_does_not_wait_for_the_plan(tmp_path):
    # For such a long study, the plan measures the speed for eight seconds.
    script = (
        "import leaklab, os, signal, sys, threading, time\n"
        "inf = float('inf')\n"
        "threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "begun = time.monotonic()\n"
        "try:\n"
        f"    leaklab.study({STUDY | {'epochs': 1_000_000}!r}, sys.argv[1])\n"
        "except KeyboardInterrupt:\n"
        "    print(time.monotonic() - begun)\n"
    )
    command = [sys.executable, "-c", script, tmp_path / "study"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert float(done.stdout) < 5, done
    assert not (tmp_path / "study/study.toml").exists()


@pytest.mark.parametrize("no", [False, np.bool_(False)])
def test_false_stops_a_study_which_the_same_call_continues(out, study, no):
    stopped = leaklab.study(STUDY, out, callback=lambda event: no if event["event"] == "epoch" else None)
    assert stopped["outcome"] == "interrupted" and len(stopped["runs"]) == 4
    assert 1 <= sum(run["epochs"] for run in stopped["runs"]) < 4 * STUDY["epochs"]
    assert pathlib.Path(stopped["report"]).exists()
    finished = leaklab.study(STUDY, out, callback=lambda event: 0)
    assert finished["outcome"] == "finished"
    assert weights(out) == weights(study)


def test_an_exception_in_the_callback_stops_a_study(out):
    calls = []

    def callback(event):
        calls.append(event)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        leaklab.study(STUDY, out, callback=callback)
    assert len(calls) == 1


def test_a_callback_is_called_by_one_thread_at_a_time(out):
    inside, most, names = [], [], set()

    def callback(event):
        inside.append(event)
        most.append(len(inside))
        time.sleep(0.002)  # the GIL is released
        names.add(threading.get_ident())
        inside.pop()

    leaklab.study(STUDY, out, callback=callback, threads=2)
    assert max(most) == 1 and len(names) > 1


def test_warnings_name_the_runs(out):
    with pytest.warns(UserWarning, match="tau-30_seed-1.*gradient of every weight is exactly zero"):
        leaklab.study(STUDY | {"v_th": 1e6, "epochs": 1, "tau": 30}, out)


def test_data_of_a_refused_call_do_not_stay(out):
    def settings(shift, network):
        labels = np.arange(60) % 2
        images = np.random.default_rng(1).normal(size=(60, 4)) + shift * labels[:, None]
        made = leaklab.Dataset.from_arrays(images, labels, name="mine")
        return STUDY | {"dataset": made, "network": network, "train_limit": 40, "test_limit": 10, "epochs": 1}

    with pytest.raises(leaklab.LeakLabError, match="1x1x4"):
        leaklab.study(settings(1.0, "1x1x5-8FC-2o"), out)
    assert leaklab.study(settings(2.0, "1x1x4-8FC-2o"), out)["outcome"] == "finished"
    with pytest.raises(leaklab.LeakLabError, match="the existing study has other data"):
        leaklab.study(settings(1.0, "1x1x4-8FC-2o"), out)


def test_a_study_is_explained(study):
    assert "why" not in leaklab.tables(study)
    tables = leaklab.analyse(study, "mechanism", images=40)
    assert {"why", "why_split", "why_price", "advice"} <= set(tables)
    assert set(tables["why_split"]["tau"]) == {30.0} and len(tables["why"]["sentence"]) > 0
    stored = leaklab.tables(study)
    assert np.array_equal(stored["why"]["sentence"], tables["why"]["sentence"])
    with pytest.raises(leaklab.LeakLabError, match="mechanism only; give the folder of one of its runs"):
        leaklab.analyse(study, "robustness")
    # The best epochs have separate tables.
    files = {path: path.read_bytes() for path in pathlib.Path(study).glob("compare/why*.json")}
    best = leaklab.analyse(study, "mechanism", images=20, best=True)
    assert all(path.read_bytes() == content for path, content in files.items())
    assert (pathlib.Path(study) / "compare/best/why_split.json").exists() and set(best) == set(tables)


def test_advice_is_that_of_the_program(study, program):
    found = leaklab.advise(study, noise="gaussian/pixel", severity=5, synops_budget=1e6)
    command = [program, "advise", study, "--noise", "gaussian/pixel", "--severity", "5", "--json"]
    done = subprocess.run([*command, "--synops-budget", "1e6"], check=True, capture_output=True, text=True)
    theirs = json.loads(done.stdout)
    taus = {name: float(theirs[name]) for name in ("trained", "hidden")}
    assert found == theirs | taus
    assert found["stimulus"] == "gaussian/pixel/5" and found["budget"] == 1e6 and found["seeds"] == 2
    assert leaklab.advise(study, "gaussian/pixel")["stimulus"].startswith("gaussian/pixel/")
    with pytest.raises(leaklab.LeakLabError, match="at most 1 synaptic operations .* the cheapest needs"):
        leaklab.advise(study, "gaussian/pixel", severity=5, synops_budget=1)
    with pytest.raises(leaklab.LeakLabError, match="tau 30, tau inf"):
        leaklab.advise(study, "gaussian/pixel", baseline="tau 7")


def test_time_constants_are_numbers(study):
    conditions = leaklab.tables(study)["conditions"]
    assert conditions["tau"].dtype == np.float64 and sorted(conditions["tau"]) == [30.0, np.inf]
    assert set(conditions["condition"]) == {"tau 30", "tau inf"}


def test_a_comparison_keeps_the_studys_baseline(out):
    leaklab.study(STUDY | {"baseline": "tau 30", "epochs": 1, "seeds": [1]}, out)
    before = leaklab.tables(out)["conditions"]
    assert dict(zip(before["condition"], before["role"]))["tau 30"] == "baseline"
    after = leaklab.compare(out)["conditions"]
    assert np.array_equal(before["role"], after["role"])


def test_an_edited_study_is_refused(study, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(study, copy)
    settings = (copy / "study.toml").read_text()
    steps = f"time_steps = {STUDY['time_steps']}\n"
    assert steps in settings
    (copy / "study.toml").write_text(settings.replace(steps, "time_steps = 25\n"))
    expected = f"time_steps = {STUDY['time_steps']}, and the study now has 25"
    for use in [leaklab.report, lambda folder: leaklab.advise(folder, "gaussian/pixel")]:
        with pytest.raises(leaklab.LeakLabError, match=expected):
            use(copy)
