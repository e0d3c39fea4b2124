#!/usr/bin/env python3
"""Compares the time of one coherence curve by `leaklab theory` and by mpmath's parabolic cylinder functions.

Usage: python tools/bench_theory.py [--leaklab target/release/leaklab] [--points 200]
Needs mpmath (pip install mpmath). Prints a Markdown table of times and of the largest difference of the
values.

mpmath evaluates the paper's Eqn. 11 as it is printed, with `pcfd`. With 15 digits (mpmath's default, as in a
double) the formula suffers from cancellation in part of the range, so the same curve is also computed with
twice the digits.
"""

import argparse
import datetime
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import time

import mpmath

NEURONS = [(1.5, 0.1), (0.8, 0.05), (4.5, 0.3)]
RANGE = (0.01, 100.0)


def children():
    """Processor time of finished child processes. Like mpmath's below, it does not depend on other load."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ours(program, mu, d, points):
    """The curve as [(omega, coherence)], and the command's processor time in seconds, including its start."""
    command = [program, "theory", "coherence", "--mu", str(mu), "--d", str(d),
               "--omega", f"{RANGE[0]}:{RANGE[1]}:{points}:log", "--csv"]
    start = children()
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds = children() - start
    rows = [tuple(map(float, line.split(","))) for line in out.splitlines()[1:]]
    return rows, seconds


def paper(mu, d, omegas):
    """Eqn. 11 with pcfd, threshold 1 and reset 0, with the current precision of mpmath."""
    mp = mpmath.mp
    mu, d = mp.mpf(mu), mp.mpf(d)
    root = mp.sqrt(d)
    a, b = (mu - 1) / root, mu / root
    delta = (2 * mu - 1) / (4 * d)
    inverse = mp.sqrt(mp.pi) * mp.quad(lambda z: mp.exp(z * z) * mp.erfc(z),
                                       [a / mp.sqrt(2), b / mp.sqrt(2)])
    rate = 1 / inverse
    values = []
    for omega in omegas:
        w = mp.mpf(omega)
        nu = mp.mpc(0, w)
        up = abs(mp.pcfd(nu - 1, a) - mp.exp(delta) * mp.pcfd(nu - 1, b)) ** 2
        down = abs(mp.pcfd(nu, a)) ** 2 - mp.exp(2 * delta) * abs(mp.pcfd(nu, b)) ** 2
        values.append(2 * rate * w * w / (1 + w * w) * up / down)
    return values


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leaklab", default="target/release/leaklab")
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    if not os.path.exists(options.leaklab):
        sys.exit(f"{options.leaklab}: no such program; build it with `cargo build --release`")

    print("Processor time of one core.", end=" ")
    print(f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores, mpmath {mpmath.__version__}; "
          f"command: `{' '.join(sys.argv)}`\n")
    print("| mu, D | leaklab, whole command | leaklab, the curve alone | mpmath pcfd, 15 digits "
          "| mpmath pcfd, 30 digits | ratio | largest difference, 15 digits | 30 digits |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for mu, d in NEURONS:
        runs = [ours(options.leaklab, mu, d, options.points) for _ in range(options.repeats)]
        rows = runs[0][0]
        whole = statistics.median(seconds for _, seconds in runs)
        # A curve with 50 times the points, so that the start of the process can be subtracted.
        many = statistics.median(ours(options.leaklab, mu, d, 50 * options.points)[1] for _ in range(3))
        alone = max(many - whole, 0.0) / 49
        cells = []
        for digits in (15, 30):
            mpmath.mp.dps = digits
            start = time.process_time()
            values = paper(mu, d, [omega for omega, _ in rows])
            seconds = time.process_time() - start
            error = max(abs(float(value) / c - 1) for value, (_, c) in zip(values, rows))
            cells.append((seconds, error))
        print(f"| {mu}, {d} | {1e3 * whole:.1f} ms | {1e3 * alone:.2f} ms | {cells[0][0]:.2f} s "
              f"| {cells[1][0]:.2f} s | {cells[0][0] / alone:.0f} | {cells[0][1]:.1e} "
              f"| {cells[1][1]:.1e} |" if alone > 0 else
              f"| {mu}, {d} | {1e3 * whole:.1f} ms | below the clock | {cells[0][0]:.2f} s "
              f"| {cells[1][0]:.2f} s | - | {cells[0][1]:.1e} | {cells[1][1]:.1e} |")
        if not math.isfinite(cells[1][1]) or cells[1][1] > 1e-9:
            sys.exit("the values of leaklab and mpmath differ by more than 1e-9")


if __name__ == "__main__":
    main()
