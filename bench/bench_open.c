/*
 * From nothing to the first allocation, in fresh processes of this program: open the driver,
 * initialise it, make the context, allocate 2 MiB. The parent opens no driver, so it warms nothing
 * up.
 */
#include "check.h"
#include "table.h"

#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 21

struct sample {
    double open, device, allocate; /* seconds since the start */
};

static struct sample measure(void) {
    struct sample sample;
    gpumem_library *library = NULL;
    gpumem_device *device = NULL;
    gpumem_resource *resource = NULL;
    gpumem_buffer *buffer = NULL;
    double start = bench_now();
    ok(gpumem_open(NULL, &library), "open");
    sample.open = bench_now() - start;
    ok(gpumem_device_open(library, 0, &device), "device");
    sample.device = bench_now() - start;
    ok(gpumem_virtual_resource_create(device, NULL, &resource), "resource");
    ok(gpumem_buffer_allocate(resource, (size_t)2 << 20, NULL, &buffer), "allocate");
    sample.allocate = bench_now() - start;
    ok(gpumem_buffer_free(buffer, NULL), "free");
    ok(gpumem_resource_destroy(resource), "destroy");
    ok(gpumem_device_close(device), "device close");
    ok(gpumem_close(library), "close");
    return sample;
}

static struct sample measure_in_child(void) {
    int ends[2];
    if (pipe(ends) != 0)
        bench_fail("pipe");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct sample sample = measure();
        _exit(write(ends[1], &sample, sizeof sample) == sizeof sample ? 0 : 1);
    }
    close(ends[1]);
    struct sample sample;
    ssize_t got = read(ends[0], &sample, sizeof sample);
    close(ends[0]);
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0 || got != sizeof sample)
        bench_fail("a measuring process failed");
    return sample;
}

int main(void) {
    double open[ROUNDS], device[ROUNDS], allocate[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        struct sample sample = measure_in_child();
        open[i] = 1e3 * sample.open;
        device[i] = 1e3 * sample.device;
        allocate[i] = 1e3 * sample.allocate;
    }
    const char *choice = getenv("GPUMEM_DRIVER");
    printf("driver: %s, %d fresh processes, medians\n", choice ? choice : "libcuda.so.1", ROUNDS);
    bench_header("from the start of gpumem_open", "-");
    bench_row("library open (driver loaded, initialised)", bench_median(open, ROUNDS), 0, "ms");
    bench_row("device open (context)", bench_median(device, ROUNDS), 0, "ms");
    bench_row("first 2 MiB allocated", bench_median(allocate, ROUNDS), 0, "ms");
    return 0;
}
