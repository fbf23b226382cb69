/*
 * Loads files into device memory at the speed of the link, with checksums to prove that they
 * arrived intact.
 *
 * Reader threads fill chunks of pinned memory; each chunk is copied on a stream while others are
 * read. Address space is reserved for the whole file, and memory is mapped into it as the file
 * arrives, so the buffer's address never changes.
 */
#ifndef GPUMEM_LOAD_H
#define GPUMEM_LOAD_H

#include <gpumem/buffer.h>
#include <gpumem/resource.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the progress callback of a load is told. */
typedef struct gpumem_load_progress {
    uint64_t bytes_done; /* read, and queued for copying (load) or checked (checksum) */
    uint64_t bytes_total;
    double seconds; /* since the first read */
} gpumem_load_progress;

/* Options of gpumem_load_file and of the checksums. */
typedef struct gpumem_load_options {
    size_t size;
    size_t chunk_bytes; /* per read and copy, 64 KiB to 1 GiB; 0: 8 MiB */
    unsigned threads;   /* readers, at most 16; 0: one for each CPU that the calling thread may use.
                         * If the system starts fewer threads, those do the work */
    /* Source of staging memory, which the CPU must be able to access. NULL: a pinned resource is
     * created for the call and destroyed. Two chunks are allocated for each reader: at most 256 MiB
     * with the defaults, less for a small file. If that is more than half of the memory that the
     * machine and this process's control groups (cgroups) have left, there are fewer readers, and
     * then smaller chunks; the report says how many. */
    gpumem_resource *pinned;
    /* Called in the calling thread about ten times a second and at the end; a result other than 0
     * stops the operation: CANCELLED. May be NULL. */
    int (*progress)(void *user, const gpumem_load_progress *progress);
    void *user;
} gpumem_load_options;
#define GPUMEM_LOAD_OPTIONS(...) GPUMEM_OPTIONS(gpumem_load_options, __VA_ARGS__)

/* What gpumem_load_file reports. */
typedef struct gpumem_load_report {
    size_t size;
    uint64_t bytes;
    double seconds;        /* from the first read to the end of the last copy, pinning excluded */
    double pinned_seconds; /* preparing the staging memory */
    uint64_t chunks;       /* reads and copies */
    uint64_t mappings;     /* physical handles of the buffer */
    uint64_t pinned_bytes; /* peak staging memory */
    uint64_t chunk_bytes;  /* per read, as chosen: never much more than the file's size */
    unsigned threads;      /* readers that ran */
} gpumem_load_report;

/*
 * Loads a regular file into a new buffer, of the file's size, from `resource`, whose buffers must
 * be able to grow (a virtual resource). The caller frees the buffer. `report` may be NULL; else set
 * its `size` before the call; it is filled in on success.
 *
 * SYSTEM with the errno: the file cannot be opened or read (ENOENT, EACCES, EISDIR, EIO, ...), is
 * empty (ENODATA) or is not a regular file (EINVAL). DATA: the file shrank, grew or was written to
 * meanwhile. OUT_OF_MEMORY: larger than the device's free memory, even after waiting for deferred
 * frees and trimming caches. NOT_SUPPORTED: the resource cannot grow. CANCELLED: requested by
 * `progress`. On failure everything is undone; memory that the driver does not take back is counted
 * as quarantined. Thread-safe. Blocks until the last copy is done. Waits for no other work, except
 * as the driver does when a pinned resource created for the call is given back
 * (cuMemHostUnregister). Reader threads block all signals. Driver: as the resources, cuMemGetInfo,
 * cuMemcpyAsync, cuEventRecord, cuEventSynchronize, cuStreamSynchronize.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_load_file(gpumem_resource *resource,
                                                            const char *path,
                                                            const gpumem_load_options *options,
                                                            gpumem_buffer **buffer,
                                                            gpumem_load_report *report);

/*
 * Checksums of a buffer's bytes, as read back from the device, and of a file's. Both are the
 * XXH3-64 of the XXH3-64 values (little-endian) of each 8 MiB, so that they can be computed in
 * parallel and compared; chunk_bytes of the options is not used. They block. Queued writes to the
 * buffer must be done before the call, and nothing may write to it during the call. Errors as
 * above. Driver: cuMemcpyAsync, cuEventRecord, cuEventSynchronize, cuStreamSynchronize; none for
 * the file's.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_checksum(
    gpumem_buffer *buffer, const gpumem_load_options *options, uint64_t *checksum);
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_file_checksum(const char *path,
                                                                const gpumem_load_options *options,
                                                                uint64_t *checksum);

#ifdef __cplusplus
}
#endif

#endif
