"""Uses every function of the package: for type checkers (mypy --strict, pyright), and a test runs it."""

import pathlib
import sys
from typing import Any

import numpy as np

import leaklab
from leaklab import Columns, Noise, Scenario


def own_arrays() -> leaklab.Dataset:
    rng = np.random.default_rng(1)
    labels = np.arange(100) % 2
    images = rng.normal(size=(100, 6)) + 4.0 * labels[:, None] * (np.arange(6) < 3)
    return leaklab.Dataset.from_arrays(images, labels, class_names=["low", "high"], name="example")


def main(work: pathlib.Path) -> None:
    data = own_arrays()
    data.save(work / "example.npz")
    shape: list[int] = data.shape
    settings: dict[str, Any] = {
        "dataset": data,
        "network": f"{'x'.join(map(str, shape))}-16FC-2o",
        "tau": 20,
        "time_steps": 20,
        "epochs": 2,
        "presentations": 1,
        "noise": ["deletion/channel"],
    }
    start = leaklab.Network(settings["network"], tau=20.0, seed=3)
    run = work / "run"
    result: dict[str, Any] = leaklab.train(
        settings, run, initial=start, exist_ok=True, callback=lambda event: None
    )
    leaklab.train(settings, run, initial=start, exist_ok=True)
    leaklab.resume(run)

    net = leaklab.Network.load(run)
    noise: Noise = "background"
    scenario: Scenario = "channel"
    clean = leaklab.evaluate(net, data, time_steps=20)
    noisy = leaklab.evaluate(
        run, data.test_images, data.test_labels, noise=noise, scenario=scenario, level=0.1
    )
    assert noisy["images"] == clean["images"] == len(data.test_labels), result

    x = leaklab.encode(data.test_images, 20, 1, samples=data.test_samples)
    out = net.forward(x, membranes=["fc1"])
    potentials = out.membranes["fc1"]
    assert potentials.shape == (20, len(data.test_labels), 16) and out.signal.shape[0] == 20
    gradients = net.gradients(x, data.test_labels)
    net.set_weights({name: w - 0.1 * gradients.weights[name] for name, w in net.weights.items()})
    net.calibrate(x, 0.1)
    net.with_leak(tau=float("inf")).save(work / "model")

    tables: dict[str, Columns] = leaklab.analyse(run, "all")
    robustness: Columns = leaklab.analyse(run, "robustness")
    assert np.array_equal(robustness["accuracy"], tables["robustness"]["accuracy"])
    assert leaklab.tables(run).keys() >= tables.keys()

    study = leaklab.study(settings | {"tau": [5, float("inf")], "seeds": [1, 2], "epochs": 4}, work / "study")
    page: pathlib.Path = leaklab.report(study["folder"], work / "page.html")
    claims = leaklab.compare(study["folder"])["claims"]
    assert study["outcome"] == "finished" and page.exists() and len(claims["claim"]) > 0
    why: dict[str, Columns] = leaklab.analyse(study["folder"], "mechanism", noise="deletion/channel")
    advice: dict[str, Any] = leaklab.advise(work / "study", "deletion/channel", severity=4, synops_budget=1e6)
    assert len(why["why_split"]["tau"]) > 0 and advice["stimulus"] == "deletion/channel/4"

    events = leaklab.load_dataset("digits-events", time_steps=30, test_limit=10)
    spikes = events.recordings([0, 1])
    assert spikes.dtype == np.uint8 and spikes.shape[:2] == (30, 2)
    rate = leaklab.theory.rate(0.8, 0.1)
    assert rate > 0


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
