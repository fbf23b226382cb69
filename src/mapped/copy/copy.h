/*
 * Copies between host memory and device memory that the CPU has mapped, which is usually
 * write-combined or uncached: which instructions store or load fastest there differs from CPU to
 * CPU, so there is a kernel for each kind, a measurement, and a plan derived from it.
 *
 * All kernels are correct for every size and every alignment of either side. The mapped side is
 * accessed by naturally aligned accesses that stay inside the requested bytes: adjacent bytes are
 * neither written nor read. (The C library's memcpy follows its own rules, and is a kernel only on
 * machines whose mappings accept unaligned accesses.) The two sides must not overlap: the result is
 * then undefined, as for memcpy. NULL is allowed if `bytes` is 0.
 *
 * Everything is thread-safe, never waits, and calls no driver.
 */
#ifndef GM_MAPPED_COPY_COPY_H
#define GM_MAPPED_COPY_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gm_copy_kernel {
    GM_COPY_PLAIN,     /* words of 8 bytes; on every machine, and the only one on some */
    GM_COPY_MEMCPY,    /* the C library's: for mappings that are cached */
    GM_COPY_SSE2,      /* streaming stores of 16 bytes */
    GM_COPY_SSE41,     /* streaming loads of 16 bytes */
    GM_COPY_AVX2,      /* streaming stores and loads of 32 bytes */
    GM_COPY_AVX512,    /* streaming stores and loads of 64 bytes */
    GM_COPY_MOVDIR64B, /* direct stores of 64 bytes */
    GM_COPY_KERNEL_COUNT
};

#define GM_COPY_STORE 1u
#define GM_COPY_LOAD  2u

/* The kernels that this CPU has for any of `directions` (GM_COPY_STORE, GM_COPY_LOAD, or both):
 * writes them to `kernels`, plain first, and returns their count. */
unsigned gm_copy_kernels(unsigned directions, enum gm_copy_kernel kernels[GM_COPY_KERNEL_COUNT]);
/* "avx2" and the like; a constant. */
const char *gm_copy_kernel_name(enum gm_copy_kernel kernel);
/* False, with *kernel unchanged, if no kernel has that name; says nothing about this CPU. */
bool gm_copy_kernel_find(const char *name, enum gm_copy_kernel *kernel);
/* Whether this CPU has the kernel, in all of `directions`. */
bool gm_copy_kernel_can(enum gm_copy_kernel kernel, unsigned directions);

/* `dst` is mapped memory. The stores may become visible in any order, and late, until
 * gm_copy_fence. A kernel that gm_copy_kernel_can refuses is replaced by plain. */
void gm_copy_store(enum gm_copy_kernel kernel, void *dst, const void *src, size_t bytes);
/* `src` is mapped memory. Streaming loads may be served from what the CPU has read ahead: call
 * gm_copy_fence_load first to see the data that a flag already read has announced. */
void gm_copy_load(enum gm_copy_kernel kernel, void *dst, const void *src, size_t bytes);

/* The device sees stores before it ahead of stores after it; those before it have left the CPU's
 * write-combining buffers. */
void gm_copy_fence(void);
/* Loads after it do not happen before loads that precede it, including streaming loads. */
void gm_copy_fence_load(void);

/* ---- Plans ----------------------------------------------------------------------------------- */

#define GM_COPY_CLASS_LIMIT 32
#define GM_COPY_NEVER       UINT64_MAX

struct gm_copy_class {
    uint64_t bytes; /* the largest size of the class; the last class also has all larger ones */
    enum gm_copy_kernel store, load;
};

/* From this many bytes on the driver's synchronous copy is faster; GM_COPY_NEVER: it never is, or
 * was not measured. */
struct gm_copy_cutover {
    uint64_t pinned, pageable; /* by the kind of host memory */
};

/* What to use for which size. Plain data: may be copied, compared field by field and stored. */
struct gm_copy_plan {
    struct gm_copy_class classes[GM_COPY_CLASS_LIMIT]; /* by size, ascending */
    unsigned class_count;                              /* at least 1 */
    struct gm_copy_cutover store, load;
};

/* The default where nothing has been measured: plain for sizes within a line, the widest stores and
 * loads that the CPU has for the rest, the driver for large reads, and for large writes from pinned
 * memory. */
struct gm_copy_plan gm_copy_plan_default(void);

/* The class that a size belongs to. */
const struct gm_copy_class *gm_copy_plan_class(const struct gm_copy_plan *plan, uint64_t bytes);

/* ---- Calibration ----------------------------------------------------------------------------- */

/* The driver's copy of `bytes` between the host memory and the mapped buffer, complete when it
 * returns; false if it failed. */
typedef bool (*gm_copy_driver_fn)(void *user, void *host, size_t bytes);

struct gm_copy_subject {
    void *mapped;   /* the mapped memory, overwritten by the measurement */
    void *pageable; /* ordinary host memory, aligned to 64, also overwritten */
    void *pinned;   /* the same, pinned; NULL if there is none */
    size_t size;    /* of each of the three */
    gm_copy_driver_fn driver_store, driver_load; /* NULL: not measured, and never cut over to */
    void *user;
    uint64_t nanoseconds; /* maximum for one kernel at one size, but at least three runs are made */
};

/* One way at one size, in nanoseconds from the first store or load until the fence has completed.
 */
struct gm_copy_timing {
    double store, load; /* negative: not measured; the kernel lacks the direction */
};

static inline double gm_copy_time_of(const struct gm_copy_timing *timing, unsigned direction) {
    return direction == GM_COPY_STORE ? timing->store : timing->load;
}

/* Everything that was measured, for reports. */
struct gm_copy_timings {
    struct gm_copy_timing kernels[GM_COPY_CLASS_LIMIT][GM_COPY_KERNEL_COUNT];
    struct gm_copy_timing driver_pinned[GM_COPY_CLASS_LIMIT], driver_pageable[GM_COPY_CLASS_LIMIT];
};

enum gm_copy_outcome {
    GM_COPY_MEASURED,
    GM_COPY_BAD_SIZES,    /* none, too many, not ascending, 0, or larger than the subject */
    GM_COPY_DRIVER_FAILED /* one of the driver's copies failed */
};

/*
 * Measures each kernel that this CPU has, and the driver's copies, at each of `count` sizes (at
 * most GM_COPY_CLASS_LIMIT, ascending), which become the plan's classes. Once the driver is eight
 * times as fast as every kernel in a direction, larger sizes measure the driver alone. *plan, and
 * *timings unless NULL, are set only when everything has been measured. Blocks for as long as that
 * takes: sizes times kernels times `nanoseconds`, but at least three runs of the slowest.
 */
enum gm_copy_outcome gm_copy_calibrate(const struct gm_copy_subject *subject, const size_t *sizes,
                                       unsigned count, struct gm_copy_plan *plan,
                                       struct gm_copy_timings *timings);

/* The plan for these timings of `count` sizes. Negative times were not measured: where the driver's
 * are negative it is not cut over to, and where the kernels' are negative it is. */
struct gm_copy_plan gm_copy_plan_of(const struct gm_copy_timings *timings, const size_t *sizes,
                                    unsigned count);

/* ---- Plans as text --------------------------------------------------------------------------- */

#define GM_COPY_KEY_ROOM  128
#define GM_COPY_TEXT_ROOM 4096 /* maximum length of a plan as text */

/* What a plan is valid for. Texts of one line. */
struct gm_copy_key {
    char cpu[GM_COPY_KEY_ROOM]; /* the model's name: gm_copy_cpu_name */
    char driver[GM_COPY_KEY_ROOM];
    char gpu[GM_COPY_KEY_ROOM];
};

/* The model of this CPU as the kernel reports it, or its architecture. */
void gm_copy_cpu_name(char name[GM_COPY_KEY_ROOM]);

/* Writes the plan to `text` (NUL-terminated) and returns its length; 0 if the key or the plan
 * cannot be written: an empty key, control characters in it, or a plan that decode would refuse. */
size_t gm_copy_plan_encode(const struct gm_copy_plan *plan, const struct gm_copy_key *key,
                           char text[GM_COPY_TEXT_ROOM]);

/*
 * Reads a plan back. Returns false, with *plan unchanged and the reason in `why`, for anything that
 * encode did not write: another version, a line that is missing, added or changed (the text ends
 * with a checksum), a kernel that this CPU does not have, a key other than `key`.
 */
bool gm_copy_plan_decode(const char *text, size_t length, const struct gm_copy_key *key,
                         struct gm_copy_plan *plan, char *why, size_t why_size);

#endif
