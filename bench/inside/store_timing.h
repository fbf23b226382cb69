/* Times stores to mapped memory, several ways in turns: medians, compared with the first way. */
#ifndef BENCH_STORE_TIMING_H
#define BENCH_STORE_TIMING_H

#include <stddef.h>

struct bench_way {
    const char *name;
    void (*run)(void);   /* one store with its fence; NULL: left out */
    const void *arrives; /* a load from here waits for the stores; NULL: run waits itself */
};

/* Prints a table: for each way buffered (median and p99), drained, and in a stream. */
void bench_stores(const struct bench_way *ways, size_t count, unsigned samples, const char *title);

#endif
