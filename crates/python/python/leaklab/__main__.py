"""`python -m leaklab`: the program that was installed with this module."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path


def find_program() -> Path:
    """The program, in the folder in which the installer of this module puts programs."""
    name = "leaklab" + (sysconfig.get_config_var("EXE") or "")
    package = Path(__file__).resolve().parent
    folders = [Path(sysconfig.get_path("scripts"))]
    # `pip install` with `--user`; or with `--prefix` or `--target`, which put `bin` next to or above
    # `site-packages`.
    user = "nt_user" if os.name == "nt" else "posix_user"
    folders.append(Path(sysconfig.get_path("scripts", scheme=user)))
    folders += [parent / "bin" for parent in list(package.parents)[:4]]
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    places = ", ".join(map(str, folders))
    raise SystemExit(f"leaklab: the program is not installed with this module; it was searched in {places}")


def main() -> None:
    command = [os.fspath(find_program()), *sys.argv[1:]]
    if os.name == "nt":  # On Windows, exec starts a new process, and the console does not wait for it.
        raise SystemExit(subprocess.run(command).returncode)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
