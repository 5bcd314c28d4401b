"""Writes cases.txt beside this script: results of functions by NumPy, SciPy and PyTorch.

    python3 generate.py

A case is a line with its name, lines `x SHAPE: ELEMENTS` with its inputs, and lines `y SHAPE: ELEMENTS` with its results.
`tests/lazy/numpy.rs` records the function of each name. Needs numpy, scipy and torch.
"""

from pathlib import Path

import numpy as np
import scipy.signal
import torch
import torch.nn.functional as F

generator = np.random.default_rng(7)
lines = []


def line(kind, array):
    array = np.asarray(array)
    shape = ",".join(map(str, array.shape))
    lines.append(f"{kind} {shape}: " + " ".join(f"{value:.8g}" for value in array.ravel().astype(np.float64)))


def case(name, inputs, *results):
    lines.append(name)
    for x in inputs:
        line("x", x)
    for y in results:
        line("y", y)


def normal(*shape):
    # Short decimals keep the file small.
    return (np.round(generator.standard_normal(shape) * 16) / 8).astype(np.float32)


def ranges():
    case("arange 0 5 1", [], np.arange(0.0, 5.0))
    case("arange 1 -2 -0.7", [], np.arange(1.0, -2.0, -0.7))
    case("arange 2 2 1", [], np.arange(2.0, 2.0))
    case("arange 0 -1 1", [], np.arange(0.0, -1.0))
    for count in (0, 1, 2, 7):
        case(f"linspace -1 3 {count}", [], np.linspace(-1.0, 3.0, count))
    case("eye 3 2", [], np.eye(3, 2))
    case("eye 0 2", [], np.eye(0, 2))


def movement():
    x = normal(3, 4)
    case("pad_with 1 0 2 3 5", [x], np.pad(x, ((1, 0), (2, 3)), constant_values=5.0))
    case("pad edge 1 0 2 3", [x], np.pad(x, ((1, 0), (2, 3)), mode="edge"))
    case("pad reflect 1 2 3 0", [x], np.pad(x, ((1, 2), (3, 0)), mode="reflect"))
    empty = normal(0, 2)
    case("pad_with 1 2 0 1 -3", [empty], np.pad(empty, ((1, 2), (0, 1)), constant_values=-3.0))
    for counts in ([2], [2, 3], [2, 1, 3], [0, 2]):
        case("tile " + " ".join(map(str, counts)), [x], np.tile(x, counts))
    scalar = normal(1)[0]
    case("tile 3", [scalar], np.tile(scalar, 3))
    for axis in (0, 1, -1):
        case(f"repeat 3 {axis}", [x], np.repeat(x, 3, axis))
        for shift in (1, -2, 9):
            case(f"roll {shift} {axis}", [x], np.roll(x, shift, axis))
    case("roll 2 0", [empty], np.roll(empty, 2, 0))
    case("flip 0", [x], np.flip(x, 0))
    case("flip 0 1", [x], np.flip(x))
    y = normal(2, 6)
    case("split 3 1", [y], *np.split(y, 3, 1))
    case("split_at 1 4 4 -1", [y], *np.split(y, [1, 4, 4], -1))


def reductions():
    x = normal(3, 5, 2)
    case("prod 1", [x], np.prod(x.astype(np.float64), 1))
    case("prod 0 2", [x], np.prod(x.astype(np.float64), (0, 2)))
    case("prod", [x], np.prod(x.astype(np.float64)))
    case("prod 0", [normal(0, 3)], np.ones(3))
    for p in (0.0, 1.0, 2.0, 3.0, 0.5, -1.0, np.inf, -np.inf):
        wide = x.astype(np.float64)
        case(f"norm {p} 1", [x], np.linalg.norm(wide, p, 1))
    case("norm 2.0", [x], np.linalg.norm(x.astype(np.float64).ravel()))


def elementwise():
    a = np.array([7, -7, 7, -7, 0, -0.0, 5.5, -5.5, 5, -5, np.inf, np.nan, 3, 1e7, 0.3, 6], np.float32)
    b = np.array([3, 3, -3, -3, 3, 3, 2.25, 2.25, np.inf, np.inf, 2, 2, 0, 3, 0.1, 0.7], np.float32)
    with np.errstate(all="ignore"):
        case("modulo", [a, b], np.mod(a, b))
        case("fmod", [a, b], np.fmod(a, b))
        edges = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-38, 3e38, -2.5], np.float32)
        y, x = [part.ravel() for part in np.meshgrid(edges, edges)]
        case("atan2", [y, x], np.arctan2(y.astype(np.float64), x.astype(np.float64)))
        case("logaddexp", [y, x], np.logaddexp(y.astype(np.float64), x.astype(np.float64)))
        ordinary = np.array([0.0, -0.0, 1, -3, 4, np.inf, -np.inf, np.nan, 1e-20, 2e38], np.float32)
        y, x = [part.ravel() for part in np.meshgrid(ordinary, ordinary)]
        case("hypot", [y, x], np.hypot(y.astype(np.float64), x.astype(np.float64)).astype(np.float32))


def sums():
    shapes = {
        "ij,jk->ik": [(3, 4), (4, 2)], "ij,kj": [(3, 4), (2, 4)], "ii": [(3, 3)], "ii->i": [(3, 3)], "iji->j": [(3, 2, 3)],
        "ij->ji": [(3, 2)], "ij->": [(3, 2)], "i,i->": [(5,), (5,)], "i,j->ij": [(2,), (3,)], "i,j->ji": [(2,), (3,)],
        "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)], "bij,bkj->kbi": [(2, 3, 4), (2, 5, 4)], "bi,bi->b": [(3, 4), (3, 4)],
        "bhqd,bhkd->bhqk": [(2, 2, 3, 4), (2, 2, 5, 4)], "...ij,...jk->...ik": [(2, 1, 3, 4), (3, 4, 2)],
        "...i->...": [(2, 3, 4)], "i...,i...->...": [(2, 3), (2, 1)], "ij,jk,kl->il": [(2, 3), (3, 4), (4, 2)],
        "a,ab,abc->abc": [(2,), (2, 3), (2, 3, 2)], "ij,j->i": [(3, 4), (4,)], "i,ij->j": [(3,), (3, 4)], "ij,ij->ij": [(2, 3), (2, 3)],
        "ik,jkl,il->ij": [(2, 3), (4, 3, 2), (2, 2)], "ij,jk->": [(2, 3), (3, 2)], "ab,cd->": [(2, 2), (2, 3)], ",i->i": [(), (3,)],
        "ij,jk->ik ": [(0, 3), (3, 2)], " ij,jk->ik": [(2, 0), (0, 3)], "ba": [(2, 3)], "Ab,bC": [(2, 3), (3, 4)], "ii,ij->j": [(3, 3), (3, 2)],
    }
    for text, own in shapes.items():
        inputs = [normal(*shape) for shape in own]
        case(f"einsum|{text}", inputs, np.einsum(text, *[x.astype(np.float64) for x in inputs]))


def counts():
    x = generator.integers(0, 37, 200).astype(np.float32)
    case("bincount 37", [x], np.bincount(x.astype(int), minlength=37))
    case("bincount 100", [x], np.bincount(x.astype(int), minlength=100))
    weights = normal(200)
    case("bincount 40", [x, weights], np.bincount(x.astype(int), weights, 40))
    values = np.concatenate([normal(300), [-4, 4, np.nan, np.inf]]).astype(np.float32)
    for bins in (1, 5, 64):
        case(f"histogram {bins} -4 4", [values], np.histogram(values, bins, (-4.0, 4.0))[0])


def images():
    for rows, cols, to_rows, to_cols in ((5, 7, 3, 11), (8, 8, 4, 3), (1, 3, 4, 1), (6, 9, 2, 2), (12, 17, 2, 5), (4, 4, 9, 4)):
        x = normal(1, 2, rows, cols)
        for mode in ("nearest", "bilinear", "bicubic"):
            for antialias in (False, True)[: 1 if mode == "nearest" else 2]:
                y = F.interpolate(torch.tensor(x), (to_rows, to_cols), mode=mode, antialias=antialias)
                case(f"resize {mode}{'+' if antialias else ''} {to_rows} {to_cols}", [x], y.numpy())
    for length in (7, 8, 10):
        x = normal(1, 2, length)
        for window, stride, padding in ((2, 2, 0), (3, 2, 1), (3, 1, 1), (4, 3, 2), (2, 3, 1)):
            for is_ceil in (False, True):
                for counts in (False, True):
                    pooled = F.avg_pool1d(torch.tensor(x), window, stride, padding, is_ceil, counts)
                    name = f"avg_pool {window} {stride} {padding} {int(is_ceil)} {int(counts)}"
                    case(name, [x], pooled.numpy())
                pooled = F.max_pool1d(torch.tensor(x), window, stride, padding, ceil_mode=is_ceil)
                case(f"max_pool {window} {stride} {padding} {int(is_ceil)} 1", [x], pooled.numpy())
    x = normal(1, 2, 6, 9)
    case("max_pool2d", [x], F.max_pool2d(torch.tensor(x), (2, 3), (2, 1), (1, 0), ceil_mode=True).numpy())
    case("avg_pool2d", [x], F.avg_pool2d(torch.tensor(x), (3, 2), (2, 2), (1, 1), True, False).numpy())


def scans():
    x = normal(3, 4, 5)
    for axis in (0, 1, -1):
        case(f"cumsum {axis}", [x], np.cumsum(x.astype(np.float64), axis))
        case(f"cumprod {axis}", [x], np.cumprod(x.astype(np.float64), axis))
    edges = np.array([1, np.inf, 2, -np.inf, 3, np.nan, 1], np.float32)
    with np.errstate(all="ignore"):
        case("cumsum 0", [edges], np.cumsum(edges))
        case("cumprod 0", [edges], np.cumprod(edges))
    case("cumsum 1", [normal(2, 0)], np.zeros((2, 0)))


def orders():
    x = generator.integers(-3, 4, (4, 6, 3)).astype(np.float32)
    x[1, 2, :] = np.nan
    x[2, 1, 0], x[2, 4, 0], x[3, 3, 1], x[3, 4, 1] = np.inf, -np.inf, -0.0, 0.0
    for axis in (0, 1, -1):
        case(f"sort {axis}", [x], np.sort(x, axis, kind="stable"))
        case(f"argsort {axis}", [x], np.argsort(x, axis, kind="stable"))
    case("argsort 0", [normal(0)], np.zeros(0))


def pairs(z):
    return np.stack([z.real, z.imag], -1)


def transforms():
    for length in (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 30, 64):
        z = normal(1, length, 2)
        complex_z = z[..., 0].astype(np.float64) + 1j * z[..., 1]
        case("fft 1", [z], pairs(np.fft.fft(complex_z, axis=1)))
        case("ifft -1", [z], pairs(np.fft.ifft(complex_z, axis=1)))
        x = normal(length, 2)
        spectrum = np.fft.rfft(x.astype(np.float64), axis=0)
        case("rfft 0", [x], pairs(spectrum))
        case(f"irfft {length} 0", [pairs(spectrum)], np.fft.irfft(spectrum, length, axis=0))
    for window, hop in ((8, 4), (10, 3)):
        x = normal(2, 41)
        hann = scipy.signal.get_window("hann", window).astype(np.float32)
        y = torch.stft(torch.tensor(x), window, hop, window=torch.tensor(hann), center=True, pad_mode="reflect", return_complex=True)
        case(f"stft {window} {hop}", [x, hann], pairs(y.numpy()))
        back = torch.istft(y, window, hop, window=torch.tensor(hann), center=True, length=41)
        case(f"istft {window} {hop} 41", [pairs(y.numpy()), hann], back.numpy())


def scatters():
    # Draws of its own, so that the cases before stay.
    own = np.random.default_rng(11)
    for shape, axis, indices in (((5,), 0, [3, 0, 3]), ((3, 4), 1, [[1, 3], [1, 0]]), ((2, 3, 2), -2, [2, 2, 2, 0]), ((4, 2), 0, []), ((4,), 0, 2)):
        x = np.round(own.standard_normal(shape) * 16) / 8
        indices = np.array(indices, int)
        at = (slice(None),) * (axis % len(shape)) + (indices,)
        source = np.round(own.standard_normal(x[at].shape) * 16) / 8
        y = x.copy()
        np.add.at(y, at, source)
        case(f"scatter_add {axis}", [x, indices, source], y)


ranges()
movement()
reductions()
elementwise()
sums()
counts()
images()
scans()
orders()
transforms()
scatters()
Path(__file__).with_name("cases.txt").write_text("\n".join(lines) + "\n")
print(sum(1 for text in lines if not text.startswith(("x ", "y "))), "cases")
