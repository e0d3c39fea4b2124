"""Draws docs/results/where.svg: where the gain of leak comes from, for every published study.

    python3 tools/results_figure.py [docs/results]

One row of panels per study: strong leak (the smallest tau) on the left, moderate leak (the largest finite tau) on
the right. Reads tables/why_split.csv and study.toml of each study; needs nothing but Python.
"""

import csv
import html
import pathlib
import re
import sys

ORDER = ["digits", "fashion-mnist", "svhn-small", "cifar10-small"]
PARTS = [("readout", "#b45f06"), ("hidden", "#7a4fc9"), ("training", "#2a7f4f"), ("total", "#333333")]
WORDS = {
    "readout": "leak in the readout",
    "hidden": "leak in the hidden layers",
    "training": "training with leak",
    "total": "all together",
}
NOISES = {
    "gaussian/pixel": "Gaussian, pixels",
    "gaussian/channel": "Gaussian, spikes",
    "impulse/pixel": "impulse, pixels",
    "impulse/channel": "impulse, spikes",
}
WIDTH, LEFT, GAP, RIGHT, ROW, HEAD = 900, 150, 30, 16, 9, 40


def studies(folder):
    found = {path.parent.parent.name: path for path in folder.glob("*/tables/why_split.csv")}
    for name in ORDER:
        if name in found:
            settings = (folder / name / "study.toml").read_text()
            steps = int(re.search(r"^time_steps = (\d+)", settings, re.M).group(1))
            yield name, steps, list(csv.DictReader(found[name].open()))


def numbers(row):
    return [100 * float(row[key]) for key in ("mean", "low", "high")]


def draw(folder):
    rows_of_panels = []
    for name, steps, rows in studies(folder):
        taus = sorted({row["tau"] for row in rows}, key=float)
        ends = [taus[0], taus[-1]] if len(taus) > 1 else [None, taus[0]]
        panels = [[row for row in rows if row["tau"] == tau and row["stimulus"] != "clean"] for tau in ends]
        rows_of_panels.append((name, steps, ends, panels))
    width = (WIDTH - LEFT - GAP - RIGHT) / 2
    body, y = [], 24
    at = LEFT
    for part, colour in PARTS:
        body.append(f'<circle cx="{at}" cy="{y - 4}" r="4" fill="{colour}"/>'
                    f'<text x="{at + 8}" y="{y}">{WORDS[part]}</text>')
        at += 22 + 6.6 * len(WORDS[part])
    for name, steps, taus, panels in rows_of_panels:
        y += HEAD
        top = y - 4
        # One scale for the two panels of a study, so that they can be compared.
        values = [end for rows in panels for row in rows for end in numbers(row)]
        low, high = min(values + [0]) - 1, max(values + [0]) + 1
        step = next(size for size in (5, 10, 20, 50) if (high - low) / size < 9)
        bottom = top
        body.append(f'<text x="8" y="{y - 16}" font-weight="bold">{html.escape(name)}</text>')
        for column, (tau, rows) in enumerate(zip(taus, panels)):
            start = LEFT + column * (width + GAP)
            x = lambda value: start + (value - low) / (high - low) * width  # noqa: E731
            kind = ["strong leak", "moderate leak"][column]
            if not rows:
                continue
            share = f"{float(tau) / steps:.2g} T" if float(tau) != steps else "T"
            body.append(f'<text x="{start:.0f}" y="{y - 16}">{kind}: τ = {tau} ({share}) '
                        'against no leak</text>')
            line = y
            for noise, words in NOISES.items():
                of = {row["part"]: row for row in rows if row["stimulus"].startswith(noise + "/")}
                if not of:
                    continue
                severity = next(iter(of.values()))["stimulus"].rsplit("/", 1)[1]
                if column == 0 or not panels[0]:
                    body.append(f'<text x="{LEFT - 10}" y="{line + 2 * ROW}" text-anchor="end">'
                                f'{words} ({severity})</text>')
                for part, colour in PARTS:
                    mean, a, b = numbers(of[part])
                    body.append(f'<line x1="{x(a):.1f}" x2="{x(b):.1f}" y1="{line}" y2="{line}" '
                                f'stroke="{colour}" stroke-width="2"/>'
                                f'<circle cx="{x(mean):.1f}" cy="{line}" r="3.2" fill="{colour}"/>')
                    line += ROW
                line += ROW
            body.append(f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="{top}" y2="{line}" stroke="#999"/>')
            for tick in range(int(low // step) * step, int(high) + 1, step):
                if low <= tick <= high:
                    sign = "+" if tick > 0 else "−" if tick < 0 else ""
                    at = f"{x(tick):.1f}"
                    body.append(f'<line x1="{at}" x2="{at}" y1="{line}" y2="{line + 4}" stroke="#999"/>'
                                f'<text x="{at}" y="{line + 15}" text-anchor="middle">{sign}{abs(tick)}</text>')
            bottom = max(bottom, line)
        y = bottom + 16
    y += 18
    body.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{y}" text-anchor="middle">gain in accuracy '
                '(percentage points) with 95 % intervals; in brackets, the severity of the noise</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 12}" width="{WIDTH}" '
            'font-family="sans-serif" font-size="12" fill="#222">\n'
            '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n")


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "docs/results")
    (folder / "where.svg").write_text(draw(folder))
