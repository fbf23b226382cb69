"""gpumem run puts this first on PYTHONPATH: cuda.bindings calls gpumem's libcudart, as docs/runtime.md says.

cuda.bindings has NVIDIA's runtime linked into one of its modules, where nothing can be put in its place. But what uses
it takes its functions from a table of that module (`__pyx_capi__`), which is filled with ours as soon as it is there.
Then the sitecustomize runs that Python would have found without this one.
"""
import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(__file__)
# Of version 13, and of 12; in each pair the second is for the per-thread default stream.
TABLES = ("cuda.bindings._internal.runtime", "cuda.bindings._internal.runtime_ptds",
          "cuda.bindings._bindings.cyruntime", "cuda.bindings._bindings.cyruntime_ptds")
# What CUDA 12's header makes of these names.
RENAMED_12 = {name: name + "_v2" for name in ("cudaGetDeviceProperties", "cudaSignalExternalSemaphoresAsync",
                                              "cudaStreamGetCaptureInfo", "cudaWaitExternalSemaphoresAsync")}


def is_per_thread(module):
    return module.__name__.endswith("_ptds") or int(os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM") or 0)


def fill(module):
    """Those of its functions that libcudart exports become ours; helpers of its own stay."""
    import ctypes  # pylint: disable=import-outside-toplevel
    major = sys.modules["cuda.bindings"].__version__.split(".")[0]
    path = os.path.join(os.environ.get("GPUMEM_RUNTIME", ""), major, "libcudart.so." + major)
    if not os.path.exists(path):
        return
    ours = ctypes.CDLL(path)
    set_pointer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(
        ("PyCapsule_SetPointer", ctypes.pythonapi))
    twins = ("_ptsz", "_ptds", "") if is_per_thread(module) else ("",)
    for key, capsule in module.__pyx_capi__.items():
        name = key[1:]
        if major == "12":
            name = RENAMED_12.get(name, name)
        exported = [name + twin for twin in twins if hasattr(ours, name + twin)]
        if exported:
            set_pointer(capsule, ctypes.cast(getattr(ours, exported[0]), ctypes.c_void_p))


class Finder:
    """Finds the modules that have a table, as Python does, and fills it behind their own code."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in TABLES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                fill(module)
            spec.loader.exec_module = exec_module
        return spec


def run_the_next():
    sys.path[:] = [folder for folder in sys.path if folder != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec and spec.loader:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if os.environ.get("GPUMEM_RUNTIME"):
    sys.meta_path.insert(0, Finder)
if __name__ == "sitecustomize":  # gpumem.softgpu.use has it under another name
    run_the_next()
