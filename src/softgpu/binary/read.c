/* Determines which kind of image it is, and how long. */
#include "softgpu/binary/read.h"

#include "softgpu/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

struct sg_choice {
    sg_reader *reader;
    struct sg_bytes bytes;
};

/* If the caller does not know the size, only the image itself can say. */
static bool bounded(const void *data, size_t size,
                    bool (*extent_of)(const void *, size_t, uint64_t *), struct sg_bytes *bytes) {
    uint64_t extent;
    if (!extent_of(data, size, &extent) || extent > size || extent >= SIZE_MAX)
        return false;
    *bytes = (struct sg_bytes){data, (size_t)extent};
    return true;
}

/* u32 magic, u32 version, pointer to the fatbin, pointer to something else. Valid only in the
 * program's memory: in a file, or in bytes given with a length, the pointer means nothing. */
static bool unwrapped(const void **data, const size_t *size) {
    uint64_t address;
    if (*size != SIZE_MAX)
        return false;
    memcpy(&address, (const char *)*data + 8, sizeof address);
    *data = (const void *)(uintptr_t)address;
    return *data != NULL;
}

static uint32_t magic_of(const void *data, size_t size) {
    const unsigned char *byte = data;
    uint32_t magic = 0;
    /* Byte by byte, stopping at a zero: a short text may be at the end of a page. */
    for (unsigned i = 0; i < 4 && i < size; i++) {
        magic |= (uint32_t)byte[i] << (8 * i);
        if (byte[i] == 0)
            break;
    }
    return magic;
}

static bool choose(const void *data, size_t size, struct sg_choice *choice) {
    switch (magic_of(data, size)) {
    case SG_FATBIN_MAGIC:
        choice->reader = sg_fatbin_read;
        return bounded(data, size, sg_fatbin_extent, &choice->bytes);
    case SG_ELF_MAGIC:
        choice->reader = sg_cubin_read;
        return bounded(data, size, sg_cubin_extent, &choice->bytes);
    default:
        choice->reader = sg_ptx_read;
        choice->bytes = (struct sg_bytes){
            data, size == SIZE_MAX ? strlen(data) : strnlen((const char *)data, size)};
        return true;
    }
}

bool sg_image_is_fatbin(const void *data, size_t size, bool wrapped, struct sg_bytes *fatbin) {
    if (magic_of(data, size) == SG_FATBIN_WRAPPER_MAGIC && (!wrapped || !unwrapped(&data, &size)))
        return false;
    return magic_of(data, size) == SG_FATBIN_MAGIC && bounded(data, size, sg_fatbin_extent, fatbin);
}

CUresult sg_image_read(const void *data, size_t size, const struct sg_image_options *options,
                       struct sg_image_log *log, struct sg_image **image) {
    struct sg_choice choice;
    if (magic_of(data, size) == SG_FATBIN_WRAPPER_MAGIC &&
        (!options->wrapped || !unwrapped(&data, &size))) {
        sg_image_log_error(log, options->name, 0, "a fatbin wrapper is not taken here");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    if (!choose(data, size, &choice)) {
        sg_image_log_error(log, options->name, 0, "the header does not describe the image");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    struct sg_image *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = choice.reader(choice.bytes, options, log, made);
    if (result == CUDA_SUCCESS)
        *image = made;
    else
        sg_image_free(made);
    return result;
}
