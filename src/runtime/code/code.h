/*
 * Programs' own device code: the fat binaries that nvcc's constructors register, and the functions
 * and variables in them, by the addresses that the host code knows. Constructors only note; a fat
 * binary is loaded when something in it is first needed.
 */
#ifndef RT_CODE_CODE_H
#define RT_CODE_CODE_H

#include "runtime/core/runtime.h"

/* What nvcc's constructors register: the layout is public, in fatbinary_section.h. */
struct rt_wrapper {
    unsigned magic, version;
    const void *image;
    /* Version 2, relocatable code: the images of the parts, ended by NULL. */
    const void *const *parts;
};
enum { RT_WRAPPER_MAGIC = 0x466243b1 };

/* Of a fat binary, with its head; 0 for what is none. */
size_t rt_image_size(const void *image);
bool rt_image_has_ptx(const void *image);

struct rt_binary;

/* A function or a variable of a registered fat binary. Its memory is never freed, but used again:
 * a thread that looks for another symbol may still look at it. */
struct rt_symbol {
    _Atomic(const void *) host; /* the address that the program has; NULL: not in use */
    const char *name;           /* in the device code */
    struct rt_binary *binary;
    struct rt_symbol *next; /* of the same binary, or of those not in use */
    size_t size;            /* of a variable */
    bool managed;
    _Atomic(CUkernel) kernel; /* of a function, once it was needed */
};

/* A fat binary: made by a constructor, ended at exit or dlclose. */
struct rt_binary {
    const struct rt_wrapper *wrapper;
    struct rt_symbol *functions, *variables;
    _Atomic(CUlibrary) library;
    void *linked; /* what the parts became */
    _Atomic(bool) pointers_filled;
};

enum rt_table_kind { RT_FUNCTIONS, RT_VARIABLES, RT_TABLES };
/* By host address; NULL if there is none. Takes no lock. */
struct rt_symbol *rt_find_symbol(enum rt_table_kind kind, const void *host);
/* The next one from `place` on, which is 0 at first; NULL behind the last. */
struct rt_symbol *rt_next_symbol(enum rt_table_kind kind, size_t *place);

/* The library of a binary, loaded now if it was not. */
cudaError_t rt_load_binary(struct rt_binary *binary, CUlibrary *library);
/* Gives back what was loaded. */
void rt_unload_binary(struct rt_binary *binary);

/* What a program passes for a function: the address of its stub, a cudaKernel_t, a cudaFunction_t.
 * The result can be launched. */
cudaError_t rt_find_function(const void *function, CUfunction *found);
/* The same as a function of the current context, of which attributes can be asked. */
cudaError_t rt_find_loaded_function(const void *function, CUfunction *found);
/* The way back: the address of the stub of a function or a kernel of the driver's; that itself
 * where no stub is known. */
void *rt_stub_of(CUfunction function, CUkernel kernel);
cudaError_t rt_find_variable(const void *symbol, CUdeviceptr *address, size_t *size);
/* A kernel handle that was given out is known from now on. */
cudaError_t rt_kernel_of(const struct rt_symbol *symbol, CUkernel *kernel);

/* INVALID_CONFIGURATION in place of the driver's INVALID_VALUE where the shape is what is wrong. */
cudaError_t rt_launch_error(CUresult result, dim3 grid, dim3 block);

#endif
