"""The user's own arrays: training, evaluation, analyses and studies, with the same bits as the program."""

import ast
import inspect
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import leaklab

RECIPE = {"tau": 30, "time_steps": 30, "epochs": 6, "batch": 16, "presentations": 1,
          "evaluate_train_images": 0, "schedule": {"after": [], "times": 1.0}, "noise": ["deletion/channel"]}


def weights(folder):
    return (pathlib.Path(folder) / "checkpoint.safetensors").read_bytes()


def halves(count=60, shift=0.0):
    """Two classes of four features: the first or the second half is large."""
    rng = np.random.default_rng(1)
    labels = np.arange(count) % 2
    images = (
        np.where((labels[:, None] == 0) == (np.arange(4) < 2), 5.0 + shift, 0.0)
        + rng.normal(size=(count, 4))
    )
    return images, labels


def data(name="halves", **other):
    images, labels = halves(**other)
    return leaklab.Dataset.from_arrays(images, labels, name=name, class_names=["left", "right"])


def config(dataset, network="1x1x4-16FC-2o", **other):
    return RECIPE | {"dataset": dataset, "network": network} | other


def sklearn(name):
    if os.environ.get("CI"):
        import sklearn.datasets as datasets
    else:
        reason = "scikit-learn is not installed; tools/check-python installs it"
        datasets = pytest.importorskip("sklearn.datasets", reason=reason)
    found = getattr(datasets, f"load_{name}")()
    return found.data, found.target, list(map(str, found.target_names))


def test_from_arrays_scales_and_divides():
    made = data()
    assert made.shape == [1, 1, 4] and made.class_names == ["left", "right"] and made.name == "npz:halves"
    assert len(made.train_labels) == 48 and len(made.test_labels) == 12
    images, labels = halves()
    train = made.train_images.reshape(48, 4)
    assert train.min(axis=0).tolist() == [0] * 4 and train.max(axis=0).tolist() == [255] * 4
    # uint8 arrays are used as pixels without change, in all three forms.
    pixels = np.arange(6 * 12, dtype=np.uint8).reshape(6, 1, 3, 4)
    for form, shape in [(pixels, [1, 3, 4]), (pixels[:, 0], [1, 3, 4]), (pixels.reshape(6, 12), [1, 1, 12])]:
        made = leaklab.Dataset.from_arrays(form, [0, 1] * 3, form[:2], [0, 1])
        assert made.shape == shape and np.array_equal(made.train_images.ravel(), pixels.ravel())


def test_booleans_are_the_same_from_arrays_and_from_a_file(tmp_path):
    bits = np.random.default_rng(2).random((20, 1, 3, 4)) < 0.5
    labels = np.arange(20) % 2
    np.savez(tmp_path / "bits.npz", train_images=bits, train_labels=labels)
    made = leaklab.Dataset.from_arrays(bits, labels)
    loaded = leaklab.load_dataset("npz:bits", data_dir=tmp_path)
    assert np.array_equal(made.train_images, loaded.train_images)
    assert np.array_equal(made.test_images, loaded.test_images)
    assert set(np.unique(made.train_images)) == {0, 255}
    np.savez(tmp_path / "bits.npz", train_images=bits, train_labels=labels == 1)
    for call in [
        lambda: leaklab.Dataset.from_arrays(bits, labels == 1),
        lambda: leaklab.load_dataset("npz:bits", data_dir=tmp_path),
    ]:
        with pytest.raises(leaklab.LeakLabError, match="train_labels.* bool.* whole numbers"):
            call()


def test_a_file_of_the_user_is_not_overwritten(tmp_path):
    images, labels = halves()
    own = tmp_path / "halves.npz"
    np.savez(own, train_images=images + np.arange(60)[:, None], train_labels=labels)
    before = own.read_bytes()
    with pytest.raises(leaklab.LeakLabError, match="there is a file already, whose data are not those"):
        leaklab.train(config(data(), epochs=1), tmp_path)
    assert own.read_bytes() == before and not (tmp_path / "run.toml").exists()
    # The same data are used as they are, and the run is bound to them.
    np.savez(own, train_images=images, train_labels=labels, class_names=["left", "right"])
    before = own.read_bytes()
    leaklab.train(config(data(), epochs=1), tmp_path)
    assert own.read_bytes() == before and "data_sha256" in (tmp_path / "run.toml").read_text()
    # The copy of a call that was refused is replaced.
    out = tmp_path / "other"
    with pytest.raises(leaklab.LeakLabError, match="1x1x4"):
        leaklab.train(config(data(), network="1x1x5-8FC-2o"), out)
    assert leaklab.train(config(data(shift=1.0), epochs=1), out)["outcome"] == "finished"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_labels": [0, 1]}, "train_labels: 2 labels for 60 images"),
        ({"train_labels": np.full(60, -1)}, "label -1 of image 0"),
        ({"train_images": np.full((60, 4), np.nan)}, "train_images: element 0 is NaN"),
        ({"train_images": np.zeros(60)}, r"\[N, F\] is expected"),
        ({"test_images": np.zeros((2, 4))}, "belong together"),
        ({"class_names": ["one"]}, "1 classes"),
        ({"name": "a/b"}, "name is 'a/b'"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    images, labels = halves()
    with pytest.raises(leaklab.LeakLabError, match=message):
        leaklab.Dataset.from_arrays(**({"train_images": images, "train_labels": labels} | change))


def test_the_same_bits_from_arrays_and_from_a_file(tmp_path, program):
    images, labels = halves()
    made = data()
    leaklab.train(config(made), tmp_path / "python")
    np.savez_compressed(
        tmp_path / "halves.npz", train_images=images, train_labels=labels, class_names=["left", "right"]
    )
    settings = [
        f"--set={key}={value!r}"
        for key, value in config("npz:halves").items()
        if key not in ("schedule", "dataset", "network")
    ]
    subprocess.run(
        [program, "train", "--quiet", "--dataset", "npz:halves", "--data-dir", tmp_path / "halves.npz",
         *settings, "--set=network=1x1x4-16FC-2o", "--set=schedule.after=[]", "--set=schedule.times=1.0",
         "--out", tmp_path / "cli"],
        check=True,
    )
    assert weights(tmp_path / "cli") == weights(tmp_path / "python")
    # The folder of the run that Python trained contains the data, so the program can use them.
    subprocess.run([program, "evaluate", tmp_path / "python", "--json"], check=True, capture_output=True)
    digest = [
        line
        for line in (tmp_path / "python/run.toml").read_text().splitlines()
        if line.startswith("data_sha256")
    ]
    assert digest == [f'data_sha256 = "{made.digest}"']


def test_a_run_is_evaluated_and_analysed_and_refuses_other_data(tmp_path):
    run = tmp_path / "run"
    assert leaklab.train(config(data()), run)["last"]["test_accuracy"] > 0.9
    assert set(leaklab.analyse(run, "all")) >= {"robustness", "activity", "raster"}
    assert leaklab.evaluate(run)["images"] == 12
    data(shift=1.0).save(run / "halves.npz")
    with pytest.raises(leaklab.LeakLabError, match="data_sha256"):
        leaklab.evaluate(run)
    with pytest.raises(leaklab.LeakLabError, match="other than|not the one"):
        leaklab.analyse(run, "robustness")


def test_killed_and_resumed_gives_the_same_bits(tmp_path):
    data().save(tmp_path / "halves.npz")
    settings = config("npz:halves", epochs=400) | {"data_dir": str(tmp_path / "halves.npz")}
    script = (
        f"import leaklab; leaklab.train({settings!r}, {str(tmp_path / 'killed')!r}, checkpoint_minutes=0)"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    try:
        deadline = time.time() + 60
        metrics = tmp_path / "killed/metrics.jsonl"
        while time.time() < deadline and not (metrics.exists() and len(metrics.read_text().splitlines()) > 5):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    finally:
        process.wait(30)
    assert leaklab.resume(tmp_path / "killed")["epochs"] == 400
    leaklab.train(settings, tmp_path / "whole")
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")


def test_validation_leaves_the_test_set_alone(tmp_path, program):
    result = leaklab.train(config(data(), validation=0.25), tmp_path / "run")
    assert result["validation"] == 0.25 and leaklab.evaluate(tmp_path / "run")["images"] == 12
    data().save(tmp_path / "halves.npz")
    done = subprocess.run(
        [program, "train", "--dataset", "npz:halves", "--data-dir", tmp_path / "halves.npz", "--tau", "30",
         "--select", "0.25", "--set=network=1x1x4-16FC-2o", "--set=epochs=1", "--set=time_steps=5",
         "--out", tmp_path / "cli"],
        check=True, capture_output=True, text=True,
    )
    assert "validation accuracy" in done.stdout


def test_a_cell_can_run_twice(tmp_path):
    run = tmp_path / "run"
    first = leaklab.train(config(data()), run, exist_ok=True)
    assert leaklab.train(config(data()), run, exist_ok=True) == first
    with pytest.raises(leaklab.LeakLabError, match=r"has tau = 30, not 10; choose another out="):
        leaklab.train(config(data(), tau=10), run, exist_ok=True)
    with pytest.raises(leaklab.LeakLabError, match="data_sha256"):
        leaklab.train(config(data(shift=1.0)), run, exist_ok=True)
    with pytest.raises(leaklab.LeakLabError, match=r"leaklab\.resume\("):
        leaklab.train(config(data()), run)


def test_training_begins_with_given_weights(tmp_path):
    start = leaklab.Network("1x1x4-16FC-2o", tau=30, seed=77)
    same = leaklab.train(config(data(), learning_rate=1e-30, epochs=1), tmp_path / "still", initial=start)
    assert same["epochs"] == 1
    for name, values in leaklab.Network.load(tmp_path / "still").weights.items():
        assert np.allclose(values, start.weights[name], atol=1e-6), name
    with pytest.raises(leaklab.LeakLabError, match="initial is the network"):
        leaklab.train(config(data()), tmp_path / "other", initial=leaklab.Network("1x1x4-8FC-2o"))


def test_a_network_is_evaluated_on_anything(tmp_path):
    made = data()
    leaklab.train(config(made), tmp_path / "run")
    run, net = leaklab.evaluate(tmp_path / "run"), leaklab.Network.load(tmp_path / "run")
    assert run["accuracy"] > 0.9
    bare = leaklab.evaluate(net, made, time_steps=30, seed=1)
    # A network alone does not say with which leak its weights were trained.
    for key in ("tau", "layer_tau", "readout_tau", "leak"):
        assert run.pop(f"trained_{key}") == run[key]
    assert bare == run | {"epoch": 0}
    images = leaklab.evaluate(net, made.test_images, made.test_labels, time_steps=30, seed=1)
    assert images["images"] == 12 and images["accuracy"] > 0.9
    spikes = leaklab.encode(made.test_images, 30, 1, samples=made.test_samples)
    assert leaklab.evaluate(net, spikes, made.test_labels)["correct"] == run["correct"]
    noisy = leaklab.evaluate(net, made, time_steps=30, noise="deletion", level=1.0)
    assert noisy["stimulus"] == "deletion/channel at 1" and noisy["spike_rate"] == 0
    own = leaklab.evaluate(tmp_path / "run", made.test_images, made.test_labels, noise="gaussian", severity=2)
    assert own["stimulus"] == "gaussian/pixel/2"


def test_a_run_normalises_by_its_own_training_images(tmp_path):
    run, digits = tmp_path / "run", leaklab.load_dataset("digits")
    settings = {"dataset": "digits", "network": "1x8x8-4C3-2P-10o", "tau": 20, "time_steps": 20, "epochs": 1}
    leaklab.train(settings | {"normalise": "per-channel", "seed": 5}, run)
    own = leaklab.evaluate(run)
    # The same test images, together with training images of another brightness.
    dark = digits.train_images // 4
    darker = leaklab.Dataset.from_arrays(dark, digits.train_labels, digits.test_images, digits.test_labels)
    assert leaklab.evaluate(run, digits) == leaklab.evaluate(run, darker) == own
    # By hand: the constants are those of all training images, whichever part of them is presented.
    mean, deviation = digits.train_images.mean() / 255, digits.train_images.std() / 255
    by_hand = lambda images: np.clip((images / 255 - mean) / (2 * deviation), -1, 1).astype(np.float32)
    part = leaklab.load_dataset("digits", train_limit=40, test_limit=40)
    spikes = leaklab.encode(by_hand(part.train_images), 20, 5, samples=part.train_samples)
    expected = leaklab.evaluate(run, spikes, part.train_labels)
    for shown in (leaklab.evaluate(run, train=True, limit=40), leaklab.evaluate(run, part, train=True)):
        assert shown["correct"] == expected["correct"]
        assert shown["sse"] == pytest.approx(expected["sse"], rel=1e-3)
    floats = leaklab.evaluate(run, by_hand(part.test_images), part.test_labels)
    pixels = leaklab.evaluate(run, part.test_images, part.test_labels)
    assert pixels["sse"] == pytest.approx(floats["sse"], rel=1e-3)


def test_arguments_that_do_not_belong_are_refused(tmp_path):
    made, net, run = data(), leaklab.Network("1x1x4-16FC-2o"), tmp_path / "run"
    leaklab.train(config(made, epochs=1), run)
    for call, message in [
        (lambda: leaklab.evaluate(run, severity=3), "without a noise"),
        (lambda: leaklab.evaluate(run, noise="gaussian"), "either severity= .* or level="),
        (lambda: leaklab.evaluate(run, time_steps=5), "time_steps is a setting of the run"),
        (lambda: leaklab.evaluate(net), "needs x="),
        (lambda: leaklab.evaluate(net, made, best=True), "best is for the folder of a run"),
        (lambda: leaklab.evaluate(net, made, made.test_labels), "y is for arrays"),
        (lambda: leaklab.evaluate(net, made.test_images), "need y="),
        (
            lambda: leaklab.evaluate(net, made.test_images, made.test_labels, limit=3),
            "limit is for data sets",
        ),
        (lambda: leaklab.evaluate(net, made.test_images, [0]), "1 labels for 12 samples"),
        (lambda: leaklab.analyse(run, "mechanism", tau=3), "omit tau"),
        (lambda: leaklab.analyse(run, "robustness", images=0), "images is 0"),
        (lambda: leaklab.train({"tau": 30}, tmp_path / "x"), 'add "dataset": "digits"'),
        (lambda: leaklab.load_dataset("npz"), "with data_dir="),
    ]:
        with pytest.raises(leaklab.LeakLabError, match=message):
            call()


def test_calibrated_weights_fire_at_the_rate():
    net = leaklab.Network("1x8x8-8C3-2P-32FC-10o", tau=20, seed=1)
    digits = leaklab.load_dataset("digits", test_limit=20)
    x = leaklab.encode(digits.test_images, 30, 1)
    net.calibrate(x, 0.08)
    counts = net.forward(x).spike_counts
    for layer in (0, 2):
        assert abs(counts[layer].mean() / 30 / 0.08 - 1) < 0.1
    with pytest.raises(leaklab.LeakLabError, match="between 0 and 1"):
        net.calibrate(x, 1.5)


def test_membranes_are_those_of_the_equations():
    net = leaklab.Network("1x1x3-4FC-2o", tau=8, seed=2)
    x = leaklab.encode(np.array([[[[0.9, -0.8, 0.5]]], [[[0.2, 0.7, -0.9]]]]), 25, 1)
    out = net.forward(x, membranes=["fc1", "fc2"])
    weights, decay = net.weights, np.exp(-1 / 8)
    u, v = np.zeros((2, 4)), np.zeros((2, 2))
    spikes = out.spikes("fc1")
    for step in range(25):
        u = decay * u + x[step].reshape(2, 3) @ weights["fc1"].T.astype(float)
        assert np.allclose(out.membranes["fc1"][step], u, atol=1e-5)
        u = u * (1 - spikes[step])
        v = decay * v + spikes[step] @ weights["fc2"].T.astype(float)
        assert np.allclose(out.membranes["fc2"][step], v, atol=1e-5)
    assert np.allclose(v / 25, out.prediction, atol=1e-5)
    assert net.forward(x).membranes == {}
    with pytest.raises(leaklab.LeakLabError, match="there are fc1, fc2"):
        net.forward(x, membranes=["conv1"])


def test_a_gradient_of_zeros_causes_a_warning(tmp_path):
    net = leaklab.Network("1x1x4-8FC-2o", v_th=1e6)
    with pytest.warns(UserWarning, match="gradient of every weight is exactly zero"):
        net.gradients(np.ones((5, 1, 1, 1, 4), "f4"), [0])
    with pytest.warns(UserWarning, match="gradient of every weight is exactly zero"):
        result = leaklab.train(config(data(), v_th=1e6, epochs=1), tmp_path / "run")
    assert "no-gradient" in {notice["kind"] for notice in result["notices"]}


def test_types_can_be_imported():
    from leaklab import Columns, Noise, Path, Scenario  # noqa: F401

    assert "polarity-flip" in Noise.__args__
    stubs = pathlib.Path(leaklab.__file__).with_name("__init__.pyi").read_text()
    listed = re.search(r"^Noise[^=]*= Literal\[(.*?)\]", stubs, re.M | re.S).group(1)
    assert tuple(re.findall(r'"([^"]+)"', listed)) == Noise.__args__, (
        "the stubs list the noises that there are"
    )


def arguments(function):
    """Names, kinds and defaults of a function's arguments."""
    found = inspect.signature(function).parameters.values()
    return [(one.name, one.kind, one.default) for one in found if one.name not in ("self", "cls")]


def test_help_shows_what_the_stubs_declare():
    stubs = ast.parse(pathlib.Path(leaklab.__file__).with_name("__init__.pyi").read_text())
    compared = []
    for node in stubs.body:
        methods = node.body if isinstance(node, ast.ClassDef) else [node]
        for method in methods:
            if not isinstance(method, ast.FunctionDef):
                continue
            owner = getattr(leaklab, node.name) if node is not method else leaklab
            if any(getattr(decorator, "id", "") == "property" for decorator in method.decorator_list):
                assert inspect.isdatadescriptor(inspect.getattr_static(owner, method.name)), method.name
                continue
            ours = owner if method.name in ("__init__", "__new__") else getattr(owner, method.name)
            # The declaration in the stub, as a function.
            method.decorator_list, method.returns = [], None
            for one in [*method.args.args, *method.args.kwonlyargs]:
                one.annotation = None
            names = {}
            exec(compile(ast.Module([method], []), "stub", "exec"), names)
            assert arguments(ours) == arguments(names[method.name]), f"{node.name}.{method.name}"
            assert ours.__doc__, method.name
            compared.append(method.name)
    assert len(compared) > 20 and {"advise", "analyse", "study", "to_nir"} <= set(compared)


@pytest.mark.parametrize("name", ["wine", "breast_cancer", "digits"])
def test_scikit_learns_data_sets(tmp_path, name):
    images, labels, names = sklearn(name)
    made = leaklab.Dataset.from_arrays(images, labels, class_names=names, name=name.replace("_", "-"))
    network = f"1x1x{images.shape[1]}-64FC-{len(names)}o"
    result = leaklab.train(config(made, network, epochs=12), tmp_path / "run")
    assert result["last"]["test_accuracy"] > 0.85, result["last"]
    assert leaklab.evaluate(tmp_path / "run")["correct"] == leaklab.evaluate(
        leaklab.Network.load(tmp_path / "run"), made, time_steps=30, seed=1)["correct"]
    assert len(leaklab.analyse(tmp_path / "run", "robustness")["accuracy"]) == 9


def test_scikit_learns_digits_are_the_embedded_ones():
    images, labels, _ = sklearn("digits")
    made = leaklab.Dataset.from_arrays(images.reshape(-1, 8, 8), labels)
    digits = leaklab.load_dataset("digits")
    assert np.array_equal(made.train_images, digits.train_images)
    assert (
        np.array_equal(made.test_images, digits.test_images)
        and np.array_equal(made.test_labels, digits.test_labels)
    )


def test_a_study_of_arrays_has_a_page(tmp_path):
    events = []
    made = data(count=120)
    asked = config(made, tau=[5, float("inf")], seeds=[1, 2], epochs=4)
    result = leaklab.study(asked, tmp_path / "study", callback=events.append)
    assert len(result["runs"]) == 4 and pathlib.Path(result["report"]).stat().st_size > 100_000
    assert {event["event"] for event in events} >= {"theory", "epoch", "analysed", "compared"}
    assert "claims" in leaklab.tables(tmp_path / "study")
    before = weights(result["runs"][0]["run"])
    assert leaklab.study(asked, tmp_path / "study")["runs"] == result["runs"]
    assert weights(result["runs"][0]["run"]) == before
    compared = leaklab.compare(tmp_path / "study")
    assert np.array_equal(compared["claims"]["claim"], leaklab.tables(tmp_path / "study")["claims"]["claim"])
    page = leaklab.report(result["runs"][0]["run"], tmp_path / "run.html")
    assert page == tmp_path / "run.html" and page.exists()
    with pytest.raises(leaklab.LeakLabError, match="other data"):
        leaklab.study(asked | {"dataset": data(count=120, shift=1.0)}, tmp_path / "study")


def test_the_typed_example_runs(tmp_path):
    import typed_example

    typed_example.main(tmp_path)
