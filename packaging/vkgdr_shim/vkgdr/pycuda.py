"""The name vkgdr.pycuda for gpumem.vkgdr.pycuda, which has the same interface."""
from gpumem.vkgdr.pycuda import Memory

__all__ = ["Memory"]
