#include "share/description.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define VERSION 2u
static const char magic[8] = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'd'};

_Static_assert(sizeof(struct gm_description_head) == 88, "the layout is a protocol");

void *gm_description_write(const gpumem_buffer *buffer, size_t size, const unsigned char uuid[16],
                           const struct gm_chunk *chunks, size_t count, size_t *bytes) {
    struct gm_description_head head = {
        .version = VERSION,
        .head_bytes = sizeof head,
        .chunk_count = (uint32_t)count,
        .layout = buffer->layout,
        .epoch = buffer->epoch,
        .bytes = size,
    };
    memcpy(head.magic, magic, sizeof magic);
    memcpy(head.device, uuid, sizeof head.device);
    memcpy(head.buffer, buffer->id, sizeof head.buffer);
    *bytes = sizeof head + count * sizeof(uint64_t);
    unsigned char *data = malloc(*bytes);
    if (!data)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        uint64_t chunk = chunks[i].bytes;
        head.committed += chunk;
        memcpy(data + sizeof head + i * sizeof chunk, &chunk, sizeof chunk);
    }
    memcpy(data, &head, sizeof head);
    return data;
}

void *gm_description_tail(const void *whole, size_t first, size_t *bytes) {
    struct gm_description_head head;
    memcpy(&head, whole, sizeof head);
    head.first = (uint32_t)first;
    size_t sizes = (head.chunk_count - first) * sizeof(uint64_t);
    *bytes = sizeof head + sizes;
    unsigned char *data = malloc(*bytes);
    if (!data)
        return NULL;
    memcpy(data, &head, sizeof head);
    memcpy(data + sizeof head,
           (const unsigned char *)whole + sizeof head + first * sizeof(uint64_t), sizes);
    return data;
}

uint64_t gm_description_chunk(const unsigned char *chunks, size_t index) {
    uint64_t bytes;
    memcpy(&bytes, chunks + index * sizeof bytes, sizeof bytes);
    return bytes;
}

static gpumem_status refuse(const char *why) {
    return gm_fail(GPUMEM_ERROR_DATA, "not a description of shared memory: %s", why);
}

static gpumem_status check_head(const struct gm_description_head *head, size_t bytes,
                                const struct gm_known_chunks *known) {
    if (memcmp(head->magic, magic, sizeof magic) != 0)
        return refuse("it does not begin like one");
    if (head->version != VERSION || head->head_bytes != sizeof *head)
        return gm_fail(GPUMEM_ERROR_PEER,
                       "the description has version %u, this library reads version %u",
                       head->version, VERSION);
    if (head->chunk_count == 0 || head->chunk_count > GM_DESCRIPTION_MOST_CHUNKS)
        return refuse("the number of handles is out of range");
    if (head->first != (known ? known->count : 0))
        return refuse(known ? "it does not continue where the import ends"
                            : "it begins in the middle: it describes growth");
    if (head->chunk_count < head->first)
        return refuse("earlier handles are missing");
    if (bytes != sizeof *head + (size_t)(head->chunk_count - head->first) * sizeof(uint64_t))
        return refuse("its length and its number of handles disagree");
    return GPUMEM_OK;
}

gpumem_status gm_description_read(const void *data, size_t bytes, size_t granularity,
                                  uint64_t maximum, const struct gm_known_chunks *known,
                                  struct gm_description_head *head, const unsigned char **chunks) {
    struct gm_description_head read;
    if (!data || bytes < sizeof read)
        return refuse("it is too short");
    memcpy(&read, data, sizeof read);
    gpumem_status status = check_head(&read, bytes, known);
    if (status != GPUMEM_OK)
        return status;
    const unsigned char *sizes = (const unsigned char *)data + sizeof read;
    uint64_t sum = known ? known->committed : 0;
    for (size_t i = 0; i < read.chunk_count - read.first; i++) {
        uint64_t size = gm_description_chunk(sizes, i);
        if (size == 0 || size % granularity)
            return refuse("a handle's size is not a multiple of the granularity");
        if (size > maximum || sum > maximum - size)
            return gm_fail(GPUMEM_ERROR_DATA,
                           "the other process offers more than the %llu bytes that are accepted",
                           (unsigned long long)maximum);
        sum += size;
    }
    if (sum != read.committed || read.bytes == 0 || read.bytes > sum)
        return refuse("sizes do not add up");
    *head = read;
    *chunks = sizes;
    return GPUMEM_OK;
}
