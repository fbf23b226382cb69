/* What the readers of one image share. Nothing here is for other chapters: they see image.h. */
#ifndef SG_IMAGE_READER_H
#define SG_IMAGE_READER_H

#include "softgpu/image/image.h"

/* Messages, each a line. `name` is the input's, or NULL; `line` 0 when there is none to name. */
void sg_image_log_error(struct sg_image_log *log, const char *name, size_t line, const char *format,
                        ...) __attribute__((format(printf, 4, 5)));
void sg_image_log_info(struct sg_image_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Room for one more element of `size` bytes behind `count`, zeroed; NULL when there is no memory.
 * The room doubles, so that n elements cost n.
 */
void *sg_image_grow(void *array, size_t *count, size_t size);
/* strndup for bytes that need not end: AddressSanitizer's strict string checks want an end in what
 * strndup reads. NULL when out of memory. */
char *sg_image_text(const char *bytes, size_t size);
/* As sg_image_grow, for a list of names, of which a copy is appended; false when there is no
 * memory. */
bool sg_image_add_name(char ***names, size_t *count, const char *name, size_t length);

/* Another function of an input of a link, and a call of it by another; NULL and false when there is
 * no memory. */
struct sg_image_code *sg_image_add_code(struct sg_image *image, const char *name, size_t length);
bool sg_image_add_call(struct sg_image *image, size_t from, size_t to);

/* A table from name to number. Names are not copied: their text must stay. */
struct sg_name_table {
    struct sg_name_slot {
        const char *name;
        size_t length;
        size_t scope;
        size_t value;
    } * slots;
    size_t room, used;
};
/* Adds it unless it is there. *found says which value is there now; false: no memory. */
bool sg_names_add(struct sg_name_table *table, size_t scope, const char *name, size_t length,
                  size_t value, size_t *found);
/* Where it is, to be changed; NULL when it is not there. Adding moves slots. */
struct sg_name_slot *sg_names_slot(const struct sg_name_table *table, size_t scope,
                                   const char *name, size_t length);
bool sg_names_find(const struct sg_name_table *table, size_t scope, const char *name, size_t length,
                   size_t *value);
void sg_names_clear(struct sg_name_table *table);

/* Bytes of an image, each read of which is checked. */
struct sg_bytes {
    const unsigned char *data;
    size_t size;
};
bool sg_bytes_slice(struct sg_bytes from, uint64_t offset, uint64_t size, struct sg_bytes *slice);
/* Little-endian; 0 where there are not so many bytes. */
uint64_t sg_bytes_number(struct sg_bytes from, uint64_t offset, unsigned width);
/*
 * A name in a table of names with final zeros; NULL when there is none. Its length is taken from
 * the budget: many may share the bytes of one long name, and would cost more than the image is
 * long.
 */
const char *sg_bytes_name(struct sg_bytes table, uint64_t offset, uint64_t *budget);

/* A reader of one kind: fills a zeroed image, which the caller frees on failure. */
typedef CUresult sg_reader(struct sg_bytes bytes, const struct sg_image_options *options,
                           struct sg_image_log *log, struct sg_image *image);

#endif
