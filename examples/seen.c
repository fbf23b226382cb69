/*
 * A program that reports what it holds: docs/seen.md explains it.
 *
 *     GPUMEM_DRIVER=softgpu build/examples/seen memory.json
 *     gpumem map --output memory.html memory.json
 */
#include <errno.h>
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static void check(gpumem_status status) {
    if (status == GPUMEM_OK)
        return;
    fprintf(stderr, "%s\n", gpumem_last_error()->message);
    exit(1);
}

static size_t count(const char *text, const char *word) {
    size_t found = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        found++;
    return found;
}

static void look(gpumem_library *library) {
    char *text;
    check(gpumem_snapshot(library, NULL, &text)); /* at any time, beside any other call */
    printf("%zu live, %zu chunks, %zu freed range kept, %zu call sites\n",
           count(text, "\"state\":\"live\""), count(text, "\"offset\":"),
           count(text, "\"state\":\"idle\"") + count(text, "\"state\":\"ordered\""),
           count(text, "\"frames\":"));
    free(text);
}

static int write_file(void *user, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, user) == bytes ? 0 : errno;
}

static void save(gpumem_library *library, const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(1);
    }
    check(gpumem_snapshot_write(library, GPUMEM_SNAPSHOT_OPTIONS(.without_pieces = 1), write_file,
                                file));
    fclose(file);
}

int main(int argc, char **argv) {
    gpumem_library *library;
    gpumem_device *device;
    gpumem_resource *memory, *tracked;
    gpumem_buffer *table, *scratch;
    check(gpumem_open(NULL, &library));
    check(gpumem_device_open(library, 0, &device));
    check(gpumem_virtual_resource_create(
        device, GPUMEM_VIRTUAL_OPTIONS(.maximum_chunk_bytes = 4 * MIB, .cache_bytes = 64 * MIB),
        &memory));
    /* Whose buffers remember the call that made them. */
    check(gpumem_tracking_resource_create(memory, NULL, &tracked));
    check(gpumem_buffer_allocate(tracked, 16 * MIB, NULL, &table));
    check(gpumem_buffer_allocate(tracked, 4 * MIB, NULL, &scratch));
    look(library);

    check(gpumem_buffer_decommit(table, 4 * MIB, 8 * MIB, NULL, NULL));
    check(gpumem_buffer_free(scratch, NULL));
    look(library);
    if (argc > 1)
        save(library, argv[1]);

    check(gpumem_buffer_free(table, NULL));
    check(gpumem_resource_destroy(tracked));
    check(gpumem_resource_destroy(memory));
    check(gpumem_device_close(device));
    return gpumem_close(library) == GPUMEM_OK ? 0 : 1;
}
