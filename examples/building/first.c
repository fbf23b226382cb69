/* Grows a buffer at one address: the smallest program, to be built against an installed gpumem. */
#include <gpumem/gpumem.h>
#include <stdio.h>

int main(void) {
    gpumem_library *library = NULL;
    gpumem_device *device = NULL;
    gpumem_resource *memory = NULL;
    gpumem_buffer *buffer = NULL;
    int failed = gpumem_open(NULL, &library) || gpumem_device_open(library, 0, &device) ||
                 gpumem_virtual_resource_create(device, NULL, &memory) ||
                 gpumem_buffer_allocate(memory, 2 << 20, GPUMEM_BUFFER_OPTIONS(.capacity = 1 << 30),
                                        &buffer) ||
                 gpumem_buffer_grow(buffer, 64 << 20, NULL);
    if (failed)
        fprintf(stderr, "%s\n", gpumem_last_error()->message);
    else
        printf("%zu bytes at one address\n", gpumem_buffer_size(buffer));
    gpumem_buffer_free(buffer, NULL);
    gpumem_resource_destroy(memory);
    gpumem_device_close(device);
    gpumem_close(library);
    return failed ? 1 : 0;
}
