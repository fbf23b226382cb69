/*
 * A user-defined resource: an arena, which hands out consecutive pieces of a buffer and takes them
 * all back at once. It works over any other resource, which it names as its upstream, so that
 * memory is counted once. Here it is over a log, so that `gpumem replay` can replay its requests.
 *
 *     GPUMEM_DRIVER=softgpu build/examples/arena [LOG]
 */
#include <gpumem/gpumem.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static void check(gpumem_status status) {
    if (status == GPUMEM_OK)
        return;
    fprintf(stderr, "%s\n", gpumem_last_error()->message);
    exit(1);
}

/* ---- The arena ------------------------------------------------------------------------------- */

/* A buffer of the upstream. Its pieces are only counted: once the last is given back, all of it is
 * free. */
struct block {
    struct block *next;
    gpumem_buffer *buffer;
    size_t bytes, used, pieces;
};

struct arena {
    gpumem_resource *upstream;
    size_t block_bytes;
    pthread_mutex_t lock; /* functions of a resource are called from any thread */
    struct block *blocks; /* newest first: pieces are cut from the first */
};

/* Where a piece of `bytes` begins in the block, or -1 if it does not fit. */
static size_t place_in(const struct block *block, size_t bytes, size_t alignment) {
    CUdeviceptr base = gpumem_buffer_pointer(block->buffer), at = base + block->used;
    size_t offset = (size_t)(((at + alignment - 1) & ~(CUdeviceptr)(alignment - 1)) - base);
    return offset <= block->bytes && bytes <= block->bytes - offset ? offset : (size_t)-1;
}

/* Cuts a piece, under the lock. Blocks whose pieces have all been given back start again. */
static struct block *cut(struct arena *arena, const gpumem_request *request, size_t *offset) {
    for (struct block *block = arena->blocks; block; block = block->next) {
        if (!block->pieces)
            block->used = 0;
        *offset = place_in(block, request->bytes, request->alignment);
        if (*offset != (size_t)-1) {
            block->used = *offset + request->bytes;
            block->pieces++;
            return block;
        }
    }
    return NULL;
}

/* The upstream is called with no lock held: when it runs out of memory it trims, and that includes
 * this arena. */
static gpumem_status add_block(struct arena *arena, const gpumem_request *request) {
    size_t most = (size_t)-1 - request->alignment;
    if (request->bytes > most)
        return gpumem_set_last_error(GPUMEM_ERROR_OUT_OF_MEMORY, "arena: no machine has so much");
    size_t bytes = request->bytes + request->alignment;
    struct block *block = calloc(1, sizeof *block);
    if (!block)
        return gpumem_set_last_error(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "arena: no memory");
    block->bytes = bytes > arena->block_bytes ? bytes : arena->block_bytes;
    gpumem_status status =
        gpumem_buffer_allocate(arena->upstream, block->bytes, NULL, &block->buffer);
    if (status != GPUMEM_OK) {
        free(block);
        return status; /* the message is the upstream's */
    }
    /* Memory of a stream-ordered resource is usable on that stream at once; pieces go to any
     * stream. */
    status = gpumem_stream_synchronize(gpumem_resource_device(arena->upstream), NULL);
    if (status != GPUMEM_OK) {
        (void)gpumem_buffer_free(block->buffer, NULL);
        free(block);
        return status;
    }
    pthread_mutex_lock(&arena->lock);
    block->next = arena->blocks;
    arena->blocks = block;
    pthread_mutex_unlock(&arena->lock);
    return GPUMEM_OK;
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    struct arena *arena = user;
    size_t offset = 0;
    struct block *block = NULL;
    while (!block) { /* another thread may take what was just added */
        pthread_mutex_lock(&arena->lock);
        block = cut(arena, request, &offset);
        pthread_mutex_unlock(&arena->lock);
        gpumem_status status = block ? GPUMEM_OK : add_block(arena, request);
        if (status != GPUMEM_OK)
            return status;
    }
    char *host = gpumem_buffer_host_pointer(block->buffer);
    allocation->pointer = gpumem_buffer_pointer(block->buffer) + offset;
    allocation->host_pointer = host ? host + offset : NULL;
    allocation->bytes = allocation->committed_bytes = allocation->capacity = request->bytes;
    allocation->cookie = block;
    return GPUMEM_OK; /* allocation->buffer stays NULL: a part of a buffer cannot be exported */
}

/* Not stream-ordered, so this is called when no stream uses the piece any longer. */
static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct arena *arena = user;
    struct block *block = allocation->cookie;
    (void)stream;
    pthread_mutex_lock(&arena->lock);
    block->pieces--;
    pthread_mutex_unlock(&arena->lock);
}

static void properties(void *user, gpumem_resource_properties *out) {
    struct arena *arena = user;
    gpumem_resource_properties up = {.size = sizeof up};
    if (gpumem_resource_get_properties(arena->upstream, &up) != GPUMEM_OK)
        return;
    out->device_accessible = up.device_accessible;
    out->host_accessible = up.host_accessible;
    out->location = up.location;
    out->maximum_chunk_bytes = arena->block_bytes;
}

/* Bytes of blocks that are in no piece. */
static void stats(void *user, gpumem_stats *out) {
    struct arena *arena = user;
    pthread_mutex_lock(&arena->lock);
    for (struct block *block = arena->blocks; block; block = block->next)
        out->cached_bytes += block->pieces ? block->bytes - block->used : block->bytes;
    pthread_mutex_unlock(&arena->lock);
}

/* Gives back blocks without pieces, until `keep_bytes` of them are left. */
static void trim(void *user, size_t keep_bytes) {
    struct arena *arena = user;
    struct block *gone = NULL, **at = &arena->blocks;
    pthread_mutex_lock(&arena->lock);
    while (*at) {
        struct block *block = *at;
        if (block->pieces) {
            at = &block->next;
        } else if (block->bytes <= keep_bytes) {
            keep_bytes -= block->bytes;
            at = &block->next;
        } else {
            *at = block->next;
            block->next = gone;
            gone = block;
        }
    }
    pthread_mutex_unlock(&arena->lock);
    while (gone) {
        struct block *next = gone->next;
        (void)gpumem_buffer_free(gone->buffer, NULL);
        free(gone);
        gone = next;
    }
}

static void destroy(void *user) {
    struct arena *arena = user;
    trim(arena, 0);
    pthread_mutex_destroy(&arena->lock);
    free(arena);
}

static gpumem_status arena_create(gpumem_resource *upstream, size_t block_bytes,
                                  gpumem_resource **resource) {
    struct arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        return gpumem_set_last_error(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "arena: no memory");
    arena->upstream = upstream;
    arena->block_bytes = block_bytes;
    pthread_mutex_init(&arena->lock, NULL);
    const gpumem_resource_ops ops = {
        .size = sizeof ops,
        .kind = "arena",
        .allocate = allocate,
        .deallocate = deallocate,
        .properties = properties,
        .stats = stats,
        .trim = trim,
        .destroy = destroy,
        .upstream = upstream, /* held, and the one that counts for the device */
    };
    gpumem_status status =
        gpumem_resource_create(gpumem_resource_device(upstream), &ops, arena, resource);
    if (status != GPUMEM_OK) {
        pthread_mutex_destroy(&arena->lock);
        free(arena);
    }
    return status;
}

/* ---- Its use --------------------------------------------------------------------------------- */

#define PIECES 1000

static void report(gpumem_device *device, const char *when) {
    gpumem_stats now = {.size = sizeof now};
    check(gpumem_device_get_stats(device, &now));
    printf("%s: %llu bytes of the device in %llu buffers\n", when,
           (unsigned long long)now.committed_bytes, (unsigned long long)now.allocations);
}

static void use(gpumem_device *device, gpumem_resource *arena) {
    static gpumem_buffer *pieces[PIECES];
    size_t wrong = 0;
    for (size_t i = 0; i < PIECES; i++) {
        check(gpumem_buffer_allocate(arena, 16 + i * 7, NULL, &pieces[i]));
        check(gpumem_buffer_fill(pieces[i], 0, 16 + i * 7, (unsigned char)i, NULL));
    }
    report(device, "with 1000 pieces");
    for (size_t i = 0; i < PIECES; i++) {
        unsigned char ends[2];
        check(gpumem_buffer_read(pieces[i], 0, &ends[0], 1, NULL));
        check(gpumem_buffer_read(pieces[i], 15 + i * 7, &ends[1], 1, NULL));
        check(gpumem_stream_synchronize(device, NULL));
        wrong += ends[0] != (unsigned char)i || ends[1] != (unsigned char)i;
    }
    printf("%zu pieces have other bytes than they were given\n", wrong);
    for (size_t i = 0; i < PIECES; i++)
        check(gpumem_buffer_free(pieces[i], NULL));
    report(device, "all freed");
    check(gpumem_device_trim(device, 1));
    report(device, "trimmed");
    if (wrong)
        exit(1);
}

int main(int argc, char **argv) {
    gpumem_library *library;
    gpumem_device *device;
    gpumem_resource *memory, *logged = NULL, *arena = NULL;
    check(gpumem_open(NULL, &library)); /* GPUMEM_DRIVER=softgpu where there is no GPU */
    check(gpumem_device_open(library, 0, &device));
    check(gpumem_virtual_resource_create(device, NULL, &memory));
    if (argc > 1)
        check(gpumem_trace_resource_create(memory, GPUMEM_TRACE_OPTIONS(.path = argv[1]), &logged));
    check(arena_create(logged ? logged : memory, 2 * MIB, &arena));
    use(device, arena);
    check(gpumem_resource_destroy(arena));
    check(gpumem_resource_destroy(logged));
    check(gpumem_resource_destroy(memory));
    check(gpumem_device_close(device));
    return gpumem_close(library) == GPUMEM_OK ? 0 : 1;
}
