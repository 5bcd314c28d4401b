"""The CUDA driver through ctypes: kernels of a bundle, launched from PyTorch's context."""

import ctypes
import json
import pathlib
import re
import time

import torch

cuda = ctypes.CDLL("libcuda.so.1")
SWIZZLE_128B, PROMOTE_256B = 3, 3
TENSOR_TYPES = {"f16": 6, "f32": 7, "bf16": 9}
DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
JIT_ERRORS, JIT_ERRORS_BYTES = 5, 6
OVERLAPS = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION


def check(code, what):
    if code:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"{what}: {text.value}")


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""
    _fields_ = [(name, ctypes.c_uint) for name in
                ["grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared"]]
    _fields_ += [("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute."""
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_int),
                ("rest", ctypes.c_int * 15)]


class Kernel:
    """A kernel of the bundle, compiled by the driver; `jit` is how many seconds that took."""

    def __init__(self, folder, entry):
        self.entry = entry
        text = (folder / f"{entry['name']}.ptx").read_bytes()
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        log = ctypes.create_string_buffer(1 << 16)
        options = (ctypes.c_int * 2)(JIT_ERRORS, JIT_ERRORS_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        began = time.perf_counter()
        code = cuda.cuModuleLoadDataEx(ctypes.byref(module), text, 2, options, values)
        self.jit = time.perf_counter() - began
        check(code, f"{entry['name']}: {log.value.decode()}")
        name = entry["name"].encode()
        check(cuda.cuModuleGetFunction(ctypes.byref(self.function), module, name), "cuModuleGetFunction")
        if entry["shared"]:
            check(cuda.cuFuncSetAttribute(self.function, DYNAMIC_SHARED, entry["shared"]), "shared memory")

    def prepare(self, **values):
        """A function that launches with these tensors and numbers."""
        held, pointers = [], []
        for param in self.entry["params"]:
            value = values[param["name"]]
            if "tensor" in param:
                argument = tensor_map(value, param)
            elif "pointer" in param:
                argument = ctypes.c_uint64(value.data_ptr())
            elif param["scalar"] == "f32":
                argument = ctypes.c_float(value)
            else:
                argument = ctypes.c_uint32(value)
            held.append(argument)
            pointers.append(ctypes.addressof(argument))
        array = (ctypes.c_void_p * len(pointers))(*pointers)
        grid = [self.extent(extent, values) for extent in self.entry["grid"]]
        attribute = LaunchAttribute(OVERLAPS, 0, 1)
        count = 1 if self.entry["overlaps"] else 0
        config = LaunchConfig(*grid, *self.entry["block"], self.entry["shared"], None,
                              ctypes.addressof(attribute), count)

        def launch(held=(held, values, attribute)):
            config.stream = torch.cuda.current_stream().cuda_stream
            code = cuda.cuLaunchKernelEx(ctypes.byref(config), self.function, array, None)
            check(code, self.entry["name"])

        return launch

    @staticmethod
    def extent(extent, values):
        if "fixed" in extent:
            return extent["fixed"]
        if "multiprocessors" in extent:
            count = torch.cuda.get_device_properties(0).multi_processor_count
            return max(1, count * extent["multiprocessors"] // extent["of"])
        return -(-values[extent["param"]] // extent["per"])


def tensor_map(tensor, param):
    """A row-major matrix, or one of several, in boxes with the 128-byte swizzle."""
    dims = 3 if param["planes"] else 2
    rows, cols = tensor.shape[-2:]
    # The driver wants it aligned to 64 bytes.
    raw = ctypes.create_string_buffer(192)
    offset = -ctypes.addressof(raw) % 64
    map_ = (ctypes.c_char * 128).from_buffer(raw, offset)
    pitch = cols * tensor.element_size()
    sizes = (ctypes.c_uint64 * 3)(cols, rows, tensor.numel() // (rows * cols))
    pitches = (ctypes.c_uint64 * 2)(pitch, pitch * rows)
    box = (ctypes.c_uint32 * 3)(param["box"][1], param["box"][0], 1)
    ones = (ctypes.c_uint32 * 3)(1, 1, 1)
    check(cuda.cuTensorMapEncodeTiled(
        ctypes.byref(map_), TENSOR_TYPES[param["tensor"]], dims, ctypes.c_void_p(tensor.data_ptr()),
        sizes, pitches, box, ones, 0, SWIZZLE_128B, PROMOTE_256B, 0), "cuTensorMapEncodeTiled")
    return map_


def bundle(folder, only=""):
    """All kernels by name that the pattern matches; what the driver refuses is reported and left
    out."""
    torch.zeros(1, device="cuda")
    folder = pathlib.Path(folder)
    kernels = {}
    for entry in json.loads((folder / "manifest.json").read_text()):
        if not re.search(only, entry["name"]):
            continue
        try:
            kernels[entry["name"]] = Kernel(folder, entry)
        except RuntimeError as error:
            print("REFUSED", error)
    return kernels


def median_seconds(launches, rounds=7, least=0.02):
    """The median time of one launch, of many in a CUDA graph, so that nothing waits for Python;
    several launches with buffers of their own are rotated. Copies must be kernels: graphs leave
    others to another, slower engine."""
    for launch in launches:
        launch()
    torch.cuda.synchronize()
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < least:
        launches[count % len(launches)]()
        torch.cuda.synchronize()
        count += 1
    repeat = -(-max(count, 3) // len(launches)) * len(launches)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(repeat):
            launches[i % len(launches)]()
    graph.replay()
    times = []
    for _ in range(rounds):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3 / repeat)
    return sorted(times)[rounds // 2]
