"""Writes random blocks of each format and what the `gguf` package (0.19.0) makes of them:
`pip install gguf`, then `python3 crates/ptx/tests/ptx/gguf/make.py`."""

import pathlib

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize

# Bytes of a block, and where its f16 scales lie.
FORMATS = {
    "q4_0": (Type.Q4_0, 18, [0], 24),
    "q8_0": (Type.Q8_0, 34, [0], 24),
    "q4_k": (Type.Q4_K, 144, [0, 2], 6),
    "q5_k": (Type.Q5_K, 176, [0, 2], 6),
    "q6_k": (Type.Q6_K, 210, [208], 6),
}

random = np.random.default_rng(1)
for name, (type_, size, scales, count) in FORMATS.items():
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    for at in scales:
        scale = random.normal(0, 0.01, (count, 1)).astype(np.float16)
        blocks[:, at : at + 2] = scale.view(np.uint8)
    weights = dequantize(blocks.reshape(-1), type_).astype("<f4")
    folder = pathlib.Path(__file__).parent
    (folder / f"{name}.bin").write_bytes(blocks.tobytes() + weights.tobytes())
