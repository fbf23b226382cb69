/*
 * A table that grows in place, moves when it outgrows its addresses, and gives memory back:
 * docs/grow.md explains it.
 *
 *     GPUMEM_DRIVER=softgpu build/examples/grow
 */
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)

static void check(gpumem_status status) {
    if (status == GPUMEM_OK)
        return;
    fprintf(stderr, "%s\n", gpumem_last_error()->message);
    exit(1);
}

static void report(const char *what, const gpumem_buffer *table) {
    printf("%-12s %3zu MiB used, %3zu MiB of memory, room for %3zu MiB\n", what,
           gpumem_buffer_size(table) / MIB, gpumem_buffer_committed(table) / MIB,
           gpumem_buffer_capacity(table) / MIB);
}

/* Doubles until the addresses run out. */
static gpumem_status fill_up(gpumem_buffer *table) {
    gpumem_status status = GPUMEM_OK;
    while (status == GPUMEM_OK) {
        size_t old = gpumem_buffer_size(table);
        status = gpumem_buffer_grow(table, 2 * old, NULL);
        if (status == GPUMEM_OK)
            check(gpumem_buffer_fill(table, old, old, (unsigned char)(old / MIB), NULL));
    }
    return status;
}

int main(void) {
    gpumem_library *library;
    gpumem_device *device;
    gpumem_resource *memory;
    gpumem_buffer *table;
    check(gpumem_open(NULL, &library)); /* GPUMEM_DRIVER=softgpu where there is no GPU */
    check(gpumem_device_open(library, 0, &device));
    /* Not shareable, and given back in units of 32 MiB. */
    check(gpumem_virtual_resource_create(
        device,
        GPUMEM_VIRTUAL_OPTIONS(.handle_type = GPUMEM_HANDLE_NONE, .give_back_bytes = 32 * MIB),
        &memory));
    check(gpumem_buffer_allocate(memory, 32 * MIB, GPUMEM_BUFFER_OPTIONS(.capacity = 128 * MIB),
                                 &table));
    report("allocated", table);

    CUdeviceptr address = gpumem_buffer_pointer(table), moved;
    gpumem_status status = fill_up(table);
    report("grown", table);
    printf("the address %s; then %s\n",
           gpumem_buffer_pointer(table) == address ? "stayed" : "moved",
           gpumem_status_name(status));

    /* More room requires other addresses. No byte is copied: the same memory is mapped there. */
    check(gpumem_buffer_move_to_capacity(table, 512 * MIB, NULL, &moved));
    (void)fill_up(table);
    report("moved", table);

    unsigned char byte;
    check(gpumem_buffer_read(table, 64 * MIB, &byte, 1, NULL));
    check(gpumem_stream_synchronize(device, NULL));
    printf("byte 64 MiB is %u, as it was written before the move\n", byte);

    check(gpumem_buffer_shrink(table, 40 * MIB, NULL)); /* waits for the work that uses it */
    report("shrunk", table);

    check(gpumem_buffer_free(table, NULL));
    check(gpumem_resource_destroy(memory));
    check(gpumem_device_close(device));
    return gpumem_close(library) == GPUMEM_OK ? 0 : 1;
}
