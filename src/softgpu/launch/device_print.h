/*
 * printf of kernels: records a call with all that it prints; the host's own conversions write it
 * later.
 *
 * Conversions are those of C, with h, hh, l, ll, j, z and t. Anything else is written as it is, as
 * is everything after the 32nd argument. OpenCL's vectors (%v4hlf and the like) are known to an
 * H200's host, but not to its kernels: they take no argument, and the host prints, separated by
 * commas, what follows the arguments: the bytes of the format itself. This does the same.
 */
#ifndef SG_LAUNCH_DEVICE_PRINT_H
#define SG_LAUNCH_DEVICE_PRINT_H

#include "softgpu/engine/device_call.h"

#include <stdio.h>

#define SG_PRINT_ARGUMENTS 32

struct sg_print;

/*
 * Records a call of vprintf. Returns the kernel's result: the number of arguments; -1 without a
 * format; -2 if one cannot be read or the host is out of memory. *print is NULL if it is negative.
 */
int sg_print_record(const struct sg_device_call *call, struct sg_print **print);
/* A line for standard error; takes ownership of the text. NULL: out of memory; the text is
 * freed. */
struct sg_print *sg_print_of_text(char *text);
/* Bytes that it takes in the fifo: 16, the arguments in the kernel's layout, and the strings with
 * their terminators, each rounded up to 8. */
size_t sg_print_size(const struct sg_print *print);
/* Writes it to `out`; a line for standard error goes there. */
void sg_print_write(const struct sg_print *print, FILE *out);
void sg_print_free(struct sg_print *print);

/* The link of a list, which the owner of the first keeps. */
struct sg_print **sg_print_next(struct sg_print *print);

/* The string at a generic address of the lane, malloc'ed; NULL if it cannot be read, is longer than
 * 1 MiB, or the host is out of memory. */
char *sg_device_string(const struct sg_device_call *call, uint64_t address);

#endif
