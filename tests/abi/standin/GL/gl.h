#pragma once
/* The two OpenGL types that cudaGL.h uses, so that its functions can be compared without OpenGL. */
typedef unsigned int GLenum;
typedef unsigned int GLuint;
