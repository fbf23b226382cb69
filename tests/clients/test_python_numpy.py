#!/usr/bin/env python3
"""NumPy with memory of gpumem for Python."""
import client

client.run_with_gpumem("numpy", "python_numpy.py")
