"""Makes crates/lab/tests/fixtures/svhn-*.mat: MATLAB 5 files in the layout of SVHN, with known pixels.

    python tools/svhn_fixture.py crates/lab/tests/fixtures           # needs numpy and scipy
    python tools/svhn_fixture.py --from TRAIN.bin TEST.bin FOLDER    # real images, from separate record files
"""

import sys
from pathlib import Path

import numpy as np
from scipy.io import savemat


def save(path, images, labels, compressed):
    """images [n][channel][row][column], labels 0 to 9."""
    x = np.ascontiguousarray(images.transpose(2, 3, 1, 0))
    y = np.where(labels == 0, 10, labels).astype(np.uint8)[:, None]
    savemat(path, {"X": x, "y": y}, do_compression=compressed)


if sys.argv[1] == "--from":
    for source, name in zip(sys.argv[2:4], ["train_32x32.mat", "test_32x32.mat"]):
        records = np.fromfile(source, np.uint8).reshape(-1, 3073)
        save(Path(sys.argv[4]) / name, records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0], True)
else:
    n, c, y, x = np.ogrid[0:5, 0:3, 0:32, 0:32]
    images = ((n * 50 + c * 20 + y * 3 + x // 4) % 256).astype(np.uint8)
    labels = np.array([0, 1, 9, 5, 0])
    for compressed in (True, False):
        name = "svhn-compressed.mat" if compressed else "svhn-plain.mat"
        save(Path(sys.argv[1]) / name, images, labels, compressed)
