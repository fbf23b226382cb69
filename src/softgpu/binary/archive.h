/* Archives as ar makes them, and a host compiler's objects in them, as far as they carry code for a
 * GPU. Not for other chapters. */
#ifndef SG_BINARY_ARCHIVE_H
#define SG_BINARY_ARCHIVE_H

#include "softgpu/image/reader.h"

struct sg_archive {
    struct sg_bytes bytes, names; /* the table of long names */
    uint64_t at;
};

struct sg_archive_member {
    struct sg_bytes name, bytes; /* the name has no final zero and may be empty */
};

/* False if it is not an archive, or one whose members are in files of their own. */
bool sg_archive_open(struct sg_bytes bytes, struct sg_archive *archive);
/* The next member that is a file. False at the end and where the archive is damaged; *whole
 * distinguishes the two. */
bool sg_archive_next(struct sg_archive *archive, struct sg_archive_member *member, bool *whole);

/* Whether it is an ELF for a machine other than a GPU. */
bool sg_object_is(struct sg_bytes bytes);
/*
 * Calls `visit` for each fatbin of an object that is to be linked: those in its __nv_relfatbin
 * sections. What is in .nv_fatbin is a whole program, which nvlink skips, too. Stops at the first
 * result other than success. INVALID_IMAGE when the object is damaged.
 */
CUresult sg_object_each_fatbin(struct sg_bytes object,
                               CUresult (*visit)(struct sg_bytes fatbin, void *user), void *user);

#endif
