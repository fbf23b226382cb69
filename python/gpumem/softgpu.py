"""The software GPU in the place of the machine's driver, for every CUDA library of this process.

`gpumem run --softgpu` does the same for a whole program, and more: use it where a program can be started anew.
"""
import os
import sys
import typing

from . import _core
from .errors import BusyError, NoDriverError

__all__ = ["use"]

_used: tuple[object, ...] | None = None


def use(profile: str | None = None, memory: int | str | None = None, devices: int | None = None) -> None:
    """Makes softgpu this process's libcuda.so.1, and that of the processes it starts from now on.

    Before anything else of CUDA: BusyError says what is open already. `profile`: "h200", "a100", "tiny" or
    another name of `gpumem run --profile`, or the path of an .ini file; `memory`: bytes of each device, or "1G";
    `devices`: how many. Again with the same arguments, or with none, does nothing.

    Compilers (NVRTC, nvJitLink) that are opened by Python hand their PTX over from then on. Those that a
    compiled library opens for itself, as PyTorch does, give machine code, which softgpu refuses: `gpumem run`
    reaches them too.
    """
    global _used
    wanted = (profile, memory, devices)
    if _used is not None:
        if wanted not in (_used, (None, None, None)):
            raise BusyError(f"softgpu is in use already, with profile={_used[0]!r}, memory={_used[1]!r}, "
                            f"devices={_used[2]!r}: a process has one driver")
        return
    opened = _mapped("libcuda.so", "libsoftgpu.so")
    if opened:
        raise BusyError(f"a driver is open already, {opened}: use() comes before anything else that uses CUDA")
    audited = _mapped("audit.so")  # below gpumem run, which has everything in place
    before = dict(os.environ)
    settings = _settings(wanted)
    folder = settings["LD_LIBRARY_PATH"].partition(":")[0]
    os.environ.update(settings, NUMBA_CUDA_DRIVER=os.path.join(folder, "libcuda.so.1"))
    try:
        _take_its_place(folder, bool(audited))
    except BaseException:
        os.environ.clear()
        os.environ.update(before)
        raise
    _used = wanted


def _mapped(*names: str) -> str | None:
    """The first file mapped by this process whose name begins as one of these."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            path = line.rstrip("\n").split(None, 5)[5:]
            if path and os.path.basename(path[0]).startswith(names):
                return path[0]
    return None


def _command() -> str:
    library = os.path.realpath(_core.library_file())
    beside = os.path.join(os.path.dirname(os.path.dirname(library)), "bin", "gpumem")
    if os.path.exists(beside):
        return beside
    import shutil
    found = shutil.which("gpumem")
    if not found:
        raise NoDriverError(f"{beside} is missing, and no gpumem is on PATH: is gpumem installed completely?")
    return found


def _settings(wanted: tuple[object, ...]) -> dict[str, str]:
    """The variables that `gpumem run` sets, which checks them too."""
    import logging
    import subprocess
    command = [_command(), "run", "--softgpu"]
    for name, value in zip(("--profile", "--memory", "--devices"), wanted):
        if isinstance(value, bool) or not isinstance(value, (str, int, os.PathLike, type(None))):
            raise TypeError(f"{name[2:]} must not be {type(value)}")
        if value is not None:
            command += [name, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    printer = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(b'='.join(e) for e in os.environb.items()))"
    done = subprocess.run([*command, "--", sys.executable, "-I", "-S", "-c", printer], capture_output=True,
                          check=False)
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode != 0:
        raise (ValueError if done.returncode == 2 else NoDriverError)(said)
    for line in said.splitlines():
        logging.getLogger("gpumem").warning("%s", line)
    found = dict(entry.split("=", 1) for entry in os.fsdecode(done.stdout).split("\0"))
    return {name: value for name, value in found.items() if os.environ.get(name) != value and name != "LC_CTYPE"}


def _take_its_place(folder: str, audited: bool) -> None:
    import ctypes
    ctypes.CDLL(os.path.join(folder, "libcuda.so.1"))
    runtime = os.environ.get("GPUMEM_RUNTIME")
    if audited or os.environ.get("SOFTGPU_KERNELS") == "0":
        return
    for version in ("12", "13"):
        library = os.path.join(runtime or "", version, f"libcudart.so.{version}")
        if runtime and os.path.exists(library):
            ctypes.CDLL(library)
    clients = os.path.join(os.path.dirname(folder), "clients")
    if os.path.exists(os.path.join(clients, "audit.so")):
        _watch_compilers(ctypes, os.path.join(clients, "audit.so"))
    if runtime and os.path.exists(os.path.join(clients, "python.zip")):
        _watch_bindings(os.path.join(clients, "python.zip"))


def _watch_compilers(ctypes: typing.Any, path: str) -> None:
    """What the dynamic linker tells an auditor, for libraries that ctypes opens: cuda.core, cuda.bindings and
    numba open theirs so."""
    auditor = ctypes.CDLL(path)
    auditor.la_objsearch.restype = ctypes.c_char_p
    auditor.la_objopen.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p]
    information = ctypes.CDLL(None).dlinfo
    information.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    seen: dict[int, typing.Any] = {}
    original = ctypes._dlopen

    def look_at(handle: int) -> None:
        link_map, cookie = ctypes.c_void_p(), ctypes.c_size_t()
        if information(handle, 2, ctypes.byref(link_map)) == 0 and link_map.value not in seen:  # RTLD_DI_LINKMAP
            seen[link_map.value] = cookie
            auditor.la_objopen(link_map, 0, ctypes.byref(cookie))  # LM_ID_BASE

    def dlopen(name: typing.Any, mode: int = ctypes.DEFAULT_MODE) -> int:
        base = os.path.basename(os.fsdecode(name)).lower() if name else ""
        if base.startswith("libcudart"):
            cookie = ctypes.c_size_t()
            name = os.fsdecode(auditor.la_objsearch(os.fsencode(name), ctypes.byref(cookie), 1))  # LA_SER_ORIG
        handle = int(original(name, mode))
        if "nvrtc" in base or "nvjitlink" in base:
            look_at(handle)
        return handle

    ctypes._dlopen = dlopen


def _watch_bindings(archive: str) -> None:
    """cuda.bindings has NVIDIA's runtime inside; the table of it that others call by is filled with ours."""
    import importlib.util
    import zipimport
    source = zipimport.zipimporter(archive).get_source("sitecustomize") or ""
    spec = importlib.util.spec_from_loader("gpumem._cuda_runtime", loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = os.path.join(archive, "sitecustomize.py")
    exec(compile(source, module.__file__, "exec"), vars(module))  # pylint: disable=exec-used
    sys.modules[spec.name] = module
