#!/usr/bin/env python3
"""Checks that other tools can read the files of a run: TensorBoard, pandas and safetensors, from PyPI.

Usage: check_run_files.py RUN        (needs: pip install tensorboard pandas safetensors numpy)
"""

import json
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas
from safetensors import safe_open
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def main() -> None:
    run = Path(sys.argv[1])
    settings = tomllib.loads((run / "run.toml").read_text())
    epochs = settings["epochs"]

    metrics = pandas.read_json(run / "metrics.jsonl", lines=True)
    assert list(metrics["epoch"]) == list(range(1, epochs + 1)), metrics["epoch"]
    for column in ["train_accuracy", "train_sse", "test_accuracy", "test_sse", "learning_rate",
                   "spike_rate", "synops", "seconds", "images_per_second"]:
        assert np.isfinite(metrics[column].astype(float)).all(), column
    layers = pandas.json_normalize(metrics["layers"].iloc[-1])
    print(f"pandas: {len(metrics)} epochs, {len(metrics.columns)} columns, {len(layers)} layers in the last")

    events = EventAccumulator(str(run))
    events.Reload()
    tags = events.Tags()["scalars"]
    for tag, column in [("train/accuracy", "train_accuracy"), ("train/sse", "train_sse"),
                        ("test/accuracy", "test_accuracy"), ("test/sse", "test_sse")]:
        points = events.Scalars(tag)
        assert [point.step for point in points] == list(metrics["epoch"]), tag
        assert np.allclose([point.value for point in points], metrics[column], rtol=1e-6), tag
    for layer in layers["name"][layers["spike_rate"].notna()]:
        assert f"spike_rate/{layer}" in tags and f"weighted_input_norm/{layer}" in tags, layer
    print(f"tensorboard: {len(tags)} scalars of {len(metrics)} steps each")

    weighted = layers["name"][layers["kind"] != "pool"]
    for name in ["checkpoint.safetensors", "best.safetensors"]:
        with safe_open(run / name, framework="numpy") as file:
            header = json.loads(file.metadata()["leaklab"])
            weights = {key: file.get_tensor(key) for key in file.keys() if not key.startswith("optimiser.")}
        assert sorted(weights) == sorted(weighted), sorted(weights)
        assert all(w.dtype == np.float32 and np.isfinite(w).all() for w in weights.values())
        assert header["settings"]["network"] == f'"{settings["network"]}"'
        shapes = ", ".join(f"{key} {list(w.shape)}" for key, w in sorted(weights.items()))
        print(f"safetensors: {name}: epoch {header['position']['epoch']}: {shapes}")


if __name__ == "__main__":
    main()
