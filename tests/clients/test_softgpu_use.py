#!/usr/bin/env python3
"""gpumem.softgpu.use() before cuda.core and numba, in processes that nothing has prepared."""
import client

client.run_with_gpumem("numba", "softgpu_use.py", prepared=False)
