/* Archives as ar makes them, and the objects of a host's compiler in them, as far as they carry
 * code for a GPU. Nothing here is for other chapters. */
#ifndef SG_BINARY_ARCHIVE_H
#define SG_BINARY_ARCHIVE_H

#include "softgpu/image/reader.h"

struct sg_archive {
    struct sg_bytes bytes, names; /* the table of long names */
    uint64_t at;
};

struct sg_archive_member {
    struct sg_bytes name, bytes; /* the name has no final zero, and may have no bytes */
};

/* False for what is no archive. One whose members lie in files of their own is none. */
bool sg_archive_open(struct sg_bytes bytes, struct sg_archive *archive);
/* The next member that is a file; false at the end, or where the archive is damaged: *whole says
 * which. */
bool sg_archive_next(struct sg_archive *archive, struct sg_archive_member *member, bool *whole);

/* An ELF for another machine than a GPU. */
bool sg_object_is(struct sg_bytes bytes);
/*
 * Calls `visit` for each fatbin of an object that is to be linked: those in its sections
 * __nv_relfatbin. What is in .nv_fatbin is a whole program, which nvlink passes over, too. Ends
 * with the first answer that is no success. INVALID_IMAGE when the object is damaged.
 */
CUresult sg_object_each_fatbin(struct sg_bytes object,
                               CUresult (*visit)(struct sg_bytes fatbin, void *user), void *user);

#endif
