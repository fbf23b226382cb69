/* Waiting for a word in memory that processes share. */
#ifndef SG_CHECKPOINT_FUTEX_H
#define SG_CHECKPOINT_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Returns when woken, when the word is not `value`, after `nanoseconds`, or spuriously. */
static inline void sg_futex_wait(_Atomic(uint32_t) *word, uint32_t value, uint64_t nanoseconds) {
    struct timespec span = {.tv_sec = (time_t)(nanoseconds / 1000000000u),
                            .tv_nsec = (long)(nanoseconds % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &span, NULL, 0);
}

static inline void sg_futex_wake(_Atomic(uint32_t) *word) {
    syscall(SYS_futex, word, FUTEX_WAKE, 0x7fffffff, NULL, NULL, 0);
}

#endif
