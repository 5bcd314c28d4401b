"""Measures a bundle of PTX kernels beside PyTorch (cuBLAS) in one process, on random normal data.

python3 benches/ptx/run.py FOLDER [RESULTS.json [PATTERN]], the pattern of the kernels' names. Writes RESULTS.md too,
for `cargo xtask bench ptx --save --from RESULTS.md`.
"""

import datetime
import json
import pathlib
import sys

import torch

from driver import bundle, median_seconds

torch.manual_seed(1)
kernels = bundle(sys.argv[1], *sys.argv[3:4])
results = []
torch.backends.cuda.matmul.allow_tf32 = False
L2_BYTES = 256 << 20


def report(what, shape, ours, theirs, unit, error, copy=None):
    """Rates of ours, of PyTorch and of a copy; one of the last two may be missing."""
    percent = 100 * ours / (theirs or copy)
    results.append(dict(kernel=what, shape=shape, ours=ours, theirs=theirs, copy=copy, unit=unit, percent=percent,
                        error=error))
    print(f"{what:34} {shape:>18} {ours:8.1f} {theirs or copy:8.1f} {unit:8} {percent:6.1f}%  error {error:.1e}",
          flush=True)


def rate(value):
    return "–" if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def markdown():
    """The results as a section of Markdown."""
    lines = [f"## {torch.cuda.get_device_name()}", "",
             f"- date: {datetime.date.today()}",
             "- command: `cargo xtask bench ptx`, and there `python3 run.py kernels results.json`",
             f"- PyTorch {torch.__version__}", "",
             "| kernel | shape | ours | PyTorch | copy | unit | error |",
             "|---|---|---:|---:|---:|---|---:|"]
    for row in results:
        rates = " | ".join(rate(row[who]) for who in ["ours", "theirs", "copy"])
        lines.append(f"| {row['kernel']} | {row['shape']} | {rates} | {row['unit']} | {row['error']:.0e} |")
    return "\n".join(lines) + "\n"


def relative(actual, expected):
    return ((actual.double() - expected).norm() / expected.norm()).item()


def copies(make, bytes_each):
    """Buffers to rotate, together larger than the L2 cache."""
    count = max(1, min(16, -(-L2_BYTES // bytes_each)))
    return [make() for _ in range(count)]


def gemm(name, dtype, out, m, n, k, check_rows=256):
    if name not in kernels:
        return
    size = torch.empty(0, dtype=dtype).element_size()
    sets = copies(lambda: (torch.randn(m, k, device="cuda").to(dtype),
                           torch.randn(k, n, device="cuda").to(dtype),
                           torch.full((m, n), float("nan"), device="cuda", dtype=out)),
                  (m * k + k * n + m * n) * size)
    launches = [kernels[name].prepare(a=a, b=b, c=c, m=m, n=n, k=k, alpha=1.0, beta=0.0)
                for a, b, c in sets]
    launches[0]()
    torch.cuda.synchronize()
    a, b, c = sets[0]
    rows = slice(max(0, m - check_rows), m)
    error = relative(c[rows], a[rows].double() @ b.double())
    if not torch.isfinite(c).all():
        error = float("nan")
    ours = median_seconds(launches)
    theirs = median_seconds([lambda a=a, b=b: torch.matmul(a, b) for a, b, _ in sets])
    flops = 2 * m * n * k / 1e12
    report(name, f"{m}x{n}x{k}", flops / ours, flops / theirs, "TFLOP/s", error)


def split_gemm(cols, ty, dtype, m, n, k):
    """A product whose k is divided, and the sum of its parts."""
    name = f"gemm_wgmma_split_128x{cols}_{ty}_f32"
    if name not in kernels:
        return
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    tiles = -(-m // 128) * -(-n // cols)
    splits = max(1, min(multiprocessors // tiles, -(-k // 256)))
    sets = copies(lambda: (torch.randn(m, k, device="cuda").to(dtype),
                           torch.randn(k, n, device="cuda").to(dtype),
                           torch.full((m, n), float("nan"), device="cuda", dtype=dtype)),
                  (m * k + k * n + m * n) * 2)
    sums = torch.full((splits, m, n), float("nan"), device="cuda")
    pairs = [(kernels[name].prepare(a=a, b=b, c=sums, m=m, n=n, k=k, splits=splits),
              kernels["split_sum_" + ty].prepare(sums=sums, c=c, m=m, n=n, splits=splits, alpha=1.0,
                                                 beta=0.0))
             for a, b, c in sets]
    launches = [lambda pair=pair: (pair[0](), pair[1]()) for pair in pairs]
    launches[0]()
    torch.cuda.synchronize()
    a, b, c = sets[0]
    error = relative(c, a.double() @ b.double())
    if not torch.isfinite(c).all():
        error = float("nan")
    ours = median_seconds(launches)
    theirs = median_seconds([lambda a=a, b=b: torch.matmul(a, b) for a, b, _ in sets])
    flops = 2 * m * n * k / 1e12
    report(f"{name} in {splits}", f"{m}x{n}x{k}", flops / ours, flops / theirs, "TFLOP/s", error)


def measure_rows(name, launch, x, y, reference, check_rows):
    """A launch that makes `y` of the rows `x`, beside a copy and PyTorch's function."""
    launch()
    torch.cuda.synchronize()
    part = slice(max(0, len(x) - check_rows), len(x))
    error = relative(y[part], reference(x[part].double()))
    if not torch.isfinite(y).all():
        error = float("nan")
    gigabytes = 2 * x.numel() * 4 / 1e9
    ours = gigabytes / median_seconds([launch])
    copy = gigabytes / median_seconds([lambda: torch.add(x, 0, out=y)])
    torch_ = gigabytes / median_seconds([lambda: reference(x)])
    report(name, "x".join(map(str, x.shape)), ours, torch_, "GB/s", error, copy)


def rows(name, reference, cols, extra={}):
    if name not in kernels:
        return
    count = (256 << 20) // 4 // cols
    x = torch.randn(count, cols, device="cuda")
    y = torch.full_like(x, float("nan"))
    launch = kernels[name].prepare(x=x, y=y, rows=count, cols=cols, **extra)
    measure_rows(name, launch, x, y, reference, 512)


def rows_in_parts(name, reference, count, cols, extra={}):
    """Rows that many blocks share: numbers of each part, then the rest."""
    first, second = name + "_parts_v4_statistics", name + "_parts_v4"
    if first not in kernels or second not in kernels:
        return
    x = torch.randn(count, cols, device="cuda")
    y = torch.full_like(x, float("nan"))
    numbers = torch.full((count, -(-cols // 8192), 2), float("nan"), device="cuda")
    values = dict(x=x, y=y, numbers=numbers, rows=count, cols=cols, **extra)
    pair = [kernels[kernel].prepare(**values) for kernel in (first, second)]
    measure_rows(second, lambda: (pair[0](), pair[1]()), x, y, reference, 16)


def attention(name, dtype, batch, heads, kv_heads, seq, dim, causal):
    if name not in kernels:
        return
    q, o = (torch.randn(batch, heads, seq, dim, device="cuda").to(dtype) for _ in range(2))
    k, v = (torch.randn(batch, kv_heads, seq, dim, device="cuda").to(dtype) for _ in range(2))
    o.fill_(float("nan"))
    launch = kernels[name].prepare(q=q, k=k, v=v, o=o, batch=batch, heads=heads, kv_heads=kv_heads,
                                   seq_q=seq, seq_k=seq, scale=dim ** -0.5)
    launch()
    torch.cuda.synchronize()
    sharing = heads // kv_heads
    first = slice(seq - 128, seq)
    scores = q[0, -1, first].double() @ k[0, -1].double().T * dim ** -0.5
    if causal:
        seen = torch.ones(seq, seq, device="cuda", dtype=torch.bool).tril()[first]
        scores = scores.masked_fill(~seen, float("-inf"))
    error = relative(o[0, -1, first], torch.softmax(scores, -1) @ v[0, -1].double())
    if not torch.isfinite(o).all():
        error = float("nan")
    ours = median_seconds([launch])
    sdpa = torch.nn.functional.scaled_dot_product_attention
    theirs = median_seconds([lambda: sdpa(q, k, v, is_causal=causal, enable_gqa=sharing > 1)])
    flops = 4 * batch * heads * seq * seq * dim / (2 if causal else 1) / 1e12
    report(name, f"{batch}x{heads}/{kv_heads}x{seq}", flops / ours, flops / theirs, "TFLOP/s", error)


def decode(group, batch, heads, kv_heads, length):
    """One query a sequence over a cache, in bytes of keys and values."""
    name = f"attention_decode_bf16_128_{group}"
    if name not in kernels:
        return
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    splits = max(1, min(8 * multiprocessors // (batch * heads // group), length // 64))
    q, o = (torch.randn(batch, heads, 1, 128, device="cuda").bfloat16() for _ in range(2))
    o.fill_(float("nan"))
    cache = lambda: torch.randn(batch, kv_heads, length, 128, device="cuda").bfloat16()
    bytes_ = 2 * batch * kv_heads * length * 128 * 2
    sets = copies(lambda: (cache(), cache()), bytes_)
    sums = torch.full((batch * heads, splits, 128), float("nan"), device="cuda")
    stats = torch.full((batch * heads, splits, 2), float("nan"), device="cuda")
    lengths = torch.full((batch,), length, device="cuda", dtype=torch.int32)
    pairs = [(kernels[name].prepare(q=q, k=k, v=v, sums=sums, stats=stats, lengths=lengths,
                                    batch=batch, heads=heads, kv_heads=kv_heads, capacity=length,
                                    splits=splits, scale=128 ** -0.5),
              kernels["attention_decode_sum_bf16_128"].prepare(
                  sums=sums, stats=stats, o=o, rows=batch * heads, splits=splits))
             for k, v in sets]
    launches = [lambda pair=pair: (pair[0](), pair[1]()) for pair in pairs]
    launches[0]()
    torch.cuda.synchronize()
    k, v = (x.double().repeat_interleave(heads // kv_heads, 1) for x in sets[0])
    scores = torch.softmax(q.double() @ k.transpose(-1, -2) * 128 ** -0.5, -1)
    error = relative(o, scores @ v)
    del k, v
    ours = median_seconds(launches)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    theirs = median_seconds([lambda k=k, v=v: sdpa(q, k, v, enable_gqa=heads > kv_heads)
                             for k, v in sets])
    report(name, f"{batch}x{heads}/{kv_heads}x{length}", bytes_ / 1e9 / ours, bytes_ / 1e9 / theirs,
           "GB/s", error)


def small_kernels(n=1 << 26):
    """Elementwise functions and reductions of 256 MB, beside PyTorch's."""
    a, b, y = (torch.randn(n, device="cuda") for _ in range(3))
    silu, gelu = torch.nn.functional.silu, torch.nn.functional.gelu
    for name, values, theirs in [
            ("add", dict(a=a, b=b), lambda a=a, b=b: a + b),
            ("swiglu", dict(a=a, b=b), lambda a=a, b=b: silu(a) * b),
            ("gelutanh", dict(x=a), lambda a=a: gelu(a, approximate="tanh"))]:
        name = f"elementwise_{name}_f32"
        if name not in kernels:
            continue
        launch = kernels[name].prepare(**values, y=y, n=n)
        launch()
        torch.cuda.synchronize()
        error = relative(y, theirs().double())
        gigabytes = (len(values) + 1) * n * 4 / 1e9
        report(name, str(n), gigabytes / median_seconds([launch]), gigabytes / median_seconds([theirs]),
               "GB/s", error)
    parts = torch.full((4096,), float("nan"), device="cuda")
    total = torch.full((1,), float("nan"), device="cuda")
    count = 4 * torch.cuda.get_device_properties(0).multi_processor_count
    for name, values, theirs in [("sum", dict(x=a), lambda: a.sum()),
                                 ("dot", dict(x=a, z=b), lambda: torch.dot(a, b))]:
        if f"reduce_{name}_f32_parts" not in kernels:
            continue
        first = kernels[f"reduce_{name}_f32_parts"].prepare(**values, y=parts, n=n)
        last = kernels["reduce_sum_f32"].prepare(x=parts, y=total, n=count)
        launch = lambda: (first(), last())
        launch()
        torch.cuda.synchronize()
        exact = a.double().sum() if name == "sum" else torch.dot(a.double(), b.double())
        size = a.double().abs().sum() if name == "sum" else torch.dot(a.double().abs(), b.double().abs())
        error = ((total.double() - exact).abs() / size).item()
        gigabytes = len(values) * n * 4 / 1e9
        report(f"reduce_{name}", str(n), gigabytes / median_seconds([launch]),
               gigabytes / median_seconds([theirs]), "GB/s", error)


BLOCKS = {"q4_0": (32, 18, [0]), "q8_0": (32, 34, [0]), "q4_k": (256, 144, [0, 2]),
          "q5_k": (256, 176, [0, 2]), "q6_k": (256, 210, [208])}


def weights(format_, count):
    """Blocks of random bits with scales of normal size."""
    _, size, scales = BLOCKS[format_]
    blocks = torch.randint(0, 256, (count, size), dtype=torch.uint8, device="cuda")
    for at in scales:
        scale = (torch.randn(count, 1, device="cuda") * 0.01).half()
        blocks[:, at:at + 2] = scale.view(torch.uint8)
    return blocks


def quantised_gemm(format_, m, n, k):
    """Rows of bf16 times quantised weights, beside PyTorch's product with the same in bf16."""
    wide = -(-m // 128) * -(-n // 256) >= 128
    tile = "16x32" if m <= 16 else "32x64" if m <= 64 else "128x256" if wide else "128x128"
    name = f"gemm_{format_}_bf16_{tile}"
    if name not in kernels:
        return
    values, size, _ = BLOCKS[format_]
    count = n * k // values
    sets = copies(lambda: weights(format_, count), count * size)
    full = torch.full((n, k), float("nan"), device="cuda")
    kernels["dequantize_" + format_].prepare(w=sets[0], y=full, blocks=count)()
    dense = copies(lambda: torch.randn(n, k, device="cuda").bfloat16(), n * k * 2)
    x = torch.randn(m, k, device="cuda").bfloat16()
    y = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
    launches = [kernels[name].prepare(w=w, x=x, y=y, m=m, n=n, k=k) for w in sets]
    launches[0]()
    torch.cuda.synchronize()
    last = slice(max(0, m - 256), m)
    error = relative(y[last], x[last].double() @ full.double().T)
    if not torch.isfinite(y).all():
        error = float("nan")
    ours = median_seconds(launches)
    theirs = median_seconds([lambda w=w: torch.matmul(x, w.T) for w in dense])
    flops = 2 * m * n * k / 1e12
    report(name, f"{m}x{n}x{k}", flops / ours, flops / theirs, "TFLOP/s", error)


def gemv(method, format_, rows_, cols):
    name = f"{method}_{format_}"
    if name not in kernels:
        return
    values, size, _ = BLOCKS[format_]
    count = rows_ * cols // values
    sets = copies(lambda: weights(format_, count), count * size)
    x, y = torch.randn(cols, device="cuda"), torch.full((rows_,), float("nan"), device="cuda")
    kernel = kernels[name]
    launches = [kernel.prepare(w=w, x=x, y=y, rows=rows_, cols=cols) for w in sets]
    launches[0]()
    full = torch.full((rows_, cols), float("nan"), device="cuda")
    kernels["dequantize_" + format_].prepare(w=sets[0], y=full, blocks=count)()
    torch.cuda.synchronize()
    error = relative(y, full.double() @ x.double())
    gigabytes = count * size / 1e9
    ours = gigabytes / median_seconds(launches)
    big = torch.empty(1 << 28, device="cuda")
    other = torch.empty_like(big)
    copy = 2 * big.numel() * 4 / 1e9 / median_seconds([lambda: torch.add(big, 0, out=other)])
    report(name, f"{rows_}x{cols}", ours, None, "GB/s", error, copy)


def packed_weights(format_, rows_, cols):
    """Words, scales and offsets of groups of 32, and the weights that they stand for."""
    if format_ == "floats":
        full = torch.randn(rows_, cols, device="cuda")
        return full, full, full
    scales = torch.randn(rows_ * cols // 32, 2, device="cuda")
    low, high, kind = (-128, 128, torch.int8) if format_ == "bytes" else (0, 16, torch.uint8)
    integers = torch.randint(low, high, (rows_ * cols,), dtype=kind, device="cuda")
    words = integers if format_ == "bytes" else integers[0::2] | integers[1::2] << 4
    full = integers.float().view(-1, 32) * scales[:, :1] + scales[:, 1:]
    return words, scales, full.view(rows_, cols)


def packed(format_, tokens, rows_, cols, method=""):
    name = f"multiply_{format_}{method}"
    if name not in kernels:
        return
    bytes_each = rows_ * cols * {"floats": 4, "bytes": 1.25, "nibbles": 0.75}[format_]
    sets = copies(lambda: packed_weights(format_, rows_, cols), int(bytes_each))
    x, y = torch.randn(tokens, cols, device="cuda"), torch.full((tokens, rows_), float("nan"), device="cuda")
    numbers = dict(tokens=tokens, rows=rows_, k=cols, stride=rows_, adds=0, group_shift=1, least=0.0, scale=1.0,
                   normalises=0, epsilon=0.0)
    launches = [kernels[name].prepare(x=x, gain=x, words=words, scales=scales, y=y, **numbers)
                for words, scales, _ in sets]
    launches[0]()
    torch.cuda.synchronize()
    full = sets[0][2]
    error = relative(y, x.double() @ full.double().T)
    seconds = median_seconds(launches)
    shape = f"{tokens}x{rows_}x{cols}"
    if tokens > 3:
        flops = 2e-12 * tokens * rows_ * cols
        report(name, shape, flops / seconds, flops / median_seconds([lambda: x @ full.T]), "TFLOP/s", error)
        return
    big = torch.empty(1 << 28, device="cuda")
    other = torch.empty_like(big)
    copy = 2 * big.numel() * 4 / 1e9 / median_seconds([lambda: torch.add(big, 0, out=other)])
    report(name, shape, bytes_each / 1e9 / seconds, None, "GB/s", error, copy)


def planes(cols, count, m, n, k):
    name = f"multiply_planes_128x{cols}"
    if name not in kernels:
        return

    def parts(rows_):
        full = torch.randn(rows_, k, device="cuda")
        first = full.bfloat16()
        both = torch.stack([first, (full - first).bfloat16()])[:count].contiguous()
        return both, both.double().sum(0)

    (a, full_a), (b, full_b) = parts(m), parts(n)
    y = torch.full((m, n), float("nan"), device="cuda")
    launch = kernels[name].prepare(a=a, b=b, c=y, m=m, n=n, k=k, pitch=n, planes=count, alpha=1.0, beta=0.0)
    launch()
    torch.cuda.synchronize()
    error = relative(y, full_a @ full_b.T)
    flops = 2e-12 * m * n * k
    peer = median_seconds([lambda: a[0] @ b[0].T])
    report(f"{name} of {count}", f"{m}x{n}x{k}", flops / median_seconds([launch]), flops / peer, "TFLOP/s", error)


print(torch.cuda.get_device_name(), torch.__version__)
for kernel in kernels.values():
    print(f"compiled {kernel.entry['name']} in {kernel.jit * 1e3:.0f} ms")
bf16, f16, f32 = torch.bfloat16, torch.float16, torch.float32
for dtype, ty in [(bf16, "bf16"), (f16, "f16")]:
    for cols in [256, 128]:
        for m, n, k in [(200, 264, 136), (2048,) * 3, (4096,) * 3, (8192,) * 3,
                        (16384,) * 3, (4096, 14336, 4096), (128, 4096, 4096), (1, 4096, 14336)]:
            gemm(f"gemm_wgmma_128x{cols}_{ty}_{ty}", dtype, dtype, m, n, k)
        for m, n, k in [(200, 264, 1360), (128, 4096, 4096), (1, 4096, 14336), (512, 4096, 4096)]:
            split_gemm(cols, ty, dtype, m, n, k)
    for m, n, k in [(200, 264, 136), (4096,) * 3, (8192,) * 3, (128, 4096, 4096), (1, 4096, 14336)]:
        gemm(f"gemm_mma_{ty}_{ty}", dtype, dtype, m, n, k)
for causal in [False, True]:
    suffix = "_causal" if causal else ""
    for ty, dtype, dim in [("bf16", bf16, 128), ("f16", f16, 128), ("bf16", bf16, 64)]:
        for batch, heads, kv_heads, seq in [(2, 4, 2, 300), (2, 16, 16, 8192), (4, 32, 8, 2048)]:
            for method in ["flash", "flash_mma"]:
                name = f"attention_{method}_{ty}_{dim}{suffix}"
                attention(name, dtype, batch, heads, kv_heads, seq, dim, causal)
    for dim in [128, 64]:
        for batch, heads, kv_heads, seq in [(2, 4, 2, 300), (1, 16, 16, 8192), (4, 32, 8, 2048)]:
            attention(f"attention_flash_tiled_f32_{dim}{suffix}", f32, batch, heads, kv_heads, seq, dim, causal)
attention("attention_simple_f32_128", f32, 2, 4, 2, 300, 128, False)
attention("attention_simple_f32_128", f32, 4, 32, 8, 2048, 128, False)
for group, batch, heads, kv_heads, length in [
        (4, 2, 8, 2, 1000), (4, 1, 32, 8, 32768), (4, 16, 32, 8, 4096), (1, 8, 16, 16, 4096)]:
    decode(group, batch, heads, kv_heads, length)
small_kernels()
for format_ in BLOCKS:
    for method in sorted({name[:-5] for name in kernels if name.startswith("gemv")}):
        gemv(method, format_, 4096, 14336)
for format_ in ["floats", "bytes", "nibbles"]:
    for rows_, cols in [(576, 576), (4096, 4096), (4096, 14336), (28672, 4096)]:
        for method in ["", "_digits", "_digits_columns"]:
            packed(format_, 1, rows_, cols, method)
    for tokens, rows_, cols in [(128, 2048, 2048), (128, 4096, 4096), (512, 4096, 4096), (512, 16384, 2048), (512, 2048, 8192)]:
        for method in ["_tiled", "_mma", "_mma_wide"]:
            packed(format_, tokens, rows_, cols, method)
for m, n, k in [(512, 4096, 4096), (512, 28672, 4096), (512, 4096, 14336)]:
    for cols in [128, 256]:
        for count in [1, 2]:
            planes(cols, count, m, n, k)
for format_ in BLOCKS:
    for m in [16, 64, 512, 4096]:
        quantised_gemm(format_, m, 4096, 14336)
for m in [16, 64, 512, 4096]:
    quantised_gemm("q4_k", m, 14336, 4096)
for shape in [(1000, 777, 333), (2048,) * 3, (4096,) * 3]:
    for width in ["v1", "v8"] if shape[0] != 1000 else ["v1"]:
        gemm(f"gemm_wmma_{width}_f16_f32", f16, f32, *shape)
        gemm(f"gemm_wmma_{width}_f16_f16", f16, f16, *shape)
    for name in ["gemm_tiled_128x128x8_v1", "gemm_tiled_128x128x16_v4", "gemm_tiled_64x64x16_v4"]:
        if shape[0] != 1000 or "v1" in name:
            gemm(name, f32, f32, *shape)
torch.backends.cuda.matmul.allow_tf32 = True
for shape in [(1000, 776, 332), (2048,) * 3, (4096,) * 3, (8192,) * 3]:
    for name in ["gemm_mma_tf32", "gemm_wgmma_tf32_256x128"]:
        gemm(name, f32, f32, *shape)
torch.backends.cuda.matmul.allow_tf32 = False
gemm("gemm_naive", f32, f32, 1000, 777, 333)
for cols in [1024, 4096, 16384, 32768, 65536, 131072, 262144]:
    weight, bias = torch.randn(cols, device="cuda"), torch.randn(cols, device="cuda")
    norm = torch.nn.functional
    functions = {
        "softmax": (lambda x: torch.softmax(x, -1), {}),
        "layer_norm": (lambda x: norm.layer_norm(x, (cols,), weight.to(x.dtype), bias.to(x.dtype)),
                       dict(weight=weight, bias=bias, epsilon=1e-5)),
        "rms_norm": (lambda x: norm.rms_norm(x, (cols,), weight.to(x.dtype), 1e-5),
                     dict(weight=weight, epsilon=1e-5))}
    for name in [name for name in kernels if kernels[name].entry["cols"] == cols]:
        kind = next(kind for kind in functions if name.startswith(kind))
        rows(name, functions[kind][0], cols, functions[kind][1])
    if cols > 65536:
        for kind, (function, extra) in functions.items():
            rows_in_parts(kind, function, (256 << 20) // 4 // cols, cols, extra)
            rows_in_parts(kind, function, 4, cols, extra)
if len(sys.argv) > 2:
    path = pathlib.Path(sys.argv[2])
    path.write_text(json.dumps(results, indent=1))
    path.with_suffix(".md").write_text(markdown())
