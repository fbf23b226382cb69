/* Signals that interrupt system calls, and a process without descriptors 0 to 2: mapped memory
 * works, waits as long as it was told, and puts nothing where standard streams belong. */
#include "forked_child.h"
#include "vulkan_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static const gpumem_mapped_method methods[] = {GPUMEM_MAPPED_VULKAN_IMPORT,
                                               GPUMEM_MAPPED_VULKAN_EXPORT, GPUMEM_MAPPED_DMA_BUF,
                                               GPUMEM_MAPPED_DESCRIPTOR};

/* ---- In a child, which has no cmocka --------------------------------------------------------- */

static const int first_line = __LINE__;
#define DONE(call) HOLDS((call) == GPUMEM_OK)

static void see_that_it_works(gpumem_buffer *buffer, size_t at) {
    char bytes[5];
    DONE(gpumem_mapped_write(buffer, at, "last", 5));
    DONE(gpumem_mapped_flush(buffer, 0, at));
    DONE(read_now(buffer, at, bytes, 5, NULL));
    HOLDS(memcmp(bytes, "last", 5) == 0);
    DONE(write_now(buffer, at, "more", 5, NULL));
    DONE(gpumem_mapped_read(buffer, at, bytes, 5));
    HOLDS(memcmp(bytes, "more", 5) == 0);
}

static void use_view(void) {
    gpumem_resource *plain;
    gpumem_buffer *buffer;
    gpumem_buffer *view;
    char byte;
    DONE(gpumem_virtual_resource_create(
        device, GPUMEM_VIRTUAL_OPTIONS(.capacity = 8 * MIB, .maximum_chunk_bytes = 2 * MIB),
        &plain));
    DONE(gpumem_buffer_allocate(plain, 2 * MIB, NULL, &buffer));
    DONE(gpumem_buffer_host_view(buffer, NULL, &view));
    DONE(gpumem_buffer_grow(buffer, 6 * MIB, NULL));
    ((char *)gpumem_buffer_host_pointer(view))[6 * MIB - 1] = 'v';
    DONE(gpumem_mapped_flush(view, 6 * MIB - 1, 1));
    DONE(read_now(buffer, 6 * MIB - 1, &byte, 1, NULL));
    HOLDS(byte == 'v');
    DONE(gpumem_buffer_free(view, NULL));
    DONE(gpumem_buffer_free(buffer, NULL));
    DONE(gpumem_resource_destroy(plain));
}

static void use(gpumem_mapped_method method, void (*meanwhile)(void)) {
    gpumem_resource *mapped;
    gpumem_buffer *buffer;
    int grows = method != GPUMEM_MAPPED_VULKAN_EXPORT;
    DONE(gpumem_mapped_resource_create(device,
                                       GPUMEM_MAPPED_OPTIONS(.method = method, .method_strict = 1,
                                                             .capacity = grows ? 8 * MIB : 0,
                                                             .maximum_chunk_bytes = 2 * MIB),
                                       &mapped));
    DONE(gpumem_buffer_allocate(mapped, 4 * MIB, NULL, &buffer));
    see_that_it_works(buffer, 4 * MIB - 5);
    if (grows) {
        DONE(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
        see_that_it_works(buffer, 8 * MIB - 5);
        DONE(gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
        see_that_it_works(buffer, 2 * MIB - 5);
    }
    use_view();
    if (meanwhile)
        meanwhile();
    DONE(gpumem_buffer_free(buffer, NULL));
    DONE(gpumem_resource_destroy(mapped));
}

static void open_in_child(void) {
    HOLDS(open_device(NULL) == 0);
    HOLDS(find_icd(NULL) == 0);
}

static void close_in_child(void) {
    DONE(gpumem_device_close(device));
    DONE(gpumem_close(library));
    struct vulkan_icd_live live = icd->live();
    HOLDS(!live.instances && !live.devices && !live.memories && !live.maps && !icd->violation());
}

static void run_child(void (*body)(void)) {
    int status = 0;
    fflush(NULL);
    choose_icd();
    setenv("SOFTGPU_PROFILE", "dmabuf", 1);
    pid_t child = fork();
    if (child == 0) {
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status))
        fail_msg("it ends with signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        fail_msg("it fails in line %d", first_line + WEXITSTATUS(status) - 1);
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

static void standard_ones_are_free(void) {
    for (int fd = 0; fd < 3; fd++)
        HOLDS(fcntl(fd, F_GETFD) < 0);
}

static void use_without_standard_descriptors(void) {
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    open_in_child();
    standard_ones_are_free();
    for (size_t i = 0; i < COUNT(methods); i++) {
        use(methods[i], standard_ones_are_free);
        standard_ones_are_free();
    }
    close_in_child();
}

TEST_IS(mapped_memory_works_without_standard_descriptors,
        run_child(use_without_standard_descriptors));

/* ---- Signals --------------------------------------------------------------------------------- */

static volatile sig_atomic_t signals;

static void count(int number) {
    signals = signals + 1;
}

/* Every 200 us, without SA_RESTART. */
static void send_signals(void) {
    const struct sigaction action = {.sa_handler = count};
    const struct itimerval often = {{0, 200}, {0, 200}};
    HOLDS(sigaction(SIGALRM, &action, NULL) == 0);
    HOLDS(setitimer(ITIMER_REAL, &often, NULL) == 0);
}

static long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A full ring, and an empty one. */
static void wait_in_rings(gpumem_resource *mapped) {
    gpumem_ring *ring;
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    DONE(gpumem_ring_create(mapped, GPUMEM_RING_OPTIONS(.chunk_bytes = 4096, .chunk_count = 2),
                            &ring));
    long before = milliseconds();
    HOLDS(gpumem_ring_consume(ring, 30, &chunk) == GPUMEM_ERROR_TIMED_OUT);
    HOLDS(milliseconds() - before >= 29);
    gpumem_ring_chunk first = {.size = sizeof first};
    DONE(gpumem_ring_acquire(ring, 0, 0, &first));
    DONE(gpumem_ring_acquire(ring, 0, 0, &chunk));
    before = milliseconds();
    HOLDS(gpumem_ring_acquire(ring, 0, 30, &chunk) == GPUMEM_ERROR_TIMED_OUT);
    HOLDS(milliseconds() - before >= 29);
    DONE(gpumem_ring_abandon(ring, first.sequence));
    DONE(gpumem_ring_abandon(ring, chunk.sequence));
    DONE(gpumem_ring_destroy(ring));
}

static void use_under_signals(void) {
    gpumem_resource *mapped;
    send_signals(); /* before the drivers are opened */
    open_in_child();
    for (size_t i = 0; i < COUNT(methods); i++)
        use(methods[i], NULL);
    DONE(gpumem_mapped_resource_create(device, NULL, &mapped));
    wait_in_rings(mapped);
    DONE(gpumem_resource_destroy(mapped));
    close_in_child();
    HOLDS(signals > 50);
}

TEST_IS(mapped_memory_works_under_frequent_signals, run_child(use_under_signals));
