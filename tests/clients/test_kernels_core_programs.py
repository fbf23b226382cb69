#!/usr/bin/env python3
"""Programs over cuda.core: graphs, links, caches, ways to launch."""
import client

client.run("numba", "kernels_core_programs.py")
