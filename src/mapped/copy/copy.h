/*
 * Copies between host memory and device memory that the CPU has mapped, which is write-combined or
 * uncached as a rule: which instructions store or load fastest there differs from CPU to CPU, so
 * there is a kernel for each kind, a measurement, and a plan that comes of it.
 *
 * All kernels are right for every size and every alignment of either side. The mapped side is
 * reached by naturally aligned accesses that stay inside the bytes asked for: what lies beside them
 * is neither written nor read. (The C library's memcpy goes by its own rules, and is a kernel only
 * on machines whose mappings take unaligned accesses.) The two sides may not overlap: then the
 * result is undefined, as memcpy's. NULL is fine where `bytes` is 0.
 *
 * Everything is thread-safe, waits for nothing, and calls no driver.
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

/* The kernels that this CPU has and that can do one of `directions` (GM_COPY_STORE, GM_COPY_LOAD,
 * or both): written to `kernels`, plain first, and how many. */
unsigned gm_copy_kernels(unsigned directions, enum gm_copy_kernel kernels[GM_COPY_KERNEL_COUNT]);
/* "avx2" and the like, constant. */
const char *gm_copy_kernel_name(enum gm_copy_kernel kernel);
/* False, with *kernel untouched, for a name of none; whether this CPU has it is another question.
 */
bool gm_copy_kernel_find(const char *name, enum gm_copy_kernel *kernel);
/* Has this CPU the kernel, in all of `directions`? */
bool gm_copy_kernel_can(enum gm_copy_kernel kernel, unsigned directions);

/* `dst` is mapped memory. The stores may be seen in any order, and late, until gm_copy_fence. A
 * kernel that gm_copy_kernel_can refuses is replaced by plain. */
void gm_copy_store(enum gm_copy_kernel kernel, void *dst, const void *src, size_t bytes);
/* `src` is mapped memory. Streaming loads may be served by what the CPU has read ahead:
 * gm_copy_fence_load before them makes sure that they see what a flag that was read announced. */
void gm_copy_load(enum gm_copy_kernel kernel, void *dst, const void *src, size_t bytes);

/* Stores before it are seen by the device before stores after it, and have left the CPU's
 * write-combining buffers. */
void gm_copy_fence(void);
/* Loads after it do not happen before loads that precede it, streaming ones included. */
void gm_copy_fence_load(void);

/* ---- Plans ----------------------------------------------------------------------------------- */

#define GM_COPY_CLASS_LIMIT 32
#define GM_COPY_NEVER       UINT64_MAX

struct gm_copy_class {
    uint64_t bytes; /* the largest size of the class; the last class has all larger ones too */
    enum gm_copy_kernel store, load;
};

/* From so many bytes on the driver's synchronous copy is the faster way; GM_COPY_NEVER: it never
 * is, or was not measured. */
struct gm_copy_cutover {
    uint64_t pinned, pageable; /* by what the host side is */
};

/* What to use for which size. Plain data: to be copied, compared by its fields and kept. */
struct gm_copy_plan {
    struct gm_copy_class classes[GM_COPY_CLASS_LIMIT]; /* by size, ascending */
    unsigned class_count;                              /* at least 1 */
    struct gm_copy_cutover store, load;
};

/* What is good in general where nothing has been measured: plain for what fits into a line, the
 * widest stores and loads that the CPU has for the rest, the driver for large reads, and for large
 * writes from pinned memory. */
struct gm_copy_plan gm_copy_plan_default(void);

/* The class that a size belongs to. */
const struct gm_copy_class *gm_copy_plan_class(const struct gm_copy_plan *plan, uint64_t bytes);

/* ---- Calibration ----------------------------------------------------------------------------- */

/* The driver's copy of `bytes` between the host memory and the mapped buffer, done when it returns;
 * false when it failed. */
typedef bool (*gm_copy_driver_fn)(void *user, void *host, size_t bytes);

struct gm_copy_subject {
    void *mapped;   /* the mapped memory, overwritten by the measurement */
    void *pageable; /* ordinary host memory, aligned to 64, overwritten too */
    void *pinned;   /* the same, pinned; NULL when there is none */
    size_t size;    /* of each of the three */
    gm_copy_driver_fn driver_store, driver_load; /* NULL: not measured, and never cut over to */
    void *user;
    uint64_t nanoseconds; /* for one kernel at one size, at most; at least three runs are made */
};

/* One way at one size, in nanoseconds from the first store or load until the fence has passed. */
struct gm_copy_timing {
    double store, load; /* negative: not measured; the kernel does not have the direction */
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
    GM_COPY_DRIVER_FAILED /* one of the driver's copies did */
};

/*
 * Measures each kernel that this CPU has, and the driver's copies, at each of `count` sizes (at
 * most GM_COPY_CLASS_LIMIT, ascending), which become the plan's classes. A direction in which the
 * driver is eight times as fast as every kernel is measured by the driver alone from there on.
 * *plan, and *timings unless NULL, are set only when all has been measured. Blocks for as long as
 * that takes: sizes times kernels times `nanoseconds`, three runs of the slowest at least.
 */
enum gm_copy_outcome gm_copy_calibrate(const struct gm_copy_subject *subject, const size_t *sizes,
                                       unsigned count, struct gm_copy_plan *plan,
                                       struct gm_copy_timings *timings);

/* The plan that these timings of `count` sizes ask for. Negative ones were not measured: the driver
 * is not cut over to for those of its own, and is where those of the kernels are. */
struct gm_copy_plan gm_copy_plan_of(const struct gm_copy_timings *timings, const size_t *sizes,
                                    unsigned count);

/* ---- Plans as text --------------------------------------------------------------------------- */

#define GM_COPY_KEY_ROOM  128
#define GM_COPY_TEXT_ROOM 4096 /* bytes that a plan never exceeds as text */

/* What a plan holds for. Texts of one line. */
struct gm_copy_key {
    char cpu[GM_COPY_KEY_ROOM]; /* the model's name: gm_copy_cpu_name */
    char driver[GM_COPY_KEY_ROOM];
    char gpu[GM_COPY_KEY_ROOM];
};

/* The model of this CPU as the kernel tells it, or its architecture. */
void gm_copy_cpu_name(char name[GM_COPY_KEY_ROOM]);

/* Writes the plan to `text` (NUL-terminated) and returns its length; 0 when the key or the plan
 * cannot be written: control characters or nothing in a key, a plan that decode would refuse. */
size_t gm_copy_plan_encode(const struct gm_copy_plan *plan, const struct gm_copy_key *key,
                           char text[GM_COPY_TEXT_ROOM]);

/*
 * Reads a plan back. False, with *plan untouched and the reason in `why`, for anything that encode
 * has not written: another version, a line that is missing, added or changed (the text ends with a
 * checksum), a kernel that this CPU does not have, another key than `key`.
 */
bool gm_copy_plan_decode(const char *text, size_t length, const struct gm_copy_key *key,
                         struct gm_copy_plan *plan, char *why, size_t why_size);

#endif
