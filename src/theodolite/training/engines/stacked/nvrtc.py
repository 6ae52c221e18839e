"""Compile CUDA C at run time with the NVRTC that torch installs, and launch it.

Nothing is needed but what a CUDA build of torch installs: no toolkit, no header. Both
NVRTC and the driver are called by their C interface.
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from theodolite.core import TheodoliteError

# Number of characters of NVRTC's log that an error quotes.
_QUOTED = 300
# CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, in percent.
_CARVEOUT = 9


class CudaProgramError(TheodoliteError, RuntimeError):
    """NVRTC or the CUDA driver is missing, or refuses the program."""


class CudaProgram:
    """CUDA C, compiled for the current device and loaded.

    Args:
        source: Kernels declared ``extern "C"``.

    Raises:
        CudaProgramError: It was not compiled, or not loaded.
    """

    def __init__(self, source: str) -> None:
        self._module = ctypes.c_void_p()
        torch.cuda.current_stream().synchronize()  # makes the device's context current
        _check(_driver().cuModuleLoadData(ctypes.byref(self._module), compiled(source)))

    def kernel(self, name: str, threads: int) -> "CudaKernel":
        """Return a kernel by its name, to be launched in blocks of so many threads."""
        function = ctypes.c_void_p()
        _check(
            _driver().cuModuleGetFunction(
                ctypes.byref(function), self._module, name.encode()
            )
        )
        # As much of the cache as shared memory as there is: more blocks fit.
        _check(_driver().cuFuncSetAttribute(function, _CARVEOUT, 100))
        return CudaKernel(function, threads)


class CudaKernel:
    """A kernel that can be launched."""

    def __init__(self, function: ctypes.c_void_p, threads: int) -> None:
        self._function, self.threads = function, threads

    def resident_blocks(self) -> int:
        """Return how many blocks a multiprocessor holds at once."""
        blocks = ctypes.c_int()
        _check(
            _driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
                ctypes.byref(blocks), self._function, self.threads, ctypes.c_size_t(0)
            )
        )
        return blocks.value

    def __call__(self, grid: tuple[int, int], *given: Tensor | int | float) -> None:
        """Launch on the current stream; numbers arrive as int and float."""
        held = [as_ctypes(one) for one in given]
        places = [ctypes.cast(ctypes.byref(one), ctypes.c_void_p) for one in held]
        _check(
            _driver().cuLaunchKernel(
                self._function,
                *(*grid, 1),
                *(self.threads, 1, 1),
                0,
                ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
                (ctypes.c_void_p * len(places))(*places),
                None,
            )
        )


def as_ctypes(one: Tensor | int | float) -> Any:
    """Return an argument as C takes it."""
    if isinstance(one, Tensor):
        return ctypes.c_void_p(one.data_ptr())
    return ctypes.c_int(one) if isinstance(one, int) else ctypes.c_float(one)


def compiled(source: str) -> bytes:
    """Return machine code for the current device."""
    nvrtc, program = _nvrtc(), ctypes.c_void_p()
    major, minor = torch.cuda.get_device_capability()
    options = [f"--gpu-architecture=sm_{major}{minor}".encode(), b"--std=c++17"]
    given = (ctypes.c_char_p * len(options))(*options)
    place = ctypes.byref(program)
    if nvrtc.nvrtcCreateProgram(place, source.encode(), b"kernel.cu", 0, None, None):
        raise CudaProgramError("NVRTC made no program")
    try:
        if nvrtc.nvrtcCompileProgram(program, len(options), given):
            log = _held(nvrtc, "ProgramLog", program).rstrip(b"\0")
            said = " ".join(log.decode(errors="replace").split())[:_QUOTED]
            raise CudaProgramError(f"NVRTC: {said or 'no reason given'}")
        return _held(nvrtc, "CUBIN", program)
    finally:
        nvrtc.nvrtcDestroyProgram(place)


def _held(nvrtc: ctypes.CDLL, what: str, program: ctypes.c_void_p) -> bytes:
    """Return data of a program that NVRTC holds, such as its log."""
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, text)
    return text.raw


@cache
def _driver() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as missing:
        raise CudaProgramError(f"no driver of CUDA: {missing}") from missing


@cache
def _nvrtc() -> ctypes.CDLL:
    """Load NVRTC of torch's CUDA version, from the system or beside torch."""
    name = f"libnvrtc.so.{(torch.version.cuda or '').split('.')[0]}"
    beside = Path(torch.__file__).parents[1] / "nvidia"
    for place in (name, *sorted(map(str, beside.glob(f"*/lib/{name}")))):
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    raise CudaProgramError(f"{name} is neither on the system nor beside torch")


def _check(code: int) -> None:
    """Raise if the driver returned an error code."""
    if code:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(code, ctypes.byref(text))
        raise CudaProgramError(f"CUDA: {(text.value or b'unknown error').decode()}")
