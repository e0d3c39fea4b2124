"""Draws three figures from the published tables; needs only Python.

    python3 tools/results_figure.py [docs/results]

docs/results/severity.svg: what leak gains or costs at each severity of noise (tables/contrasts.csv), and what
noise costs networks without leak (tables/robustness_by_condition.csv).
docs/results/where.svg: where the gain comes from (tables/why_split.csv). Each study has a row of two panels:
strong leak (the smallest tau) on the left, moderate leak (the largest finite tau) on the right.
docs/results/sweep.svg: accuracy and spike rate against tau.
"""

import csv
import pathlib
import re
import sys

TITLES = {
    "digits": "digits",
    "fashion-mnist": "Fashion-MNIST",
    "svhn-small": "SVHN",
    "cifar10-small": "CIFAR-10",
}
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
# All panels share one scale, in percentage points. Intervals that leave it end in an arrow.
LOW, HIGH, TICK = -15, 22, 5


def time_steps(folder, name):
    return int(re.search(r"^time_steps = (\d+)", (folder / name / "study.toml").read_text(), re.M).group(1))


def analysed_images(folder, name):
    text = (folder / name / "study.toml").read_text()
    return int(re.search(r"^analysis_images = (\d+)", text, re.M).group(1))


def studies(folder):
    found = {path.parent.parent.name: path for path in folder.glob("*/tables/why_split.csv")}
    for name in TITLES:
        if name in found:
            yield name, time_steps(folder, name), list(csv.DictReader(found[name].open()))


def numbers(row):
    return [100 * float(row[key]) for key in ("mean", "low", "high")]


def interval(x, y, colour, mean, low, high):
    """A mean with its interval, cut at the ends of the scale."""
    a, b = x(max(low, LOW)), x(min(high, HIGH))
    parts = [f'<line x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"/>']
    for end, cut, side in ((a, low < LOW, -1), (b, high > HIGH, 1)):
        if cut:
            base = end - 4 * side
            parts.append(f'<path d="M{end + 3 * side:.1f} {y}L{base:.1f} {y - 4}V{y + 4}Z" fill="{colour}"/>')
    if LOW <= mean <= HIGH:
        parts.append(f'<circle cx="{x(mean):.1f}" cy="{y}" r="3.2" fill="{colour}"/>')
    return "".join(parts)


def panels_of(folder):
    """For each study its name, steps, the taus of its two panels, and their rows under noise."""
    rows_of_panels = []
    for name, steps, rows in studies(folder):
        taus = sorted({row["tau"] for row in rows}, key=float)
        ends = [taus[0], taus[-1]] if len(taus) > 1 else [None, taus[0]]
        panels = [[row for row in rows if row["tau"] == tau and row["stimulus"] != "clean"] for tau in ends]
        rows_of_panels.append((name, steps, ends, panels))
    return rows_of_panels


PANEL = (WIDTH - LEFT - GAP - RIGHT) / 2


def legend(y):
    body, at = [], LEFT
    for part, colour in PARTS:
        body.append(f'<circle cx="{at}" cy="{y - 4}" r="4" fill="{colour}"/>'
                    f'<text x="{at + 8}" y="{y}">{WORDS[part]}</text>')
        at += 22 + 6.6 * len(WORDS[part])
    return body


def scale(column):
    """From a gain to its place in a column of panels."""
    start = LEFT + column * (PANEL + GAP)
    return start, lambda value: start + (value - LOW) / (HIGH - LOW) * PANEL


def ticks(x, top, bottom):
    body = []
    for tick in range(LOW, HIGH + 1, TICK):
        sign = "+" if tick > 0 else "−" if tick < 0 else ""
        at, colour = f"{x(tick):.1f}", "#ddd" if tick else "#888"
        body.append(f'<line x1="{at}" x2="{at}" y1="{top}" y2="{bottom}" stroke="{colour}"/>'
                    f'<text x="{at}" y="{bottom + 13}" text-anchor="middle">{sign}{abs(tick)}</text>')
    return body


# Strong and moderate leak, as shares of the number of steps.
LEAKS = [("strong leak (τ = 0.3 T)", 0.3, "#b45f06"), ("moderate leak (τ = T)", 1.0, "#2a6fb0")]
SEVERITIES = 9


def differences(folder, name, share):
    """For each noise the difference from no leak by severity, from 0 (none): mean, low and high."""
    steps = time_steps(folder, name)
    tau = f"tau {share * steps:g}"
    rows = csv.DictReader((folder / name / "tables/contrasts.csv").open())
    own = {row["quantity"]: row for row in rows if row["a"] == tau and row["b"] == "tau inf"}
    for noise in NOISES:
        noisy = [f"accuracy {noise}/{severity}" for severity in range(1, SEVERITIES)]
        yield [numbers(own[quantity]) for quantity in ["accuracy", *noisy]]


def lost(folder, name):
    """What noise costs networks without leak at each severity, as a share of their excess over chance: the
    mean over the noises."""
    tables = folder / name / "tables"
    with (tables / "runs.csv").open() as runs:
        chance = next(float(row["chance"]) for row in csv.DictReader(runs) if row["condition"] == "tau inf")
    excess = {}
    with (tables / "robustness_by_condition.csv").open() as rows:
        for row in csv.DictReader(rows):
            if row["condition"] == "tau inf":
                key = f"{row['noise']}/{row['scenario']}", int(row["severity"])
                excess[key] = float(row["mean"]) - chance
    for severity in range(SEVERITIES):
        yield mean(1 - excess[noise, severity] / excess[noise, 0] for noise in NOISES)


def draw_severity(folder):
    """What leak gains at each severity, a panel for each data set and a line for each noise."""
    low, high, left, gap, top, height = -26, 16, 44, 14, 74, 250
    width = (WIDTH - left - RIGHT - gap * (len(TITLES) - 1)) / len(TITLES)
    y = lambda value: top + height * (high - value) / (high - low)  # noqa: E731
    body, at = [], left
    for words, _, colour in LEAKS:
        body.append(f'<circle cx="{at}" cy="20" r="4" fill="{colour}"/>'
                    f'<text x="{at + 8}" y="24">{words}, minus no leak</text>')
        at += 270
    body.append(f'<text x="{at}" y="24">● 95 % interval excludes zero, ○ it does not</text>')
    for column, (name, title) in enumerate(TITLES.items()):
        start = left + column * (width + gap)
        x = lambda severity: start + 8 + severity * (width - 16) / (SEVERITIES - 1)  # noqa: E731
        body.append(f'<text x="{start:.0f}" y="{top - 14}" font-weight="bold">{title}</text>')
        for tick in range(-25, high, 5):
            sign = "+" if tick > 0 else "−" if tick < 0 else ""
            body.append(f'<line x1="{start:.1f}" x2="{start + width:.1f}" y1="{y(tick):.1f}" '
                        f'y2="{y(tick):.1f}" stroke="{"#ddd" if tick else "#888"}"/>')
            if column == 0:
                body.append(f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{sign}{abs(tick)}'
                            '</text>')
        body += [f'<text x="{x(severity):.1f}" y="{top + height + 14}" text-anchor="middle">{severity}</text>'
                 for severity in range(SEVERITIES)]
        body += [f'<text x="{x(severity):.1f}" y="{top + height + 30}" text-anchor="middle" fill="#777" '
                 f'font-size="11">{abs(round(100 * share))}</text>'
                 for severity, share in enumerate(lost(folder, name))]
        for _, share, colour in LEAKS:
            lines = list(differences(folder, name, share))
            for noise, line in zip(NOISES, lines):
                points = " ".join(f"{x(i):.1f},{y(mean):.1f}" for i, (mean, _, _) in enumerate(line))
                dash = ' stroke-dasharray="4 3"' if noise == "impulse/pixel" else ""
                body.append(f'<polyline points="{points}" fill="none" stroke="{colour}" '
                            f'opacity="0.55"{dash}/>')
            for line in lines:
                body += [f'<circle cx="{x(i):.1f}" cy="{y(mean):.1f}" r="2.6" stroke="{colour}" '
                         f'fill="{colour if least > 0 or most < 0 else "#fff"}"/>'
                         for i, (mean, least, most) in enumerate(line)]
    notes = [
        ("#222", "severity of the noise (0: none); difference in accuracy in points; a line for each of four "
         "noises (dashed: impulse noise on pixels)"),
        ("#777", "in grey: per cent of the accuracy above chance that networks without leak lose at this "
         "severity, mean over the four noises"),
    ]
    for number, (colour, words) in enumerate(notes):
        body.append(f'<text x="{(left + WIDTH - RIGHT) / 2:.0f}" y="{top + height + 50 + 16 * number}" '
                    f'text-anchor="middle" fill="{colour}">{words}</text>')
    return page(body, top + height + 78)


def draw(folder):
    body, y = legend(24), 42
    body.append(f'<text x="{LEFT}" y="{y}">gain in accuracy in percentage points, with 95 % intervals '
                '(arrow: beyond the scale); in brackets, the severity</text>')
    for name, steps, taus, panels in panels_of(folder):
        y += HEAD
        top = y - 4
        bottom = top
        body.append(f'<text x="8" y="{y - 16}" font-weight="bold">{TITLES[name]}</text>')
        for column, (tau, rows) in enumerate(zip(taus, panels)):
            start, x = scale(column)
            kind = ["strong leak", "moderate leak"][column]
            if not rows:
                continue
            share = f"{float(tau) / steps:.2g} T" if float(tau) != steps else "T"
            body.append(f'<text x="{start:.0f}" y="{y - 16}">{kind}: τ = {tau} ({share}) '
                        'compared with no leak</text>')
            line = y
            marks = []
            for noise, words in NOISES.items():
                of = {row["part"]: row for row in rows if row["stimulus"].startswith(noise + "/")}
                if not of:
                    continue
                severity = next(iter(of.values()))["stimulus"].rsplit("/", 1)[1]
                if column == 0 or not panels[0]:
                    body.append(f'<text x="{LEFT - 10}" y="{line + 2 * ROW}" text-anchor="end">'
                                f'{words} ({severity})</text>')
                for part, colour in PARTS:
                    marks.append(interval(x, line, colour, *numbers(of[part])))
                    line += ROW
                line += ROW
            body += ticks(x, top, line) + marks
            bottom = max(bottom, line)
        y = bottom + 16
    return page(body, y + 12)


SWEEP = "fashion-mnist-sweep"
LINES = {
    "clean": ("without noise", "#333333"),
    "gaussian/pixel": ("Gaussian, pixels", "#0072b2"),
    "gaussian/channel": ("Gaussian, spikes", "#56a0d3"),
    "impulse/pixel": ("impulse, pixels", "#d55e00"),
    "impulse/channel": ("impulse, spikes", "#e69f00"),
}


def table(folder, name):
    return list(csv.DictReader((folder / SWEEP / "tables" / f"{name}.csv").open()))


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def draw_sweep(folder):
    """Accuracy without noise and mean accuracy over severities 1 to 8, and spikes, against tau."""
    conditions = [row for row in table(folder, "conditions") if row["role"] != "probe"]
    taus = sorted((row["tau"] for row in conditions), key=float)
    curves = {name: [] for name in LINES}
    accuracies = table(folder, "robustness_by_condition")
    for tau in taus:
        own = [row for row in accuracies if row["condition"] == f"tau {tau}"]
        for name in LINES:
            wanted = lambda row: f"{row['noise']}/{row['scenario']}" == name  # noqa: E731
            if name == "clean":
                chosen = [row for row in own if row["severity"] == "0"]
            else:
                chosen = [row for row in own if wanted(row) and row["severity"] != "0"]
            curves[name].append(mean(float(row["mean"]) for row in chosen))
    rates = {row["condition"]: float(row["mean"]) for row in table(folder, "table1")
             if row["quantity"] == "spike_rate"}
    panels = [
        ("accuracy (with noise: mean over severities 1 to 8)", curves, 0.4, 0.9, 210),
        ("spikes per neuron and step, without noise", {"rate": [rates[f"tau {tau}"] for tau in taus]}, 0.0,
         0.6, 110),
    ]
    left, right, labels = 70, 160, {**LINES, "rate": ("", "#333333")}
    x = lambda i: left + 20 + i * (WIDTH - left - right - 40) / (len(taus) - 1)  # noqa: E731
    body, top = [], 32
    for title, lines, least, most, height in panels:
        y = lambda value: top + height * (most - value) / (most - least)  # noqa: E731
        body.append(f'<text x="8" y="{top - 14}" font-weight="bold">{title}</text>')
        for tick in range(round(100 * least), round(100 * most) + 1, 10 if least else 20):
            at = y(tick / 100)
            body.append(f'<line x1="{left}" x2="{WIDTH - right}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>'
                        f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{tick} %</text>')
        ends = []
        for name, values in lines.items():
            words, colour = labels[name]
            points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in enumerate(values))
            body.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
            body += [f'<circle cx="{x(i):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}"/>'
                     for i, value in enumerate(values)]
            ends.append([y(values[-1]), words, colour])
        # Labels keep a distance of a line from each other.
        ends.sort()
        for i, (at, words, colour) in enumerate(ends):
            at = ends[i][0] = max(at, ends[i - 1][0] + 14) if i else at
            body.append(f'<text x="{WIDTH - right + 8}" y="{at + 4:.1f}" fill="{colour}">{words}</text>')
        top += height + 46
    base = top - 28
    body += [f'<text x="{x(i):.1f}" y="{base}" text-anchor="middle">'
             f'{tau.replace("inf", "∞ (no leak)")}</text>'
             for i, tau in enumerate(taus)]
    body.append(f'<text x="{(left + WIDTH - right) / 2}" y="{base + 20}" text-anchor="middle">time constant '
                f'τ in steps (T = {time_steps(folder, SWEEP)})</text>')
    seeds = max(int(row["runs"]) for row in conditions)
    images = analysed_images(folder, SWEEP)
    note = [
        f"Each point is the mean of {seeds} networks (seeds) on {images:,} test images. "
        "Intervals are not drawn: with so few seeds,",
        "differences between points of several percentage points may be chance.",
    ]
    body += [f'<text x="8" y="{base + 42 + 16 * line}">{words}</text>' for line, words in enumerate(note)]
    return page(body, base + 70)


def page(body, height):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            'font-family="sans-serif" font-size="12" fill="#222">\n'
            '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n")


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "docs/results")
    (folder / "where.svg").write_text(draw(folder))
    (folder / "severity.svg").write_text(draw_severity(folder))
    if (folder / SWEEP).is_dir():
        (folder / "sweep.svg").write_text(draw_sweep(folder))
