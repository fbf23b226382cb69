#include "memory/touch.h"

#include "base/thread.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Threads are only worth their start for this much each. */
#define LEAST_PER_THREAD ((size_t)8 << 20)
#define MOST_THREADS     64u

struct part {
    unsigned char *base;
    size_t bytes;
    int error;
};

static void touch_by_hand(struct part *part) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t at = 0; at < part->bytes; at += page) {
        volatile unsigned char *byte = part->base + at;
        unsigned char value = *byte;
        *byte = value;
    }
}

static void *touch_part(void *argument) {
    struct part *part = argument;
    if (part->bytes == 0 || madvise(part->base, part->bytes, MADV_POPULATE_WRITE) == 0)
        return NULL;
    if (errno == EINVAL) /* an older kernel */
        touch_by_hand(part);
    else
        part->error = errno;
    return NULL;
}

int gm_touch(void *base, size_t bytes, unsigned threads) {
    struct part parts[MOST_THREADS] = {0};
    pthread_t ids[MOST_THREADS];
    const size_t unit = (size_t)2 << 20;
    if (threads > MOST_THREADS)
        threads = MOST_THREADS;
    if (threads > bytes / LEAST_PER_THREAD)
        threads = (unsigned)(bytes / LEAST_PER_THREAD);
    if (threads < 1)
        threads = 1;
    size_t each = (bytes / threads + unit - 1) / unit * unit;
    unsigned started = 0;
    for (unsigned i = 0; i < threads; i++) {
        size_t from = i * each < bytes ? i * each : bytes;
        size_t left = bytes - from;
        parts[i] = (struct part){(unsigned char *)base + from, left < each ? left : each, 0};
    }
    for (; started + 1 < threads; started++)
        if (gm_thread_start(&ids[started], 0, touch_part, &parts[started + 1]) != 0)
            break;
    touch_part(&parts[0]);
    for (unsigned i = started + 1; i < threads; i++) /* no thread for these */
        touch_part(&parts[i]);
    int error = parts[0].error;
    for (unsigned i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    for (unsigned i = 1; i < threads; i++)
        error = error ? error : parts[i].error;
    return error;
}
