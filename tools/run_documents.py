#!/usr/bin/env python3
"""Runs the Python code of Markdown files and notebooks, in order, in a temporary folder; fails on any error.

    tools/run_documents.py docs/python.md examples/leaklab.ipynb
    tools/run_documents.py --renew examples/leaklab.ipynb     # stores the outputs (needs nbclient, ipykernel)

The output of a notebook's cells must equal the stored output. The last bits of trained weights depend on the
instruction set, so outputs are compared only on machines with the instruction set with which the notebook was
renewed.
"""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import warnings

RENEW = "tools/run_documents.py --renew"


def instruction_set() -> str:
    """The widest instruction set of the kernels that this processor supports."""
    try:
        flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return "unknown"
    return next(
        (name for name, flag in [("avx512", "avx512f"), ("avx2", "avx2")] if flag in flags), "portable"
    )


def blocks(path: pathlib.Path) -> list[tuple[str, str | None]]:
    """The pieces of Python code of a document, each with its expected output, if that is known."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return [(piece.split("```")[0], None) for piece in text.split("```python\n")[1:]]
    notebook = json.loads(text)
    comparable = notebook["metadata"].get("instruction_set") == instruction_set()
    pieces = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            streams = [output for output in cell["outputs"] if output["output_type"] == "stream"]
            printed = "".join("".join(stream["text"]) for stream in streams if stream["name"] == "stdout")
            pieces.append(("".join(cell["source"]), printed if comparable else None))
    return pieces


def run(name: str, pieces: list[tuple[str, str | None]]) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for number, (piece, expected) in enumerate(pieces, 1):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(piece, f"{name}, piece {number}", "exec"), names)
        if expected is not None and out.getvalue() != expected:
            printed = out.getvalue()
            advice = f"Renew it: {RENEW} {name}"
            sys.exit(f"{name}, piece {number} prints\n{printed}but stored is\n{expected}{advice}")


def renew(path: pathlib.Path) -> None:
    """Executes a notebook and stores its outputs."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    notebook["metadata"]["instruction_set"] = instruction_set()
    for cell in notebook["cells"]:
        cell["metadata"].pop("execution", None)
        if cell["cell_type"] == "code":
            # All output of a cell is stored as one stream, in however many parts it arrived.
            streams = [output for output in cell["outputs"] if output["output_type"] == "stream"]
            for stream in streams[1:]:
                streams[0]["text"] += stream["text"]
                cell["outputs"].remove(stream)
    nbformat.write(notebook, path)


def main() -> None:
    os.environ["MPLBACKEND"] = "Agg"
    # It is not an error that a figure cannot be shown.
    warnings.filterwarnings("ignore", message=".*non-interactive.*")
    arguments = sys.argv[1:]
    if arguments[:1] == ["--renew"]:
        del os.environ["MPLBACKEND"]
        for name in arguments[1:]:
            renew(pathlib.Path(name))
        return
    for name in arguments:
        pieces = blocks(pathlib.Path(name))
        if not pieces:
            sys.exit(f"{name}: no Python code")
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            run(name, pieces)
            os.chdir(before)
        print(f"{name}: {len(pieces)} pieces of code ran")


if __name__ == "__main__":
    main()
