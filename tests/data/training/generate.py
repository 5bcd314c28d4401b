"""Writes losses.txt: the losses of 200 steps of two nets by JAX and optax, which `tests/lazy/training.rs` follows.

    pip install jax optax && python tests/data/training/generate.py
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

STEPS = 200
BATCH = 16


def numbers(seed, shape, scale):
    """Returns numbers of one sign and the other, which the test makes in the same way."""
    at = np.arange(np.prod(shape), dtype=np.int64)
    values = ((at * 7919 + seed * 104729) % 1009) / 1009 - 0.5
    return jnp.array((values * scale).reshape(shape), jnp.float32)


labels = jnp.arange(BATCH) * 3 % 10


def cross_entropy(logits):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def perceptron(p, x):
    x = jax.nn.relu(x @ p[0] + p[1])
    x = jax.nn.relu(x @ p[2] + p[3])
    return cross_entropy(x @ p[4] + p[5])


def convolve(x, weights, stride, padding):
    return jax.lax.conv_general_dilated(x, weights, stride, padding, dimension_numbers=("NCHW", "OIHW", "NCHW"))


def pool(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))


def convolutional(p, x):
    x = pool(jax.nn.gelu(convolve(x, p[0], (1, 1), "SAME") + p[1][:, None, None], approximate=False))
    x = jax.nn.silu(convolve(x, p[2], (2, 2), "VALID"))
    return cross_entropy(x.reshape(BATCH, -1) @ p[3])


NETS = [
    (perceptron, optax.adam(1e-3), (BATCH, 784), [
        ((784, 256), 0.1), ((256,), 0), ((256, 128), 0.2), ((128,), 0), ((128, 10), 0.3), ((10,), 0),
    ]),
    (convolutional, optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.05, 0.9)), (BATCH, 1, 12, 12), [
        ((6, 1, 3, 3), 1), ((6,), 0), ((8, 6, 2, 2), 1), ((72, 10), 0.5),
    ]),
]

lines = []
for net, rule, shape, shapes in NETS:
    x = numbers(99, shape, 2)
    parameters = [numbers(seed, own, scale) for seed, (own, scale) in enumerate(shapes)]
    state = rule.init(parameters)

    @jax.jit
    def step(parameters, state):
        loss, gradients = jax.value_and_grad(net)(parameters, x)
        moved, state = rule.update(gradients, state, parameters)
        return optax.apply_updates(parameters, moved), state, loss

    losses = []
    for _ in range(STEPS):
        parameters, state, loss = step(parameters, state)
        losses.append(f"{loss:.5g}")
    lines.append(" ".join(losses))
Path(__file__).with_name("losses.txt").write_text("\n".join(lines) + "\n")
