"""Draws docs/results/where.svg: where the gain of leak comes from, for every published study.

    python3 tools/results_figure.py [docs/results]

Reads tables/why_split.csv of each study; needs nothing but Python.
"""

import csv
import html
import pathlib
import sys

ORDER = ["digits", "fashion-mnist", "svhn-small", "cifar10-small"]
PARTS = [("readout", "#b45f06"), ("hidden", "#7a4fc9"), ("training", "#2a7f4f"), ("total", "#333333")]
WORDS = {
    "readout": "leak in the readout",
    "hidden": "leak in the hidden layers",
    "training": "training with leak",
    "total": "all together",
}
NOISES = ["gaussian/pixel", "gaussian/channel", "impulse/pixel", "impulse/channel"]
WIDTH, LEFT, RIGHT, ROW, HEAD = 760, 190, 20, 11, 46


def studies(folder):
    found = {path.parent.parent.name: path for path in folder.glob("*/tables/why_split.csv")}
    return [(name, list(csv.DictReader(found[name].open()))) for name in ORDER if name in found]


def strongest(rows):
    """The rows of the condition with the most leak."""
    least = min({row["tau"] for row in rows}, key=float)
    return least, [row for row in rows if row["tau"] == least]


def draw(folder):
    panels = []
    for name, rows in studies(folder):
        tau, rows = strongest(rows)
        panels.append((f"{name}: τ = {tau} against no leak", rows))
    values = [100 * float(row[end]) for _, rows in panels for row in rows for end in ("low", "high")
              if row["stimulus"] != "clean"]
    low, high = min(values + [0]) - 1, max(values + [0]) + 1
    x = lambda value: LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)  # noqa: E731
    body, y = [], 30
    at = LEFT
    for part, colour in PARTS:
        body.append(f'<circle cx="{at}" cy="{y - 4}" r="4" fill="{colour}"/>'
                    f'<text x="{at + 8}" y="{y}">{WORDS[part]}</text>')
        at += 14 + 6.6 * len(WORDS[part])
    for title, rows in panels:
        y += HEAD
        body.append(f'<text x="8" y="{y - 14}" font-weight="bold">{html.escape(title)}</text>')
        top = y - 6
        for noise in NOISES:
            of = {row["part"]: row for row in rows if row["stimulus"].startswith(noise + "/")}
            if not of:
                continue
            severity = next(iter(of.values()))["stimulus"].rsplit("/", 1)[1]
            body.append(f'<text x="{LEFT - 10}" y="{y + 2 * ROW}" text-anchor="end">'
                        f'{noise}, severity {severity}</text>')
            for part, colour in PARTS:
                mean, a, b = (100 * float(of[part][key]) for key in ("mean", "low", "high"))
                body.append(f'<line x1="{x(a):.1f}" x2="{x(b):.1f}" y1="{y}" y2="{y}" stroke="{colour}" '
                            'stroke-width="2"/>'
                            f'<circle cx="{x(mean):.1f}" cy="{y}" r="3.5" fill="{colour}"/>')
                y += ROW
            y += ROW
        body.append(f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="{top}" y2="{y}" stroke="#999"/>')
        step = 5 if high - low < 40 else 10
        for tick in range(int(low // step) * step, int(high) + 1, step):
            if low <= tick <= high:
                sign = "+" if tick > 0 else "−" if tick < 0 else ""
                at = f"{x(tick):.1f}"
                body.append(f'<line x1="{at}" x2="{at}" y1="{y}" y2="{y + 4}" stroke="#999"/>'
                            f'<text x="{at}" y="{y + 16}" text-anchor="middle">{sign}{abs(tick)}</text>')
        y += 16
    y += 20
    body.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{y}" text-anchor="middle">'
                'gain in accuracy (percentage points), with 95 % intervals</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 12}" width="{WIDTH}" '
            'font-family="sans-serif" font-size="12" fill="#222">\n'
            '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n")


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "docs/results")
    (folder / "where.svg").write_text(draw(folder))
