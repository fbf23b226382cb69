"""The name vkgdr for gpumem.vkgdr, which has the same interface."""
from gpumem.vkgdr import OpenFlags, RawMemory, Vkgdr, VkgdrError

__all__ = ["OpenFlags", "RawMemory", "Vkgdr", "VkgdrError"]
