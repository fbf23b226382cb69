#include "store_timing.h"
#include "table.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define STREAM 64 /* stores per sample */

enum state { BUFFERED, DRAINED, STREAMED, STATES };

/* ---- A clock that is finer than the stores --------------------------------------------------- */

#if defined(__x86_64__)
/* Everything before has completed, including fences, and nothing after has begun. */
static uint64_t ticks(void) {
    __builtin_ia32_lfence();
    uint64_t now = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return now;
}
#else
static uint64_t ticks(void) {
    return (uint64_t)(1e9 * bench_now());
}
#endif

static double tick_us, own; /* microseconds of a tick; ticks of the clock itself */

static void read_clock(void) {
    double costs[201], begin = bench_now();
    uint64_t first = ticks();
    while (bench_now() < begin + 0.02)
        ;
    tick_us = 1e6 * (bench_now() - begin) / (double)(ticks() - first);
    for (int i = 0; i < 201; i++) {
        uint64_t start = ticks();
        costs[i] = (double)(ticks() - start);
    }
    own = bench_median(costs, 201);
}

static double since(uint64_t start) {
    return tick_us * ((double)(ticks() - start) - own);
}

/* ---- Samples --------------------------------------------------------------------------------- */

static void wait_for(const void *at) {
    if (at)
        (void)*(const volatile uint64_t *)at;
}

static void sample(const struct bench_way *way, double *const values[STATES], unsigned index) {
    wait_for(way->arrives);
    uint64_t start = ticks();
    way->run();
    values[BUFFERED][index] = since(start);
    wait_for(way->arrives);
    start = ticks();
    way->run();
    wait_for(way->arrives);
    values[DRAINED][index] = since(start);
    start = ticks();
    for (int i = 0; i < STREAM; i++)
        way->run();
    values[STREAMED][index] = since(start) / STREAM;
}

struct result {
    double medians[STATES], p99;
};

static struct result result_of(double *const values[STATES], unsigned samples) {
    struct result result;
    for (int i = 0; i < STATES; i++)
        result.medians[i] = bench_median(values[i], samples);
    result.p99 = values[BUFFERED][(size_t)(0.99 * (samples - 1))]; /* sorted by the median */
    return result;
}

static void row(const char *name, const char *state, double value, double baseline) {
    char what[80];
    snprintf(what, sizeof what, "%s, %s", name, state);
    bench_row(what, value, baseline, "us");
}

static void print(const char *name, const struct result *own_result, const struct result *first) {
    const struct result none = {.p99 = 0};
    if (own_result == first)
        first = &none;
    row(name, "buffered", own_result->medians[BUFFERED], first->medians[BUFFERED]);
    row(name, "buffered, p99", own_result->p99, first->p99);
    row(name, "drained", own_result->medians[DRAINED], first->medians[DRAINED]);
    row(name, "stream", own_result->medians[STREAMED], first->medians[STREAMED]);
}

void bench_stores(const struct bench_way *ways, size_t count, unsigned samples, const char *title) {
    double *values = calloc(count * STATES * samples, sizeof *values);
    struct result *results = calloc(count, sizeof *results);
    if (!values || !results)
        bench_fail("no memory for %u samples", samples);
    read_clock();
    for (unsigned s = 0; s < samples; s++)
        for (size_t i = 0; i < count; i++) {
            double *of = values + i * STATES * samples;
            if (ways[i].run)
                sample(&ways[i], (double *[]){of, of + samples, of + 2 * (size_t)samples}, s);
        }
    bench_header(title, ways[0].name);
    for (size_t i = 0; i < count; i++) {
        double *of = values + i * STATES * samples;
        if (!ways[i].run)
            continue;
        results[i] = result_of((double *[]){of, of + samples, of + 2 * (size_t)samples}, samples);
        print(ways[i].name, &results[i], &results[0]);
    }
    free(values);
    free(results);
}
