/*
 * printf of kernels: a call is recorded with everything that it prints, and written out later, by
 * the host's own conversions.
 *
 * Conversions are those of C, with h, hh, l, ll, j, z and t. What is none is written as it stands,
 * as is what follows the 32nd argument. OpenCL's vectors, %v4hlf and its like, are known to an
 * H200's host and not to its kernels: they take no argument, and what is written, separated by
 * commas, is what lies behind the arguments: the bytes of the format itself. So it is here.
 */
#ifndef SG_LAUNCH_DEVICE_PRINT_H
#define SG_LAUNCH_DEVICE_PRINT_H

#include "softgpu/engine/device_call.h"

#include <stdio.h>

#define SG_PRINT_ARGUMENTS 32

struct sg_print;

/*
 * Records a call of vprintf. The result is what the kernel gets: how many arguments there were, -1
 * without a format, -2 where one cannot be read or the host has no memory; then *print is NULL.
 */
int sg_print_record(const struct sg_device_call *call, struct sg_print **print);
/* A line for standard error instead: takes the text over. NULL: no memory; the text is freed. */
struct sg_print *sg_print_of_text(char *text);
/* Bytes of the fifo that it takes: 16, the arguments as the kernel lays them out, and the strings
 * with their zeros, each rounded up to 8. */
size_t sg_print_size(const struct sg_print *print);
/* Of a line for standard error, `out` is not used. */
void sg_print_write(const struct sg_print *print, FILE *out);
void sg_print_free(struct sg_print *print);

/* A list, kept by the owner of its first. */
struct sg_print **sg_print_next(struct sg_print *print);

/* The string at an address as the lane sees it, malloc'ed; NULL where it cannot be read, is longer
 * than 1 MiB, or the host has no memory. */
char *sg_device_string(const struct sg_device_call *call, uint64_t address);

#endif
