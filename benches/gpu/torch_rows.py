# PyTorch's times of the same work: one line a row, its name, a tab and the seconds.
import time

import torch

# All in f32, by the fastest algorithm.
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True
LEN, MILLION = 1 << 26, 1_000_000


def resident(name, run, turns=20):
    """Seconds of GPU time for one of `turns`, the median of five."""
    samples = []
    for _ in range(6):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(turns):
            run()
        end.record()
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(end) / turns * 1e-3)
    print(f"{name}\t{sorted(samples[1:])[2]}", flush=True)


def trip(name, run, turns=60):
    samples = []
    for _ in range(turns):
        start = time.perf_counter()
        run()
        samples.append(time.perf_counter() - start)
    print(f"{name}\t{sorted(samples)[turns // 2]}", flush=True)


def noise(*shape):
    return torch.rand(*shape, device="cuda") * 2 - 1


SHAPES = [(n, n, n) for n in (256, 512, 1024, 2048, 4096, 8192)]
LAYERS = [(3, 64, 224, 7, 2), (64, 64, 56, 3, 1), (256, 64, 56, 1, 1), (128, 128, 28, 3, 1), (512, 512, 7, 3, 1)]
SHAPES += [(1024, 768, 320), (1000, 777, 333), (4095, 4095, 4095), (4096, 4096, 1), (1, 4096, 4096)]

with torch.inference_mode():
    for m, k, n in SHAPES:
        a, b, c = noise(m, k), noise(k, n), torch.empty(m, n, device="cuda")
        resident(f"matmul {m}×{k}×{n}", lambda: torch.mm(a, b, out=c))
    for n in (1024, 2048, 4096, 8192, 4095):
        a, b, c = noise(n, n).half(), noise(n, n).half(), torch.empty(n, n, device="cuda").half()
        resident(f"matmul {n}×{n}×{n}, f16", lambda: torch.mm(a, b, out=c))
    x, z, y = noise(LEN), noise(LEN), torch.empty(LEN, device="cuda")
    resident("copy", lambda: y.copy_(x))
    resident(f"relu {LEN}", lambda: torch.relu(x))
    resident(f"scale {LEN}", lambda: torch.mul(x, 2, out=y))
    resident(f"gelu {LEN}", lambda: torch.nn.functional.gelu(x))
    resident(f"vec_add {LEN}", lambda: torch.add(x, z, out=y))
    resident(f"sum {LEN}", lambda: torch.sum(x))
    resident(f"max {LEN}", lambda: torch.max(x))
    resident(f"dot {LEN}", lambda: torch.dot(x, z))
    for cols in (64, 256, 1024, 4096, 16384):
        rows = x.view(-1, cols)
        resident(f"softmax, rows of {cols}", lambda: torch.softmax(rows, 1))
    for cols in (64, 256, 1024, 4096, 16384):
        rows, gain, bias = x.view(-1, cols), noise(cols), noise(cols)
        layer_norm = torch.nn.functional.layer_norm
        resident(f"layer norm, rows of {cols}", lambda: layer_norm(rows, (cols,), gain, bias, 1e-5))
    image = noise(1, 1, 4096, 4096)
    for side in (3, 7, 15):
        kernel = noise(1, 1, side, side)
        convolve = torch.nn.functional.conv2d
        run = lambda: convolve(image, kernel, padding=side // 2)
        resident(f"convolve2d 4096², {side}×{side}", run, 4)
    for channels, filters, size, side, stride in LAYERS:
        images, kernel = noise(32, channels, size, size), noise(filters, channels, side, side)
        run = lambda: torch.nn.functional.conv2d(images, kernel, stride=stride, padding=side // 2)
        resident(f"layer {channels}→{filters}, {size}², {side}×{side}", run)
    for length in (1_024, 16_384, 100_000, MILLION):
        host = torch.rand(length) - 0.5
        trip(f"relu {length}", lambda: torch.relu(host.cuda()).cpu(), 200)
    host = torch.rand(MILLION)
    trip(f"softmax {MILLION}", lambda: torch.softmax(host.cuda(), 0).cpu())
    trip(f"sum {MILLION}", lambda: torch.sum(host.cuda()).item())

    def chain():
        on_gpu = host.cuda()
        return torch.add(torch.relu(on_gpu) * 0.5, on_gpu).cpu()

    trip(f"relu → scale → add {MILLION}", chain)
