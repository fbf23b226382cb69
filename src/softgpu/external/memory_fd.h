/*
 * What a descriptor of external memory may be:
 *   - memory that cuMemExportToShareableHandle of softgpu exported, in any process;
 *   - memory that Mesa's llvmpipe (lavapipe, the Vulkan driver that needs no GPU) exported as
 *     OPAQUE_FD: a memory file that begins with a header;
 *   - any other memory file that is sealed against shrinking: its bytes are the memory.
 */
#ifndef SG_EXTERNAL_MEMORY_FD_H
#define SG_EXTERNAL_MEMORY_FD_H

#include "softgpu/address/memory.h"

/*
 * What llvmpipe puts in front of memory that it exports. Seen with Mesa 22.3.6, whose data begin
 * after one page; `data` says where, so that other alignments do, too. The identity is a digest of
 * the driver's build and differs from version to version, so it cannot be compared with anything:
 * a header is known by sizes that agree with the file.
 */
struct sg_llvmpipe_header {
    uint64_t file; /* bytes of the file */
    uint64_t data; /* where the memory begins */
    unsigned char driver[16];
};

struct sg_external_bytes {
    struct sg_phys *phys; /* one reference */
    size_t offset;        /* of the memory's first byte in phys */
    size_t size;
};

/* The memory behind a descriptor (which stays the caller's), on `device` where the file does not
 * say. SG_EXTERNAL_WRONG_FD, with the reason logged, when it is none of these. */
CUresult sg_external_open(int fd, int device, struct sg_external_bytes *bytes);

#endif
