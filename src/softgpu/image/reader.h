/* Shared by the readers of images and private to them; other parts include image.h. */
#ifndef SG_IMAGE_READER_H
#define SG_IMAGE_READER_H

#include "softgpu/image/image.h"

/* One line per message. `name` is the input's, or NULL; `line` is 0 when there is none to name. */
void sg_image_log_error(struct sg_image_log *log, const char *name, size_t line, const char *format,
                        ...) __attribute__((format(printf, 4, 5)));
void sg_image_log_info(struct sg_image_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends one zeroed element of `size` bytes after `count`; NULL when out of memory. The capacity
 * doubles, so that appending n elements takes time proportional to n. */
void *sg_image_grow(void *array, size_t *count, size_t size);
/* Like strndup, for bytes that need not be terminated: AddressSanitizer's strict string checks
 * require a terminator in what strndup reads. NULL when out of memory. */
char *sg_image_text(const char *bytes, size_t size);
/* Like sg_image_grow, for a list of names: appends a copy. False when out of memory. */
bool sg_image_add_name(char ***names, size_t *count, const char *name, size_t length);

/* Functions that every driver has for kernels: no image needs to define them. */
bool sg_image_is_given(const char *name, size_t length);

/* Appends a function of a link's input, or a call from one to another. NULL or false when out of
 * memory. */
struct sg_image_code *sg_image_add_code(struct sg_image *image, const char *name, size_t length);
bool sg_image_add_call(struct sg_image *image, size_t from, size_t to);

/* A table from name to number. Names are not copied: their text must outlive the table. */
struct sg_name_table {
    struct sg_name_slot {
        const char *name;
        size_t length;
        size_t scope;
        size_t value;
    } * slots;
    size_t room, used;
};
/* Adds the name unless it is present. *found is the value now stored; false: out of memory. */
bool sg_names_add(struct sg_name_table *table, size_t scope, const char *name, size_t length,
                  size_t value, size_t *found);
/* The slot, for changing its value; NULL when absent. Adding names moves slots. */
struct sg_name_slot *sg_names_slot(const struct sg_name_table *table, size_t scope,
                                   const char *name, size_t length);
bool sg_names_find(const struct sg_name_table *table, size_t scope, const char *name, size_t length,
                   size_t *value);
void sg_names_clear(struct sg_name_table *table);

/* Bytes of an image; every access is bounds-checked. */
struct sg_bytes {
    const unsigned char *data;
    size_t size;
};
bool sg_bytes_slice(struct sg_bytes from, uint64_t offset, uint64_t size, struct sg_bytes *slice);
/* Little-endian; 0 when fewer than `width` bytes are there. */
uint64_t sg_bytes_number(struct sg_bytes from, uint64_t offset, unsigned width);
/*
 * A zero-terminated name in a table of names; NULL when there is none. Its length is charged to the
 * budget: many entries may share the bytes of one long name, and would cost more than the size of
 * the image.
 */
const char *sg_bytes_name(struct sg_bytes table, uint64_t offset, uint64_t *budget);

/* Reads one kind of image into a zeroed struct, which the caller frees on failure. */
typedef CUresult sg_reader(struct sg_bytes bytes, const struct sg_image_options *options,
                           struct sg_image_log *log, struct sg_image *image);

#endif
