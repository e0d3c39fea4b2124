#!/usr/bin/env python3
"""Compares the time of `leaklab.train` and `leaklab train` with the same settings, and the checkpoints.

Usage: bench_python_train.py [--leaklab target/release/leaklab] [--rounds 7] [--epochs 10] [--threads N]
Needs the leaklab module (pip install .). Prints a Markdown table of medians and of the ratio of Python to the
program, which is the median of the ratios of all rounds. The time of the program includes its start. That of
Python is the time of the call, without and with a callback for every event. Exits with 1 if a checkpoint
differs.
"""

import argparse
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import leaklab


def processor(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def timed(who, work):
    """Wall time and processor time in seconds."""
    wall, cpu = time.perf_counter(), processor(who)
    work()
    return time.perf_counter() - wall, processor(who) - cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leaklab", default="target/release/leaklab")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    config = {"dataset": "digits", "tau": 30, "seed": 1, "epochs": arguments.epochs}
    threads = ["--threads", str(arguments.threads)] if arguments.threads else []

    def program(out):
        settings = [word for key, value in config.items() for word in ("--set", f"{key}={value}")]
        command = [arguments.leaklab, "train", *settings, "--out", out, "--quiet", *threads]
        subprocess.run(command, check=True)

    def python(out, callback=None):
        leaklab.train(config, out, callback=callback, threads=arguments.threads)

    ways = {
        "`leaklab train`": (resource.RUSAGE_CHILDREN, program),
        "`leaklab.train`": (resource.RUSAGE_SELF, python),
        "`leaklab.train`, with a callback": (
            resource.RUSAGE_SELF,
            lambda out: python(out, lambda event: None),
        ),
    }
    times = {name: [] for name in ways}
    checkpoints = set()
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(arguments.rounds + 1):
            # The order changes from round to round, since the first one in a round may run more slowly.
            names = list(ways)[turn % len(ways):] + list(ways)[:turn % len(ways)]
            for name in names:
                who, way = ways[name]
                out = pathlib.Path(folder, f"{turn}-{list(ways).index(name)}")
                spent = timed(who, lambda: way(str(out)))
                checkpoints.add((out / "checkpoint.safetensors").read_bytes())
                if turn > 0:  # The first round is a warm-up.
                    times[name].append(spent)

    base = times["`leaklab train`"]
    count = arguments.threads or "all"
    print(f"digits, {arguments.epochs} epochs, {count} threads, {arguments.rounds} rounds\n")
    print("| | seconds | ratio | processor seconds | ratio |\n| --- | --- | --- | --- | --- |")
    for name, spent in times.items():
        cells = []
        for kind in (0, 1):
            ratio = statistics.median(own[kind] / other[kind] for own, other in zip(spent, base))
            cells += [f"{statistics.median(own[kind] for own in spent):.3f}", f"{ratio:.3f}"]
        print(f"| {name} | {' | '.join(cells)} |")
    print(f"\nCheckpoints: {'all identical' if len(checkpoints) == 1 else 'NOT all identical'}.")
    return 0 if len(checkpoints) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
