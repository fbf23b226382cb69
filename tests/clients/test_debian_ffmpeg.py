#!/usr/bin/env python3
"""FFmpeg's filters for CUDA, from Debian's packages, on softgpu."""
import client

client.run_debian("ffmpeg", "ffmpeg.py")
