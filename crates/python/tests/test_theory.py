"""The theory: bit-identical to the program, with NumPy's rules for arrays."""

import json
import subprocess

import numpy as np
import pytest

from leaklab import LeakLabError, theory

OMEGAS = [0.001, 0.1, 1.0, 7.5, 120.0]
DRIVES = [(0.8, 0.05), (1.5, 0.1), (-0.5, 0.3), (20.0, 1.0), (15000.0, 1000.0)]


def table(program, *arguments):
    """A table of the program, as columns."""
    out = subprocess.run(
        [program, "theory", *map(str, arguments), "--json"], check=True, capture_output=True, text=True
    )
    value = json.loads(out.stdout)
    names = [column["name"] for column in value["columns"]]
    return {name: np.array([row[i] for row in value["rows"]], dtype=float) for i, name in enumerate(names)}


@pytest.mark.parametrize("model", ["lif", "if", "eif", "qif"])
def test_values_are_bit_identical_to_those_of_the_program(program, model):
    drives = [(mu, d) for mu, d in DRIVES if model == "lif" or (0 < mu < 100)]
    for mu, d in drives[:3] if model in ("eif", "qif") else drives:
        common = ["--model", model, "--mu", mu, "--d", d]
        omegas = ["--omega", ",".join(map(str, OMEGAS))]
        assert table(program, "rate", *common)["rate"][0] == theory.rate(mu, d, model)
        assert table(program, "rate", *common)["log_rate"][0] == theory.log_rate(mu, d, model)
        assert np.array_equal(
            table(program, "coherence", *common, *omegas)["coherence"], theory.coherence(mu, d, OMEGAS, model)
        )
        spectrum = table(program, "spectrum", *common, *omegas)
        assert np.array_equal(spectrum["spectrum"], theory.power_spectrum(mu, d, OMEGAS, model))
        cross = theory.cross_spectrum(mu, d, OMEGAS, model)
        assert cross.dtype == np.complex128
        assert np.array_equal(spectrum["cross_spectrum_re"], cross.real)
        assert np.array_equal(spectrum["cross_spectrum_im"], cross.imag)


def test_reference_values():
    # 30-digit values of the LIF and of the perfect integrator.
    assert theory.rate(0.8, 0.05) == pytest.approx(0.270631926467207762604238356554, rel=1e-12)
    assert theory.power_spectrum(0.8, 0.05, 0.1) == pytest.approx(0.111371162216176407205518898877, rel=1e-12)
    assert theory.coherence(0.8, 0.05, 0.1) == pytest.approx(0.746978971113594753357935954346, rel=1e-12)
    assert theory.cross_spectrum(0.8, 0.05, 0.1) == pytest.approx(
        0.0912018530403382027391017681474 + 1.18895685582992387575059922409e-3j, rel=1e-12
    )
    assert theory.rate(1.5, 0.1, model="if") == 1.5
    assert theory.coherence(1.5, 0.1, 0.01, model="if") == pytest.approx(
        0.999996098774079546380013698867, rel=1e-12
    )


def test_arrays_broadcast_and_numbers_stay_numbers():
    assert (
        type(theory.coherence(1.5, 0.1, 2.0)) is float
        and type(theory.cross_spectrum(1.5, 0.1, 2.0)) is complex
    )
    mu = np.array([[0.8], [1.5]])
    omega = np.linspace(0.1, 50, 200)
    grid = theory.coherence(mu, 0.1, omega)
    assert grid.shape == (2, 200)
    for i in range(2):
        assert np.array_equal(grid[i], [theory.coherence(mu[i, 0], 0.1, w) for w in omega])
    assert theory.rate(mu, [0.1, 0.2, 0.3]).shape == (2, 3)
    assert theory.rate(np.zeros((0, 2)), 0.1).shape == (0, 2)
    # Integers and other memory layouts are accepted too.
    assert theory.rate(2, 1) == theory.rate(2.0, 1.0)
    assert np.array_equal(theory.coherence(mu, 0.1, omega[::2]), grid[:, ::2])


def test_background_and_refractory_time():
    assert theory.coherence(1.5, 0.05, 1.0, d_bg=0.05) == pytest.approx(
        0.5 * theory.coherence(1.5, 0.1, 1.0), rel=1e-12
    )
    assert 1 / theory.rate(1.5, 0.1, tau_r=0.2) == pytest.approx(1 / theory.rate(1.5, 0.1) + 0.2, rel=1e-12)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: theory.rate(1.0, -0.1), "d = -0.1"),
        (lambda: theory.rate(float("nan"), 0.1), "mu = NaN"),
        (lambda: theory.rate(1.0, 0.1, "hh"), "lif, if, eif, qif"),
        (lambda: theory.rate(-1.0, 0.1, "if"), "mu"),
        (lambda: theory.coherence(1.0, 0.1, [1.0, -2.0]), "omega"),
        (lambda: theory.coherence([1.0, 2.0], 0.1, [1.0, 2.0, 3.0]), "broadcast"),
        (lambda: theory.rate(1.0, 0.1, tau_r=-1.0), "tau_r"),
        (
            lambda: theory.rate(1e300, 0.1),
            r"mu = 1e300 cannot be used: it must be a number from -1e12 to 1e12",
        ),
        (lambda: theory.coherence(0.5, 0.1, 1e300), "it must be a number from 0 to 1e12"),
        (lambda: theory.log_rate(-1, 1e-6, "qif"), "at mu = -1.0, d = 1e-6 the rate of the neuron cannot be"),
        (lambda: theory.coherence(0.5, 0.001, 1e9, "eif"), "omega = 1000000000.0 the response of the neuron"),
    ],
)
def test_refusals_are_sentences(call, words):
    with pytest.raises(LeakLabError, match=words):
        call()


def test_high_frequencies_are_computed():
    # r0 / (omega delta) is the limit of the exponential neuron.
    r0 = theory.rate(0.5, 0.001, "eif")
    chi = theory.cross_spectrum(0.5, 0.001, 300, "eif") / (2 * 0.001)
    assert chi.imag == pytest.approx(r0 / (300 * 0.1), rel=0.02)
    assert 0 < theory.coherence(0.5, 0.001, 300, "eif") < 1e-70
    assert 0 < theory.coherence(0, 0.1, 1000, "qif") < 1e-8
