#pragma once
/* The EGL types that cudaEGL.h uses: handles are pointers, as the EGL registry declares them. */
typedef int EGLint;
