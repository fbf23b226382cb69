#include "softgpu/link/link_texts.h"

#include "softgpu/binary/read.h"
#include "softgpu/link/link.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static CUresult read_all(const char *const *texts, size_t count,
                         const struct sg_image_options *options, struct sg_image_log *log,
                         struct sg_image **images) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = sg_image_read(texts[i], SIZE_MAX, options, log, &images[i]);
    return result;
}

CUresult sg_link_texts(unsigned architecture, const char *const *texts, size_t count, char *log,
                       size_t log_size, unsigned char **bytes, size_t *size) {
    const struct sg_image_options options = {.architecture = (int)architecture,
                                             .suffix = architecture >= 90 ? 'a' : 0,
                                             .newest_ptx = INT_MAX,
                                             .relocatable = true};
    struct sg_image_log messages = {.error = log, .error_size = log_size};
    struct sg_image **images = calloc(count + 1, sizeof *images);
    if (!images)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = read_all(texts, count, &options, &messages, images);
    if (result == CUDA_SUCCESS)
        result = sg_image_link((const struct sg_image *const *)images, count, &options, &messages,
                               bytes, size);
    for (size_t i = 0; i < count; i++)
        sg_image_free(images[i]);
    free(images);
    return result;
}
