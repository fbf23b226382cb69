/* Device and host allocations, registrations, questions about pointers. */
#include "world.h"

static void *pointer(CUdeviceptr address) {
    return (void *)(uintptr_t)address;
}

static void mem_alloc(void) {
    CUdeviceptr made = 0;
    cuMemAlloc_v2(maybe(&made), draw_size());
    remember(ADDRESSES, made);
}

static void mem_alloc_pitch(void) {
    CUdeviceptr made = 0;
    size_t pitch;
    cuMemAllocPitch_v2(&made, maybe(&pitch), draw_size(), draw_size(), byte() % 20);
    remember(ADDRESSES, made);
}

static void mem_free(void) {
    cuMemFree_v2(draw_any_address());
}

static void host_alloc(void) {
    void *made = NULL;
    cuMemHostAlloc(maybe(&made), draw_size(), draw_flags());
    remember(ADDRESSES, (uintptr_t)made);
}

static void host_free(void) {
    cuMemFreeHost(pointer(draw_any_address()));
}

static void host_register(void) {
    size_t room;
    unsigned char *start = draw_host(&room);
    if (cuMemHostRegister_v2(start, draw_length(room, room), draw_flags()) == CUDA_SUCCESS)
        remember(ADDRESSES, (uintptr_t)start);
}

/* Ranges that are not all mapped are refused, not touched. */
static void host_register_any(void) {
    CUdeviceptr address = draw_any_address();
    if (cuMemHostRegister_v2(pointer(address), draw_size(), draw_flags()) == CUDA_SUCCESS)
        cuMemHostUnregister(pointer(address));
}

static void host_unregister(void) {
    size_t room;
    if (byte() & 1)
        cuMemHostUnregister(draw_host(&room));
    else
        cuMemHostUnregister(pointer(draw_any_address()));
}

static void host_questions(void) {
    CUdeviceptr address;
    unsigned flags;
    cuMemHostGetDevicePointer_v2(maybe(&address), pointer(draw_any_address()), draw_flags());
    cuMemHostGetFlags(maybe(&flags), pointer(draw_any_address()));
}

static void address_range(void) {
    CUdeviceptr base;
    size_t size;
    cuMemGetAddressRange_v2(maybe(&base), maybe(&size), draw_any_address());
}

static void pointer_attribute(void) {
    _Alignas(16) unsigned char value[256];
    cuPointerGetAttribute(maybe(value), (CUpointer_attribute)(byte() % 24), draw_any_address());
}

static void pointer_attributes(void) {
    _Alignas(16) unsigned char values[4][64];
    void *data[4];
    CUpointer_attribute wanted[4];
    unsigned count = byte() % 5;
    for (unsigned i = 0; i < 4; i++) {
        data[i] = values[i];
        wanted[i] = (CUpointer_attribute)(byte() % 24);
    }
    cuPointerGetAttributes(count, maybe(wanted), maybe(data), draw_any_address());
}

static void pointer_set(void) {
    int value = byte() & 1;
    cuPointerSetAttribute(
        maybe(&value), byte() & 1 ? CU_POINTER_ATTRIBUTE_SYNC_MEMOPS : (CUpointer_attribute)byte(),
        draw_any_address());
}

static const call_fn list[] = {
    mem_alloc,     mem_alloc,         mem_alloc_pitch,    mem_free,        host_alloc,
    host_free,     host_register,     host_register_any,  host_unregister, host_questions,
    address_range, pointer_attribute, pointer_attributes, pointer_set,
};
const struct calls memory_calls = {list, sizeof list / sizeof list[0]};
