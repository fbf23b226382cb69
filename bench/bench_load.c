/*
 * gpumem_load_file from the page cache, with the pinned pool made beforehand, compared with what
 * limits it: the pinned copy rate, and the rate at which the same threads read the file into the
 * same memory. Usage: bench_load [GIB [FILE]]; without FILE a file of that size is made, and
 * removed again.
 */
#include "check.h"
#include "table.h"

#include <fcntl.h>
#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <gpumem/load.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDS       5
#define CHUNK        ((size_t)8 << 20)
#define SLOTS        2
#define MOST_THREADS 16

static gpumem_device *device;
static char made[64]; /* the file to remove at exit, however the program ends */

static void remove_made(void) {
    unlink(made);
}

/* Bytes that do not repeat, as zeros could be stored or moved faster. */
static void make_file(const char *path, uint64_t bytes) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        bench_fail("cannot make %s", path);
    uint64_t *block = malloc(CHUNK);
    uint64_t state = 1;
    for (uint64_t done = 0; done < bytes; done += CHUNK) {
        for (size_t i = 0; i < CHUNK / sizeof *block; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            block[i] = state;
        }
        if (write(fd, block, CHUNK) != (ssize_t)CHUNK)
            bench_fail("cannot write %s", path);
    }
    free(block);
    close(fd);
}

struct readers {
    int fd;
    uint64_t size;
    unsigned threads;
    unsigned char *memory;
    atomic_uint_fast64_t next;
    atomic_uint self;
};

static void *read_chunks(void *argument) {
    struct readers *readers = argument;
    unsigned self = atomic_fetch_add(&readers->self, 1);
    for (unsigned turn = 0;; turn++) {
        uint64_t offset = atomic_fetch_add(&readers->next, CHUNK);
        if (offset >= readers->size)
            return NULL;
        unsigned char *to = readers->memory + CHUNK * (self * SLOTS + turn % SLOTS);
        uint64_t left = readers->size - offset;
        size_t want = left < CHUNK ? (size_t)left : CHUNK;
        for (size_t done = 0; done < want;) {
            ssize_t n = pread(readers->fd, to + done, want - done, (off_t)(offset + done));
            if (n <= 0)
                bench_fail("the file cannot be read");
            done += (size_t)n;
        }
    }
}

/* GB/s of reading the whole file with the pump's threads, chunks and slots, and no copies. */
static double read_rate(const char *path, uint64_t size, unsigned threads, unsigned char *memory) {
    struct readers readers = {
        .fd = open(path, O_RDONLY | O_CLOEXEC), .size = size, .threads = threads, .memory = memory};
    pthread_t ids[MOST_THREADS];
    double start = bench_now();
    for (unsigned t = 0; t < threads; t++)
        if (pthread_create(&ids[t], NULL, read_chunks, &readers) != 0)
            bench_fail("no thread");
    for (unsigned t = 0; t < threads; t++)
        pthread_join(ids[t], NULL);
    double seconds = bench_now() - start;
    close(readers.fd);
    return 1e-9 * (double)size / seconds;
}

/* GB/s of copying from pinned chunks to the device on one stream, with the bare driver. */
static double copy_rate(const gpumem_driver_api *cu, uint64_t size, size_t slots,
                        const unsigned char *memory) {
    CUdeviceptr to = 0;
    CUstream stream = NULL;
    if (cu->cuMemAlloc_v2(&to, CHUNK * slots) != CUDA_SUCCESS ||
        cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        bench_fail("no memory or stream for the copy rate");
    double start = bench_now();
    uint64_t chunks = size / CHUNK;
    for (uint64_t i = 0; i < chunks; i++) {
        size_t at = CHUNK * (size_t)(i % slots);
        if (cu->cuMemcpyHtoDAsync_v2(to + at, memory + at, CHUNK, stream) != CUDA_SUCCESS)
            bench_fail("copy");
    }
    if (cu->cuStreamSynchronize(stream) != CUDA_SUCCESS)
        bench_fail("synchronize");
    double seconds = bench_now() - start;
    cu->cuStreamDestroy_v2(stream);
    cu->cuMemFree_v2(to);
    return 1e-9 * (double)(chunks * CHUNK) / seconds;
}

static double load_rate(gpumem_resource *memory, gpumem_resource *pinned, const char *path,
                        double *total, gpumem_load_report *report) {
    gpumem_load_options options = {.size = sizeof options, .pinned = pinned};
    gpumem_buffer *buffer = NULL;
    report->size = sizeof *report;
    double start = bench_now();
    ok(gpumem_load_file(memory, path, &options, &buffer, report), "load");
    *total = bench_now() - start;
    ok(gpumem_buffer_free(buffer, NULL), "free");
    ok(gpumem_device_trim(device, 1), "trim");
    return 1e-9 * (double)report->bytes / report->seconds;
}

static void compare(const gpumem_driver_api *cu, const char *path, uint64_t size) {
    gpumem_resource *memory = NULL, *pinned = NULL;
    ok(gpumem_virtual_resource_create(device, NULL, &memory), "virtual resource");
    ok(gpumem_pinned_resource_create(device, NULL, &pinned), "pinned resource");
    double load[ROUNDS], copy[ROUNDS], reading[ROUNDS], bound[ROUNDS], total[ROUNDS];
    gpumem_load_report report;
    load_rate(memory, pinned, path, &total[0], &report); /* pins, touches, fills the page cache */

    gpumem_buffer *staging = NULL;
    ok(gpumem_buffer_allocate(pinned, report.pinned_bytes, NULL, &staging), "staging");
    unsigned char *host = gpumem_buffer_host_pointer(staging);
    size_t slots = report.pinned_bytes / CHUNK;
    for (int i = 0; i < ROUNDS; i++) {
        copy[i] = copy_rate(cu, size, slots, host);
        reading[i] = read_rate(path, size, report.threads, host);
        bound[i] = copy[i] < reading[i] ? copy[i] : reading[i];
    }
    ok(gpumem_buffer_free(staging, NULL), "free");
    for (int i = 0; i < ROUNDS; i++)
        load[i] = load_rate(memory, pinned, path, &total[i], &report);

    bench_header("load from the page cache, pinned pool ready", "smaller of");
    bench_row("pinned copies, bare driver", bench_median(copy, ROUNDS), 0, "GB/s");
    bench_row("the same threads reading into the same memory", bench_median(reading, ROUNDS), 0,
              "GB/s");
    bench_row("gpumem_load_file, first read to last copy", bench_median(load, ROUNDS),
              bench_median(bound, ROUNDS), "GB/s");
    bench_row("gpumem_load_file, the whole call", 1e-9 * (double)size / bench_median(total, ROUNDS),
              0, "GB/s");
    printf("%u readers, %llu chunks, %llu mappings, peak pinned %.0f MiB\n", report.threads,
           (unsigned long long)report.chunks, (unsigned long long)report.mappings,
           (double)report.pinned_bytes / (1 << 20));
    ok(gpumem_resource_destroy(memory), "destroy");
    ok(gpumem_resource_destroy(pinned), "destroy");
}

int main(int argc, char **argv) {
    uint64_t size = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) << 30;
    const char *given = argc > 2 ? argv[2] : NULL;
    snprintf(made, sizeof made, "/dev/shm/gpumem-bench-%d", (int)getpid());
    const char *path = given ? given : made;
    struct stat status;
    if (given && stat(given, &status) == 0)
        size = (uint64_t)status.st_size;
    if (size < CHUNK)
        bench_fail("usage: bench_load [GIB [FILE]], at least 8 MiB");

    gpumem_library *library = NULL;
    ok(gpumem_open(NULL, &library), "open");
    ok(gpumem_device_open(library, 0, &device), "device");
    const gpumem_driver_api *cu = gpumem_driver_table(gpumem_library_driver(library));
    if (cu->cuCtxPushCurrent_v2(gpumem_device_context(device)) != CUDA_SUCCESS)
        bench_fail("cuCtxPushCurrent");
    if (!given) {
        atexit(remove_made);
        make_file(path, size);
    }
    printf("driver: %s, file of %.2f GiB\n", driver_info(gpumem_library_driver(library)).path,
           (double)size / (1 << 30));
    compare(cu, path, size);
    ok(gpumem_device_close(device), "device close");
    ok(gpumem_close(library), "close");
    return 0;
}
