/*
 * Files into device memory, at the speed of the link, and checksums that prove that they arrived.
 *
 * Reader threads fill chunks of pinned memory; each chunk is copied on a stream while others are
 * read; the buffer's address space is reserved for the whole file and memory is mapped into it as
 * the file comes, so its address never moves.
 */
#ifndef GPUMEM_LOAD_H
#define GPUMEM_LOAD_H

#include <gpumem/buffer.h>
#include <gpumem/resource.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpumem_load_progress {
    uint64_t bytes_done; /* read, and queued for copying (load) or checked (checksum) */
    uint64_t bytes_total;
    double seconds; /* since the first read */
} gpumem_load_progress;

typedef struct gpumem_load_options {
    size_t size;
    size_t chunk_bytes; /* of one read and one copy, 64 KiB to 1 GiB; 0: 8 MiB */
    unsigned threads;   /* readers, at most 16; 0: as many as the thread may use CPUs. Where the
                         * system starts fewer threads, those do the work */
    /* Staging memory that the CPU reaches. NULL: a pinned resource is made for the call and given
     * back. Two chunks for each reader are allocated from it: 256 MiB at the most with the
     * defaults, less for a small file. Where that is more than half of what the machine and this
     * process's control groups (cgroups) have left, there are fewer readers, and then smaller
     * chunks: the report says how many. */
    gpumem_resource *pinned;
    /* Called on the calling thread about ten times a second and at the end; a result other than 0
     * stops the work: CANCELLED. NULL: never. */
    int (*progress)(void *user, const gpumem_load_progress *progress);
    void *user;
} gpumem_load_options;
#define GPUMEM_LOAD_OPTIONS(...) GPUMEM_OPTIONS(gpumem_load_options, __VA_ARGS__)

typedef struct gpumem_load_report {
    size_t size;
    uint64_t bytes;
    double seconds;        /* from the first read to the end of the last copy, pinning excluded */
    double pinned_seconds; /* making the staging memory ready */
    uint64_t chunks;       /* reads and copies */
    uint64_t mappings;     /* physical handles behind the buffer */
    uint64_t pinned_bytes; /* most staging memory at any time */
    uint64_t chunk_bytes;  /* of one read, as settled: never much more than the file has */
    unsigned threads;      /* readers that ran */
} gpumem_load_report;

/*
 * Loads a regular file into a new buffer of `resource`, which must be able to grow (a virtual
 * resource); its size is the file's. The caller frees the buffer. `report` may be NULL; else its
 * size member is to be set, and it is filled on success.
 *
 * SYSTEM with the errno: the file cannot be opened or read (ENOENT, EACCES, EISDIR, EIO, ...), is
 * empty (ENODATA) or no regular file (EINVAL). DATA: it shrank, grew or was written to meanwhile.
 * OUT_OF_MEMORY: more than the device has free, also after deferred frees were waited for and
 * caches trimmed. NOT_SUPPORTED: the resource cannot grow. CANCELLED: as progress asked. On any
 * failure nothing is left behind; what the driver does not take back is counted as quarantined.
 * Thread-safe. Blocks until the last copy is done. It waits for no other work, but for what the
 * driver waits for when a pinned resource made for the call is given back (cuMemHostUnregister).
 * Reader threads take no signals. Driver: as the resources, cuMemGetInfo, cuMemcpyAsync,
 * cuEventRecord, cuEventSynchronize, cuStreamSynchronize.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_load_file(gpumem_resource *resource,
                                                            const char *path,
                                                            const gpumem_load_options *options,
                                                            gpumem_buffer **buffer,
                                                            gpumem_load_report *report);

/*
 * Checksum of a buffer's bytes as read back from the device, and of a file's. Both are XXH3-64 over
 * the XXH3-64 of each run of 8 MiB (little-endian), so that they can be computed in parallel and
 * compared; chunk_bytes of the options is not used. They block; what was queued to write to the
 * buffer must be done, and nothing may write to it meanwhile. Errors as above. Driver:
 * cuMemcpyAsync, cuEventRecord, cuEventSynchronize, cuStreamSynchronize; none for the file's.
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
