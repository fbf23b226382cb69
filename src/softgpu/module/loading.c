#include "softgpu/module/loading.h"

#include "base/descriptor.h"
#include "softgpu/binary/read.h"
#include "softgpu/core/config.h"
#include "softgpu/core/state.h"
#include "softgpu/device/device.h"
#include "softgpu/module/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The newest .version that is taken. A driver takes what its own compiler knows: 13.0 came with PTX
 * 9.0, 13.1 with 9.1, and so on. Programs of today's compilers would not run on the driver that is
 * modelled here, so that by default all is taken that the reader knows; and more, where the driver
 * is said to be newer: what such a text uses beyond that is refused by name.
 */
int sg_loading_newest_ptx(void) {
    int major = sg_driver_version() / 1000, minor = sg_driver_version() % 1000 / 10;
    int of_driver = 10 * (major - 4) + minor;
    return sg_config()->ptx_of_driver || of_driver > SG_PTX_NEWEST ? of_driver : SG_PTX_NEWEST;
}

void sg_loading_explain(CUresult result, const struct sg_image_log *log) {
    static int said; /* the last version; the caller has the lock */
    const int ptx = log->newer_ptx;
    if (result != CUDA_ERROR_UNSUPPORTED_PTX_VERSION || !ptx || ptx == said)
        return;
    said = ptx;
    if (ptx <= SG_PTX_NEWEST)
        sg_log(SG_LOG_WARNING,
               "a text of PTX %d.%d is refused, as driver %d.%d does: SOFTGPU_PTX=newest takes it",
               ptx / 10, ptx % 10, sg_driver_version() / 1000, sg_driver_version() % 1000 / 10);
    else
        sg_log(SG_LOG_WARNING,
               "a text of PTX %d.%d is refused: %d.%d, of CUDA %d.%d, is the newest that is known "
               "here. Use an older compiler, or set SOFTGPU_DRIVER_VERSION=%d.%d: then it is read, "
               "and what is unknown in it is refused by name",
               ptx / 10, ptx % 10, SG_PTX_NEWEST / 10, SG_PTX_NEWEST % 10, SG_PTX_NEWEST / 10 + 4,
               SG_PTX_NEWEST % 10, ptx / 10 + 4, ptx % 10);
}

static bool eager;

/* CUDA_FORCE_PTX_JIT and CUDA_DISABLE_PTX_JIT are documented, but an H200 with driver 580 loads
 * text and machine code whatever their values. */
CUresult sg_loading_init(void) {
    const char *mode = secure_getenv("CUDA_MODULE_LOADING");
    eager = mode && strcasecmp(mode, "EAGER") == 0;
    return CUDA_SUCCESS;
}

bool sg_loading_eager(void) {
    return eager;
}

struct sg_image_options sg_loading_options(int device, const char *name) {
    const int *attributes = sg_device(device)->attributes;
    int architecture = attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] * 10 +
                       attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
    /* Architecture-specific features exist since 9.0. */
    return (struct sg_image_options){
        .architecture = architecture,
        .suffix = architecture >= 90 ? 'a' : 0,
        .newest_ptx = sg_loading_newest_ptx(),
        .prefer_machine = !sg_config()->kernels, /* text is what runs */
        .either = sg_config()->kernels,
        .most_shared = (unsigned)attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN],
        .name = name};
}

#define ELF_MAGIC 0x464c457fu

/* The first four bytes, of a text that may be shorter. */
static uint32_t magic_of(const unsigned char *bytes, size_t size) {
    uint32_t magic = 0;
    for (size_t i = 0; i < 4 && i < size; i++) {
        magic |= (uint32_t)bytes[i] << (8 * i);
        if (!bytes[i])
            break;
    }
    return magic;
}

static CUresult read_image(const void *bytes, size_t size, struct sg_image_options *options,
                           const struct sg_jit *jit, struct sg_image_log *log,
                           struct sg_image **image) {
    uint32_t magic = magic_of(bytes, size);
    /* Machine code with undefined names loads on H200; text does not. */
    options->relocatable = magic == ELF_MAGIC;
    CUresult result = sg_image_read(bytes, size, options, log, image);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_jit_image(jit, *image, options->architecture, false);
    if (result != CUDA_SUCCESS)
        sg_image_free(*image);
    return result;
}

CUresult sg_loaded_read(const void *bytes, size_t size, int device, const struct sg_jit *jit,
                        bool wrapped, struct sg_loaded **program) {
    struct sg_loaded *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t started = sg_now();
    struct sg_image_options options = sg_loading_options(device, NULL);
    options.prefer_machine = options.prefer_machine && !jit->prefer_ptx;
    options.either = options.either && !jit->prefer_ptx;
    options.wrapped = wrapped;
    struct sg_image_log log = sg_jit_log(jit);
    CUresult result = read_image(bytes, size, &options, jit, &log, &made->image);
    sg_jit_answer(jit, &log, started);
    sg_loading_explain(result, &log);
    if (sg_config()->kernels &&
        (result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
         (result == CUDA_SUCCESS && made->image->source == SG_IMAGE_MACHINE)))
        made->holder = sg_holder_text(bytes, size, wrapped);
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU && wrapped && made->holder)
        sg_log(SG_LOG_WARNING, "no kernel of a fat binary runs on this device (%d.%d): %s",
               options.architecture / 10, options.architecture % 10, made->holder);
    if (result != CUDA_SUCCESS) {
        free(made->holder);
        free(made);
        return result;
    }
    made->image->unoptimized |= jit->unoptimized || !sg_config()->contraction;
    made->refs = 1;
    *program = made;
    return CUDA_SUCCESS;
}

void sg_loaded_ref(struct sg_loaded *program) {
    program->refs++;
}

void sg_loaded_unref(struct sg_loaded *program) {
    if (--program->refs > 0)
        return;
    sg_image_free(program->image);
    free(program->holder);
    free(program);
}

static CUresult read_all(int fd, size_t size, unsigned char *bytes) {
    if (gm_fd_read(fd, bytes, size) != (ssize_t)size)
        return CUDA_ERROR_FILE_NOT_FOUND;
    bytes[size] = 0;
    return CUDA_SUCCESS;
}

CUresult sg_loading_file(const char *path, unsigned char **bytes, size_t *size) {
    struct stat about;
    int fd = gm_fd_open(path, O_RDONLY, 0);
    if (fd < 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY; /* an H200's answer to a directory */
    unsigned char *room = NULL;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
        room = malloc((size_t)about.st_size + 1);
        result = room ? read_all(fd, (size_t)about.st_size, room) : CUDA_ERROR_OUT_OF_MEMORY;
    }
    close(fd);
    if (result != CUDA_SUCCESS) {
        free(room);
        return result;
    }
    *bytes = room;
    *size = (size_t)about.st_size;
    return CUDA_SUCCESS;
}
