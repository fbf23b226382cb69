/* Breadth-first search: distances from a vertex of a random graph, and its components. */
#include "base/program.h"

#define THREADS 128u

static unsigned count;
static uint32_t *rows, *edges;

/* Each edge in both directions; some vertices have none. */
static void make(unsigned vertices, unsigned pairs) {
    uint32_t(*ends)[2] = host_new(pairs * sizeof *ends), *at;
    count = vertices;
    rows = host_new((count + 1) * sizeof *rows);
    at = host_new(count * sizeof *at);
    edges = host_new(2 * pairs * sizeof *edges);
    for (unsigned i = 0; i < pairs; i++)
        for (unsigned j = 0; j < 2; j++)
            rows[(ends[i][j] = random_bits() % count) + 1]++;
    for (unsigned i = 0; i < count; i++) {
        at[i] = rows[i];
        rows[i + 1] += rows[i];
    }
    for (unsigned i = 0; i < pairs; i++)
        for (unsigned j = 0; j < 2; j++)
            edges[at[ends[i][j]]++] = ends[i][1 - j];
}

/* Sets the distances of vertices that `root` reaches, and returns their number. */
static unsigned distances_from(unsigned root, uint32_t *distances, uint32_t *queue) {
    unsigned head = 0, tail = 0;
    distances[root] = 0;
    queue[tail++] = root;
    while (head < tail) {
        unsigned vertex = queue[head++];
        for (unsigned i = rows[vertex]; i < rows[vertex + 1]; i++)
            if (distances[edges[i]] == UINT32_MAX) {
                distances[edges[i]] = distances[vertex] + 1;
                queue[tail++] = edges[i];
            }
    }
    return tail;
}

static void levels(CUdeviceptr r, CUdeviceptr e) {
    size_t bytes = count * sizeof(uint32_t);
    uint32_t *want = host_new(bytes), *got = host_new(bytes), *queue = host_new(bytes), size = 1;
    unsigned level = 1;
    memset(want, 0xff, bytes);
    memset(got, 0xff, bytes);
    got[0] = 0;
    unsigned reached = distances_from(0, want, queue);
    CUdeviceptr distances = device_copy(got, bytes), next_size = device_new(4);
    CUdeviceptr frontiers[2] = {device_new(bytes), device_new(bytes)};
    for (; size; level++) {
        uint32_t none = 0;
        device_write(next_size, &none, sizeof none);
        LAUNCH("expand", SHAPE((size + THREADS - 1) / THREADS, THREADS), &r, &e,
               &frontiers[1 - level % 2], &size, &distances, &level, &frontiers[level % 2],
               &next_size);
        device_read(&size, next_size, sizeof size);
    }
    device_read(got, distances, bytes);
    expect_equal("distances", got, want, bytes);
    checksum("distances", got, bytes);
    expect(reached > count / 2, "%u of %u vertices in %u levels", reached, count, level - 1);
}

static void components(CUdeviceptr r, CUdeviceptr e) {
    size_t bytes = count * sizeof(uint32_t);
    uint32_t *want = host_new(bytes), *got = host_new(bytes), *queue = host_new(bytes);
    uint32_t *seen = host_new(bytes), changed = 1;
    unsigned found = 0;
    memset(seen, 0xff, bytes);
    for (unsigned i = 0; i < count; i++) {
        got[i] = i;
        if (seen[i] != UINT32_MAX)
            continue;
        unsigned reached = distances_from(i, seen, queue);
        for (unsigned j = 0; j < reached; j++)
            want[queue[j]] = i;
        found++;
    }
    CUdeviceptr labels = device_copy(got, bytes), flag = device_new(4);
    while (changed) {
        changed = 0;
        device_write(flag, &changed, sizeof changed);
        LAUNCH("sink", SHAPE((count + THREADS - 1) / THREADS, THREADS), &r, &e, &count, &labels,
               &flag);
        device_read(&changed, flag, sizeof changed);
    }
    device_read(got, labels, bytes);
    expect_equal("labels", got, want, bytes);
    expect(found > 1, "%u components", found);
}

PROGRAM("bfs") {
    unsigned more = program_scale(12), pairs = 16000 * more;
    make(10007 * more, pairs);
    CUdeviceptr r = device_copy(rows, (count + 1) * 4), e = device_copy(edges, 2 * pairs * 4);
    levels(r, e);
    components(r, e);
}
