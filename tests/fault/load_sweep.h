/*
 * What the sweeps over loading share. Whichever driver call fails, a load that succeeds has the
 * file's bytes, and one that fails has left nothing. Header only, as library_test.h is; each part
 * of the sweeps is a program of its own, because a load makes some two hundred driver calls, and
 * each is made to fail in four ways.
 */
#ifndef FAULT_LOAD_SWEEP_H
#define FAULT_LOAD_SWEEP_H

#include "library_sweeps.h"
#include "temporary.h"

#include <gpumem/load.h>
#include <gpumem/pinned.h>

static char path[TEMPORARY_ROOM];
static uint64_t expected; /* checksum of the file */

struct subject {
    gpumem_resource *memory;
    gpumem_buffer *buffer;
    gpumem_load_options options;
    uint64_t sum; /* of a checksum's sweep */
};

static inline int load(void *user) {
    struct subject *s = user;
    s->buffer = NULL;
    int result = (int)gpumem_load_file(s->memory, path, &s->options, &s->buffer, NULL);
    assert_true((result == 0) == (s->buffer != NULL));
    return result;
}

static inline void check_bytes(void *user) {
    struct subject *s = user;
    settle(user);
    uint64_t sum = MADE(uint64_t, gpumem_buffer_checksum, s->buffer, NULL);
    assert_true(sum == expected);
    OK(gpumem_buffer_free(s->buffer, NULL));
    settle(user);
}

static inline struct subject make_subject(unsigned threads, gpumem_resource *pinned) {
    struct subject subject = {
        .options = {.size = sizeof subject.options,
                    .chunk_bytes = 512 * KIB,
                    .threads = threads,
                    .pinned = pinned},
    };
    /* Pieces of 2 MiB: the file needs several. */
    subject.memory = NEW_VIRTUAL(.maximum_chunk_bytes = 2 * MIB);
    return subject;
}

static inline void sweep_load(const char *name, enum sweep_part part, unsigned threads,
                              gpumem_resource *pinned) {
    struct subject subject = make_subject(threads, pinned);
    sweep_run(&(struct sweep){.name = name,
                              .part = part,
                              .act = load,
                              .recover = settle,
                              .undo = check_bytes,
                              .may_succeed = true, /* what is released at its end cannot fail */
                              .lost = quarantined,
                              .explain = last_message,
                              .user = &subject});
    OK(gpumem_resource_destroy(subject.memory));
}

static inline int begin(void **state) {
    static unsigned char block[64 * KIB];
    int fd = temporary_file(path, "gpumem-load-sweep");
    for (unsigned i = 0; fd >= 0 && i < 80; i++) {
        for (size_t j = 0; j < sizeof block; j++)
            block[j] = (unsigned char)(j * 31 + i * 7 + j / 251);
        if (write(fd, block, i ? sizeof block : sizeof block - 3) < 0)
            return -1;
    }
    if (fd < 0 || close(fd) != 0 || begin_sweeps(state) != 0 ||
        gpumem_file_checksum(path, NULL, &expected) != GPUMEM_OK)
        return -1;
    /* Where registering is refused, memory is allocated: softgpu opens what backs it at the first
     * time, and keeps it. */
    gpumem_resource *allocated = NEW_PINNED(.method = GPUMEM_PINNED_ALLOCATED);
    gpumem_buffer *once = NEW_BUFFER(allocated, 1);
    DESTROY(once, allocated);
    return 0;
}

static inline int end(void **state) {
    unlink(path);
    return 0;
}

#endif
