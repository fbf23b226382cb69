// Pairs of functions that do the same in C and in C++. Compiled with optimisation, each pair must
// be the same machine code.
#include <gpumem/gpumem.hpp>

#define PAIR(type, name, c, cpp)                                                                   \
    extern "C" type in_c_##name(gpumem_buffer *&b, gpumem_resource *&r, CUstream s) {              \
        (void)b, (void)r, (void)s;                                                                 \
        return c;                                                                                  \
    }                                                                                              \
    extern "C" type in_cpp_##name(gpumem::buffer &b, gpumem::resource &r, CUstream s) {            \
        (void)b, (void)r, (void)s;                                                                 \
        return cpp;                                                                                \
    }

PAIR(CUdeviceptr, pointer, gpumem_buffer_pointer(b), b.pointer())
PAIR(std::size_t, size, gpumem_buffer_size(b), b.size())
PAIR(void *, host, gpumem_buffer_host_pointer(b), b.host_pointer())
PAIR(gpumem_device *, device, gpumem_resource_device(r), r.device().get())
PAIR(gpumem_buffer *, release, std::exchange(b, nullptr), b.release())
