"""gpumem for Python. Of its parts `gpumem.vkgdr` is here."""
