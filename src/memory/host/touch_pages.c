#include "memory/host/touch_pages.h"

#include "base/thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* The piece that a thread takes at a time. Threads do not run equally fast, least of all in a
 * virtual machine whose host must find memory for it: equal shares would wait for the slowest. */
#define PIECE        ((size_t)8 << 20)
#define MOST_THREADS 64u

struct touch {
    unsigned char *base;
    size_t bytes, page;
    enum gm_touch_way way;
    atomic_size_t next; /* piece */
    atomic_int error;
};

static void store(const struct touch *touch, unsigned char *from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += touch->page) {
        volatile unsigned char *byte = from + at;
        unsigned char value = *byte;
        *byte = value;
    }
}

static void touch_piece(struct touch *touch, unsigned char *from, size_t bytes) {
    if (touch->way != GM_TOUCH_STORE) {
        if (madvise(from, bytes, MADV_POPULATE_WRITE) == 0)
            return;
        if (errno != EINVAL || touch->way == GM_TOUCH_POPULATE_ONLY) { /* of an older kernel */
            atomic_store(&touch->error, errno);
            return;
        }
    }
    store(touch, from, bytes);
}

static void *touch_pieces(void *argument) {
    struct touch *touch = argument;
    size_t at;
    while ((at = PIECE * atomic_fetch_add(&touch->next, 1)) < touch->bytes) {
        size_t left = touch->bytes - at;
        touch_piece(touch, touch->base + at, left < PIECE ? left : PIECE);
    }
    return NULL;
}

int gm_touch(void *base, size_t bytes, unsigned threads, enum gm_touch_way way) {
    struct touch touch = {
        .base = base, .bytes = bytes, .page = (size_t)sysconf(_SC_PAGESIZE), .way = way};
    pthread_t ids[MOST_THREADS];
    unsigned started = 0;
    if (threads > MOST_THREADS)
        threads = MOST_THREADS;
    if (threads > bytes / PIECE)
        threads = (unsigned)(bytes / PIECE);
    while (started + 1 < threads && gm_thread_start(&ids[started], 0, touch_pieces, &touch) == 0)
        started++;
    touch_pieces(&touch);
    for (unsigned i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    return atomic_load(&touch.error);
}
