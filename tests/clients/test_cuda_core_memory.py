#!/usr/bin/env python3
"""cuda.core with memory of gpumem's."""
import client

client.run_with_gpumem("numba", "cuda_core_memory.py")
