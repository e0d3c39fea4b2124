#!/usr/bin/env python3
"""Prints the time per synaptic operation by activity, time steps and threads, as Markdown tables.

Usage: bench_scaling.py [LEAKLAB] [BATCH]      (default: target/release/leaklab, 64)
"""

import json
import subprocess
import sys

program = sys.argv[1] if len(sys.argv) > 1 else "target/release/leaklab"
batch = sys.argv[2] if len(sys.argv) > 2 else "64"


def bench(*flags: str) -> dict:
    command = [program, "bench", "--json", "--batch", batch, *flags]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def row(name: str, report: dict) -> tuple[float, float]:
    infer, train = (1e12 / report[k]["operations_per_second"] for k in ("infer", "train"))
    print(f"| {name} | {report['synops_per_image']:.3g} | {infer:.1f} | {train:.1f} | "
          f"{100 * report['infer']['fraction_of_ceiling']:.0f} % | "
          f"{100 * report['train']['fraction_of_ceiling']:.0f} % |",
          flush=True)
    return infer, train


print("| activity, T | synops | inference, ps/op | training, ps/op | of ceiling | of ceiling |")
print("| --- | --- | --- | --- | --- | --- |")
cells = [row(f"{100 * rate:g} %, 100", bench("--spike-rate", str(rate))) for rate in (0.025, 0.05, 0.1, 0.2)]
cells += [row(f"5 %, {t}", bench("--time-steps", str(t))) for t in (25, 50, 200)]
for name, column in zip(("inference", "training"), zip(*cells)):
    print(f"\n{name}: largest over smallest {max(column) / min(column):.2f}")

one, two = bench("--threads", "1"), bench("--threads", "2")
for kind in ("infer", "train"):
    print(f"\n{kind}: 2 threads "
          f"{one[kind]['seconds_per_image'] / two[kind]['seconds_per_image']:.2f} times 1 thread")
