"""Trains one run of a published study again, and compares it with the published record.

    python3 tools/repeat_run.py digits tau-100_seed-1
    python3 tools/repeat_run.py svhn-small tau-inf_seed-1 --data-dir DIR

All numbers of every epoch must be the same, except times. If the trained network is published as well, its
weights must have the same bytes. Needs only Python, the program, and a CPU with AVX2 or AVX-512: portable
code has no fused multiply-adds, so that the last bits differ.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIMES = ("seconds", "images_per_second")


def epochs(lines):
    """The records of all epochs, without times."""
    return [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in lines]


def published(study, run):
    """The settings and the metrics of a published run."""
    archive = ROOT / "docs/results" / study / "records.tar.gz"
    if not archive.is_file():
        known = sorted(path.parent.name for path in archive.parent.parent.glob("*/records.tar.gz"))
        sys.exit(f"there is no published study {study}; there are {', '.join(known)}")
    with tarfile.open(archive) as records:
        names = records.getnames()
        folder = f"{study}/runs/{run}"
        if f"{folder}/metrics.jsonl" not in names:
            known = sorted({name.split("/")[2] for name in names if name.endswith("/metrics.jsonl")})
            sys.exit(f"{study} has no run {run}; it has {', '.join(known)}")
        files = [records.extractfile(f"{folder}/{name}") for name in ("run.toml", "metrics.jsonl")]
        return [file.read().decode() for file in files]


def published_weights(study, run):
    """The file with the trained weights of a run; most runs have none."""
    condition, seed = run.rsplit("_", 1)
    name = f"{study}-{'no-leak' if condition == 'tau-inf' else condition}"
    file = ROOT / "docs/results/networks" / name / "model.safetensors"
    return file if seed == "seed-1" and file.is_file() else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", help="a folder of docs/results")
    parser.add_argument("run", help="for example tau-30_seed-1")
    parser.add_argument("--data-dir", help="folder of the data sets")
    parser.add_argument("--threads", help="number of threads, which does not change the results")
    parser.add_argument("--trained", type=pathlib.Path, help="compare this run instead of training one")
    parser.add_argument("--leaklab", default=ROOT / "target/release/leaklab", help="the program")
    arguments = parser.parse_args()
    settings, metrics = published(arguments.study, arguments.run)
    with tempfile.TemporaryDirectory() as work:
        folder = arguments.trained or pathlib.Path(work) / "run"
        if not arguments.trained:
            file = pathlib.Path(work) / "run.toml"
            file.write_text(settings)
            command = [arguments.leaklab, "train", file, "--out", folder]
            command += ["--data-dir", arguments.data_dir] if arguments.data_dir else []
            command += ["--threads", arguments.threads] if arguments.threads else []
            if subprocess.run(command).returncode != 0:
                sys.exit(1)
        made = epochs((folder / "metrics.jsonl").read_text().splitlines())
        expected = epochs(metrics.splitlines())
        for number, (ours, theirs) in enumerate(zip(made, expected), 1):
            for key in theirs:
                if ours.get(key) != theirs[key]:
                    sys.exit(f"epoch {number}: {key} is {ours.get(key)}, and was {theirs[key]}")
        if len(made) != len(expected):
            sys.exit(f"{len(made)} epochs were trained, and {len(expected)} are published")
        weights = published_weights(arguments.study, arguments.run)
        if weights:
            exported = pathlib.Path(work) / "exported"
            command = [arguments.leaklab, "export", folder, "--safetensors", exported]
            if subprocess.run(command, stdout=subprocess.DEVNULL).returncode != 0:
                sys.exit(1)
            if (exported / weights.name).read_bytes() != weights.read_bytes():
                sys.exit(f"the weights are not those of {weights.relative_to(ROOT)}")
    also = ", and so are the bytes of the weights" if weights else ""
    print(f"{arguments.study}/{arguments.run}: all numbers of {len(made)} epochs are the same{also}")


if __name__ == "__main__":
    main()
