/*
 * What a fat binary holds: a header of 16 bytes (magic, version, its size, the bytes that follow),
 * then entries, each with a header (kind, its size, the size of the payload) and the payload.
 */
#include "runtime/code/code.h"

#include <string.h>

enum { MAGIC = (int)0xba55ed50, KIND_PTX = 1 };

struct head {
    uint32_t magic;
    uint16_t version, size;
    uint64_t follows;
};

struct entry {
    uint16_t kind, version;
    uint32_t size;
    uint64_t payload;
};

size_t rt_image_size(const void *image) {
    struct head head;
    memcpy(&head, image, sizeof head);
    return head.magic == (uint32_t)MAGIC ? head.size + (size_t)head.follows : 0;
}

bool rt_image_has_ptx(const void *image) {
    const char *bytes = image;
    struct head head;
    struct entry entry;
    memcpy(&head, image, sizeof head);
    size_t end = rt_image_size(image);
    for (size_t at = head.size; end && at + sizeof entry <= end;
         at += entry.size + (size_t)entry.payload) {
        memcpy(&entry, bytes + at, sizeof entry);
        if (entry.kind == KIND_PTX)
            return true;
        if (entry.size < sizeof entry)
            return false;
    }
    return false;
}
