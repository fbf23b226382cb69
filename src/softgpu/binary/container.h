/* Writing the output of a link: softgpu's section and the ELF around it, which container.c and
 * elf_write.c describe. */
#ifndef SG_BINARY_CONTAINER_H
#define SG_BINARY_CONTAINER_H

#include "softgpu/image/reader.h"

/* The bytes so far. After a failed allocation, puts do nothing; check `failed` at the end. */
struct sg_container_writer {
    unsigned char *bytes;
    size_t size, room;
    bool failed;
};

void sg_container_put(struct sg_container_writer *to, const void *bytes, size_t size);
void sg_container_put_number(struct sg_container_writer *to, uint64_t number, unsigned width);
void sg_container_put_text(struct sg_container_writer *to, const char *text);
void sg_container_put_bytes(struct sg_container_writer *to, const void *bytes, size_t size);
void sg_container_put_function(struct sg_container_writer *to, const struct sg_image_function *f);
/* `part`: the input that defines it. `targets`: for each relocation, the number of its variable in
 * the result + 1, or 0. */
void sg_container_put_variable(struct sg_container_writer *to, const struct sg_image_variable *v,
                               unsigned part, const size_t *targets);

#define SG_CONTAINER_SECTION ".softgpu.program"
#define SG_CONTAINER_VERSION 3

void sg_container_free(struct sg_container_writer *to);

/* An ELF around that section, for that architecture (90 for sm_90), or `specific` to it. `names`:
 * those of its kernels, each with a final zero, for readers who look for them among the symbols. */
void sg_container_put_elf(struct sg_container_writer *to, unsigned architecture, bool specific,
                          struct sg_bytes names, struct sg_bytes program);

/* Fills an image, whose ELF headers have been read, from the section. INVALID_IMAGE or
 * OUT_OF_MEMORY, after which the caller frees the image. */
CUresult sg_container_read(struct sg_bytes section, struct sg_image *image);

#endif
