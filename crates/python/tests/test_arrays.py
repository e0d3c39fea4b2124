"""Arrays of any layout, type and size: they are read as NumPy reads them, or refused."""

import decimal
import fractions
import subprocess
import sys

import numpy as np
import pytest

import leaklab

NOTATION = "1x8x8-4C3-2P-10o"
NETWORK = leaklab.Network(NOTATION, tau=30)
DATA = leaklab.load_dataset("digits", test_limit=20)
SPIKES = leaklab.encode(DATA.test_images, 10, 1, samples=DATA.test_samples)
EXPECTED = NETWORK.forward(SPIKES).prediction


def packed(values):
    """The values as a field of a packed structured array: strides are not multiples of the item size."""
    made = np.zeros(values.shape[:1], dtype=[("label", "u1"), ("x", values.dtype, values.shape[1:])])
    made["x"] = values
    return made["x"]


def shifted(values):
    """The values at an address that is not aligned."""
    buffer = np.zeros(values.nbytes + 1, "u1")
    view = buffer[1:].view(values.dtype).reshape(values.shape)
    view[...] = values
    return view


@pytest.mark.parametrize("form", [packed, shifted, np.asfortranarray, lambda x: x[::-1].copy()[::-1]])
def test_layouts_do_not_matter(form):
    assert np.array_equal(NETWORK.forward(form(SPIKES)).prediction, EXPECTED)
    assert leaklab.evaluate(NETWORK, form(SPIKES), DATA.test_labels) == leaklab.evaluate(
        NETWORK, SPIKES, DATA.test_labels
    )
    network = leaklab.Network(NOTATION, tau=30, seed=9)
    network.set_weights({name: form(values) for name, values in NETWORK.weights.items()})
    assert network == NETWORK
    features = np.random.default_rng(1).normal(size=(40, 6))
    labels = np.arange(40) % 2
    made = leaklab.Dataset.from_arrays(form(features), form(labels))
    assert made.digest == leaklab.Dataset.from_arrays(features, labels).digest
    drive = np.linspace(0.5, 1.5, 9)
    assert np.array_equal(leaklab.theory.rate(form(drive), 0.1), leaklab.theory.rate(drive, 0.1))
    images = DATA.test_images / np.float32(128) - np.float32(1)
    assert np.array_equal(leaklab.encode(form(images), 5, 1), leaklab.encode(images, 5, 1))
    mask = np.ones((20, 4, 8, 8))
    gradients = [NETWORK.gradients(SPIKES, DATA.test_labels, masks=[m]).loss for m in (mask, form(mask))]
    assert gradients[0] == gradients[1]


@pytest.mark.parametrize("kind", [">f4", "f8", "f2", "i1", ">i8", "g", object])
def test_types_do_not_matter(kind):
    assert np.array_equal(NETWORK.forward(SPIKES.astype(kind)).prediction, EXPECTED)


def test_objects_are_numbers():
    rows = np.array([[0.5, fractions.Fraction(1, 2), decimal.Decimal("0.5"), True]], dtype=object)
    assert leaklab.theory.rate(rows, 0.1).shape == (1, 4)
    for bad in ("1.5", None, b"1", 1j, np.str_("2"), [1.0]):
        objects = SPIKES.astype(object)
        objects[3, 2, 0, 1, 7] = bad
        with pytest.raises(ValueError, match=r"x\[3, 2, 0, 1, 7\] is .*; a real number is expected"):
            NETWORK.forward(objects)


def test_pixels_are_bytes_or_floats():
    for kind in (bool, np.int8, np.int64, np.uint16, object):
        images = (DATA.test_images > 7).astype(kind)
        with pytest.raises(ValueError, match=r"x has the type .*; pixels are uint8, or floats in \[-1, 1\]"):
            leaklab.evaluate(NETWORK, images, DATA.test_labels)
        with pytest.raises(ValueError, match="images has the type .*; pixels are uint8, or floats"):
            leaklab.encode(images, 5, 1)


def huge(*shape, kind=np.float32):
    """A view of a single number with terabytes of elements."""
    return np.broadcast_to(np.zeros((), kind), shape)


@pytest.mark.parametrize(
    "call",
    [
        lambda: NETWORK.forward(huge(1000, 10**9, 1, 8, 8)),
        lambda: NETWORK.gradients(huge(1000, 10**9, 1, 8, 8), [0]),
        lambda: NETWORK.gradients(SPIKES, huge(10**13, kind=np.int32)),
        lambda: NETWORK.calibrate(huge(1000, 10**9, 1, 8, 8, kind=np.int8), 0.1),
        lambda: leaklab.evaluate(NETWORK, huge(1000, 10**9, 1, 8, 8), [0]),
        lambda: leaklab.evaluate(NETWORK, SPIKES, huge(10**13, kind=np.int64)),
        lambda: leaklab.encode(huge(10**12, 1, 8, 8, kind=np.uint8), 1, 1),
        lambda: leaklab.Dataset.from_arrays(huge(10**12, 6), [0, 1]),
        lambda: leaklab.Dataset.from_arrays(huge(10**13, 6, kind=np.uint8), [0, 1]),
    ],
)
def test_large_views_are_refused_before_they_are_copied(call):
    with pytest.raises(ValueError, match="needs about .* of memory, but only .* is available"):
        call()


def test_shapes_are_checked_before_anything_is_copied():
    with pytest.raises(ValueError, match="weights 'conv1' has shape .* is expected"):
        NETWORK.set_weights({"conv1": huge(10**12, 1, 3, 3)})
    with pytest.raises(ValueError, match=r"masks\[0\] has shape"):
        NETWORK.gradients(SPIKES, DATA.test_labels, masks=[huge(20, 10**12)])
    with pytest.raises(ValueError, match="x has shape"):
        NETWORK.forward(huge(10**12, 2))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report available memory")
def test_results_that_do_not_fit_are_refused():
    script = (
        "import leaklab, numpy, resource\n"
        "network = leaklab.Network('1x8x8-256FC-2o')\n"
        "out = network.forward(numpy.zeros((20000, 40, 1, 8, 8), numpy.int8), membranes='fc2', threads=1)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (150 << 20, 150 << 20))\n"
        "for call in (lambda: out.spikes('fc1'),):\n"
        "    try:\n"
        "        call()\n"
        "    except (ValueError, MemoryError) as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("the spikes of fc1, [20000, 40, 256], needs about 204.8 MB"), done.stdout


def test_a_lack_of_memory_is_reported_as_such():
    class Greedy:
        def __array__(self, dtype=None, copy=None):
            raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        NETWORK.forward(Greedy())


def test_membranes_are_quick_and_named_once():
    out = NETWORK.forward(SPIKES, membranes=["conv1", "fc1", "conv1"])
    assert list(out.membranes) == ["conv1", "fc1"]
    assert np.allclose(out.membranes["fc1"][-1] / 10, out.prediction, atol=1e-6)
