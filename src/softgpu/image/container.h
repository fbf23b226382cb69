/* Writing softgpu's link container; container.c describes the format. */
#ifndef SG_IMAGE_CONTAINER_H
#define SG_IMAGE_CONTAINER_H

#include "softgpu/image/reader.h"

/* Bytes so far. After a failed allocation, putting does nothing; `failed` is looked at in the end.
 */
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
void sg_container_put_variable(struct sg_container_writer *to, const struct sg_image_variable *v);

#endif
