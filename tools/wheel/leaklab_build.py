"""Builds the wheel: maturin's PEP 517 backend, which also packs the program.

The `.data/scripts` folder of a wheel is installed where pip puts programs. maturin packs the files in the
folder that `tool.maturin.data` names, but builds only the module. The program is therefore built first and
copied there.

    python tools/wheel/leaklab_build.py [--glibc 2.17]

does only this first step, for callers that run maturin themselves (`tools/build-wheel`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "target" / "wheel.data" / "scripts"


def place_program(glibc: str | None = None) -> Path:
    """Builds the program and copies it to maturin's data folder; with `glibc`, for that C library, by zig."""
    if glibc is None:
        command = ["cargo", "rustc"]
    else:
        machine = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
        host = next(line.removeprefix("host: ") for line in machine.splitlines() if line.startswith("host: "))
        command = ["cargo-zigbuild", "rustc", "--target", f"{host}.{glibc}"]
    command += ["--release", "--locked", "--package", "leaklab", "--bin", "leaklab"]
    command += ["--message-format=json-render-diagnostics", "--", "-C", "strip=symbols"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        raise SystemExit(f"the program could not be built: {' '.join(command)}")
    messages = (json.loads(line) for line in built.stdout.splitlines() if line.startswith("{"))
    programs = [m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == "leaklab"]
    if not programs:
        raise SystemExit(f"cargo reported no program: {' '.join(command)}")
    shutil.rmtree(SCRIPTS.parent, ignore_errors=True)
    SCRIPTS.mkdir(parents=True)
    return Path(shutil.copy2(programs[-1], SCRIPTS))


def get_requires_for_build_wheel(config_settings=None):
    import maturin

    return maturin.get_requires_for_build_wheel(config_settings)


get_requires_for_build_editable = get_requires_for_build_wheel


def get_requires_for_build_sdist(config_settings=None):
    import maturin

    return maturin.get_requires_for_build_sdist(config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    import maturin

    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    import maturin

    place_program()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    import maturin

    place_program()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    import maturin

    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return maturin.build_sdist(sdist_directory, config_settings)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments and (arguments[0] != "--glibc" or len(arguments) != 2):
        raise SystemExit("usage: leaklab_build.py [--glibc VERSION]")
    print(place_program(arguments[1] if arguments else None))
