/*
 * What public operations do, counted while programs of this folder run: how often each is called
 * by the test's first thread, how many driver calls are made meanwhile, and how many of those a
 * sweep has made to fail. The linker puts a wrapper in the place of each (operations.py). Calls by
 * the library itself, and by its callbacks, count for the operation that the test called.
 *
 * Where GPUMEM_OPERATIONS names a file, the program appends a line for each operation at its end:
 *
 *     name  calls that succeeded  most driver calls of one call  calls in sweeps  failed calls
 *
 * test_every_operation.py asks that none is missing.
 */
#ifndef FAULT_OPERATIONS_H
#define FAULT_OPERATIONS_H

#include <gpumem/softgpu.h>
#include <stddef.h>
#include <stdint.h>

struct operation_entry {
    size_t number;
    uint64_t calls; /* of the driver, before */
};

/* Made by operations.py. */
extern const char *const operation_names[];
extern const size_t operation_count;

struct operation_entry operation_enter(size_t number);
void operation_leave(const struct operation_entry *entry, int good);

/* Whose driver calls are counted. */
void operations_of(const softgpu_control *control);

/* A sweep's act begins, whose n-th driver call fails; and is over. */
void operations_sweep_begins(uint64_t n);
void operations_sweep_ends(void);

#endif
