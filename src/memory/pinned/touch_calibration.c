#include "memory/pinned/touch_calibration.h"

#include "base/cache_file.h"
#include "base/descriptor.h"
#include "driver/loader.h"
#include "memory/pinned/pinned_slab.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Parts are large enough that starting the threads is a small share of their time, and few enough
 * that the trials take at most half of the smallest slab. */
#define LEAST  ((size_t)4 << 30)
#define PART   ((size_t)256 << 20)
#define ROUNDS ((size_t)2)

static size_t least = LEAST, part = PART;

/* Nothing else is locked under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* For one machine and affinity; a process has few. */
struct known {
    char key[512];
    unsigned threads;
    gpumem_measured measured; /* NEVER: searched for, and not found */
};
static struct known known[8];
static size_t known_count;

/* ---- Whose number it is ---------------------------------------------------------------------- */

static void cpu_name(char *name, size_t room) {
    FILE *file = gm_fd_stream("/proc/cpuinfo", "r");
    char line[256];
    snprintf(name, room, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value)
            continue;
        value += strspn(value, ": \t");
        value[strcspn(value, "\n")] = 0;
        snprintf(name, room, "%s", value);
        break;
    }
    if (file)
        fclose(file);
}

/* What the number depends on, as text. */
static void write_key(const gpumem_device *device, char *key, size_t room) {
    char cpu[128], gpu[128] = "unknown";
    cpu_name(cpu, sizeof cpu);
    if (device->cu->cuDeviceGetName(gpu, (int)sizeof gpu, device->handle) != CUDA_SUCCESS)
        snprintf(gpu, sizeof gpu, "unknown");
    int softgpu = gm_driver_is_softgpu(device->library->driver);
    snprintf(key, room, "cpu %s\nprocessors %u of %ld\ndriver %s %d\ngpu %s\n", cpu,
             gm_slab_default_threads(), sysconf(_SC_NPROCESSORS_ONLN),
             softgpu ? "softgpu" : "nvidia", device->library->driver_version, gpu);
}

static void file_name(const char *key, char name[64]) {
    uint64_t sum = 0xcbf29ce484222325u;
    for (const char *at = key; *at; at++)
        sum = (sum ^ (unsigned char)*at) * 0x100000001b3u;
    snprintf(name, 64, "touch-%016" PRIx64, sum);
}

/* ---- Keeping it ------------------------------------------------------------------------------ */

#define FORMAT "gpumem calibration 1\n%sthreads %u\n"

/* A file of another machine, whatever its name, is not this one's. */
static unsigned read_file(const char *key) {
    char name[64], text[GM_CACHE_MOST], again[GM_CACHE_MOST];
    file_name(key, name);
    if (!gm_cache_read(name, text, sizeof text))
        return 0;
    for (unsigned threads = 1; threads <= gm_slab_default_threads(); threads++) {
        snprintf(again, sizeof again, FORMAT, key, threads);
        if (strcmp(again, text) == 0)
            return threads;
    }
    return 0;
}

static void write_file(const char *key, unsigned threads) {
    char name[64], text[GM_CACHE_MOST];
    file_name(key, name);
    snprintf(text, sizeof text, FORMAT, key, threads);
    (void)gm_cache_write(name, text);
}

static struct known *find(const char *key) {
    for (size_t i = 0; i < known_count; i++)
        if (strcmp(known[i].key, key) == 0)
            return &known[i];
    return NULL;
}

static void remember(const char *key, unsigned threads, gpumem_measured measured) {
    pthread_mutex_lock(&lock);
    struct known *at = find(key);
    if (!at && known_count < sizeof known / sizeof known[0]) {
        at = &known[known_count++];
        snprintf(at->key, sizeof at->key, "%s", key);
    }
    if (at) {
        at->threads = threads;
        at->measured = measured;
    }
    pthread_mutex_unlock(&lock);
}

/* Whether the process already knows the answer, which *threads and *measured then receive. */
static int recall(const char *key, unsigned *threads, gpumem_measured *measured) {
    pthread_mutex_lock(&lock);
    const struct known *at = find(key);
    if (at) {
        *threads = at->threads;
        *measured = at->measured;
    }
    pthread_mutex_unlock(&lock);
    return at != NULL;
}

static unsigned look_up(const char *key, gpumem_measured *measured) {
    unsigned threads = gm_slab_default_threads();
    *measured = GPUMEM_MEASURED_NEVER;
    if (threads == 1 || recall(key, &threads, measured))
        return threads;
    unsigned before = read_file(key);
    if (before) {
        threads = before;
        *measured = GPUMEM_MEASURED_BEFORE;
    }
    remember(key, threads, *measured);
    return threads;
}

unsigned gm_touch_threads(gpumem_device *device, gpumem_measured *measured) {
    char key[sizeof known[0].key];
    write_key(device, key, sizeof key);
    return look_up(key, measured);
}

/* ---- Measuring ------------------------------------------------------------------------------- */

size_t gm_calibration_candidates(unsigned most, unsigned counts[GM_MOST_CANDIDATES]) {
    size_t count = 0;
    unsigned smallest = most;
    while (smallest > 1 && count + 1 < GM_MOST_CANDIDATES) {
        smallest = (smallest + 1) / 2;
        count++;
    }
    for (unsigned i = 0; i <= count; i++) {
        unsigned value = most;
        for (size_t halves = count - i; halves; halves--)
            value = (value + 1) / 2;
        counts[i] = value;
    }
    return count + 1;
}

unsigned gm_calibration_choose(const unsigned *counts, const uint64_t *times, size_t count) {
    if (count == 0 || count > GM_MOST_CANDIDATES)
        return 1;
    const size_t most = count - 1;
    size_t fastest = most;
    for (size_t i = 0; i < count; i++)
        if (times[i] < times[fastest])
            fastest = i;
    return counts[times[most] - times[fastest] > times[fastest] / 20 ? fastest : most];
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Touches the first parts with different numbers of threads; the best time of each counts, because
 * disturbances only add. Adds the bytes touched to *done. 0 or an errno. */
static int measure(unsigned char *base, enum gm_touch_way way, size_t *done, unsigned *threads) {
    unsigned counts[GM_MOST_CANDIDATES];
    uint64_t best[GM_MOST_CANDIDATES];
    size_t count = gm_calibration_candidates(gm_slab_default_threads(), counts);
    for (size_t i = 0; i < GM_MOST_CANDIDATES; i++)
        best[i] = UINT64_MAX;
    for (size_t i = 0; i < ROUNDS * count; i++) {
        size_t which = i % count;
        uint64_t begin = now();
        int error = gm_touch(base + *done, part, counts[which], way);
        uint64_t took = now() - begin;
        if (error)
            return error;
        *done += part;
        if (took < best[which])
            best[which] = took;
    }
    *threads = gm_calibration_choose(counts, best, count);
    return 0;
}

int gm_touch_measured(gpumem_device *device, void *base, size_t bytes, enum gm_touch_way way) {
    char key[sizeof known[0].key];
    gpumem_measured measured;
    size_t done = 0;
    if (bytes < least)
        return gm_touch(base, bytes, gm_touch_threads(device, &measured), way);
    write_key(device, key, sizeof key);
    unsigned threads = look_up(key, &measured);
    /* With one thread there is no choice, and populating is for when memory is short, not for
     * speed.
     */
    if (measured == GPUMEM_MEASURED_NEVER && threads > 1 && way == GM_TOUCH_STORE &&
        ROUNDS * GM_MOST_CANDIDATES * part <= bytes) {
        int error = measure(base, way, &done, &threads);
        if (error)
            return error;
        remember(key, threads, GPUMEM_MEASURED_HERE);
        write_file(key, threads);
    }
    return gm_touch((unsigned char *)base + done, bytes - done, threads, way);
}

void gm_calibration_for_tests(size_t slab, size_t piece) {
    least = slab ? slab : LEAST;
    part = piece ? piece : PART;
    known_count = 0;
}
