/* Reading an image of any kind. */
#ifndef SG_BINARY_READ_H
#define SG_BINARY_READ_H

#include "softgpu/image/reader.h"

/*
 * Reads an image, whose kind follows from its first bytes: a fatbin wrapper (0x466243b1, if the
 * options accept one and the size is unknown), a fatbin (0xba55ed50), an ELF, which a link
 * produces, too, or text. `size` bounds every read; SIZE_MAX when the caller does not know it, as
 * in cuModuleLoadData: then the headers are trusted.
 *
 * From a fatbin, the entry that hardware would take is chosen: machine code for exactly the device
 * or an older one of the same major version, else the newest PTX that is not newer than the device.
 *
 * INVALID_IMAGE, INVALID_PTX, UNSUPPORTED_PTX_VERSION, NO_BINARY_FOR_GPU, UNKNOWN (an ELF for 32
 * bits, damaged zstd) or OUT_OF_MEMORY; *image is set on success only. Free it with sg_image_free.
 */
CUresult sg_image_read(const void *data, size_t size, const struct sg_image_options *options,
                       struct sg_image_log *log, struct sg_image **image);

sg_reader sg_cubin_read;  /* ELF */
sg_reader sg_fatbin_read; /* from 0xba55ed50 on */

/* How long an ELF or a fatbin claims to be; false when its header is incomplete. */
bool sg_cubin_extent(const void *data, size_t size, uint64_t *extent);
bool sg_fatbin_extent(const void *data, size_t size, uint64_t *extent);

/* The fatbin that sg_image_read would read; false where the image is something else. */
bool sg_image_is_fatbin(const void *data, size_t size, bool wrapped, struct sg_bytes *fatbin);
/* "machine code for sm_80, sm_90a, PTX for compute_90": the kinds of entries, cut off where `size`
 * ends. */
void sg_fatbin_list(struct sg_bytes fatbin, char *text, size_t size);
/* Whether it has PTX for a device of that architecture (90 for 9.0). */
bool sg_fatbin_has_ptx_for(struct sg_bytes fatbin, int architecture);

#define SG_FATBIN_WRAPPER_MAGIC 0x466243b1u
#define SG_FATBIN_MAGIC         0xba55ed50u
#define SG_ELF_MAGIC            0x464c457fu

#endif
