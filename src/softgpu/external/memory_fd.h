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
 * The header that llvmpipe puts before memory that it exports. As seen with Mesa 22.3.6, whose data
 * begin after one page; `data` gives the offset, so other alignments work, too. The identity is a
 * digest of the driver's build and differs between versions, so it cannot be compared with
 * anything: a header is recognised by sizes that agree with the file.
 */
struct sg_llvmpipe_header {
    uint64_t file; /* size of the file */
    uint64_t data; /* where the memory begins */
    unsigned char driver[16];
};

struct sg_external_bytes {
    struct sg_phys *phys; /* one reference */
    size_t offset;        /* of the memory's first byte in phys */
    size_t size;
};

/* Opens the memory of a descriptor (which remains the caller's), on `device` if the file does not
 * say. SG_EXTERNAL_WRONG_FD, with the reason logged, when it is none of these. */
CUresult sg_external_open(int fd, int device, struct sg_external_bytes *bytes);

#endif
