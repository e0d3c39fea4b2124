#!/usr/bin/env python3
"""Runs the Python code of Markdown files and notebooks, in order, in a folder of its own; any error is one here.

    tools/run_documents.py docs/python.md examples/leaklab.ipynb
"""

import json
import os
import pathlib
import sys
import tempfile
import warnings


def blocks(path: pathlib.Path) -> list[str]:
    """The pieces of Python code of a document."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [piece.split("```")[0] for piece in text.split("```python\n")[1:]]


def main() -> None:
    os.environ["MPLBACKEND"] = "Agg"
    # A figure that cannot be shown is no error.
    warnings.filterwarnings("ignore", message=".*non-interactive.*")
    for name in sys.argv[1:]:
        path = pathlib.Path(name).resolve()
        pieces = blocks(path)
        if not pieces:
            sys.exit(f"{name}: no Python code")
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            names: dict[str, object] = {"__name__": "__main__"}
            for number, piece in enumerate(pieces, 1):
                exec(compile(piece, f"{name}, piece {number}", "exec"), names)
            os.chdir(before)
        print(f"{name}: {len(pieces)} pieces of code ran")


if __name__ == "__main__":
    main()
