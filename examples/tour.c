/* The tour of docs/api-tour.md: open, resource, buffer, grow, export, import. */
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static void check(gpumem_status status) {
    if (status == GPUMEM_OK)
        return;
    fprintf(stderr, "%s\n", gpumem_last_error()->message);
    exit(1);
}

/* The other process: opens its own library, since a driver does not survive a fork. */
static int reader(int socket) {
    gpumem_library *library;
    gpumem_device *device;
    gpumem_buffer *buffer;
    char text[6] = "";
    check(gpumem_open(NULL, &library));
    check(gpumem_device_open(library, 0, &device));
    check(gpumem_import_receive(device, socket, NULL, &buffer)); /* mapped, not copied */
    check(gpumem_buffer_read(buffer, 64 * MIB, text, sizeof text, NULL));
    check(gpumem_stream_synchronize(device, NULL));
    printf("the other process reads \"%s\" from %zu MiB\n", text, gpumem_buffer_size(buffer) / MIB);
    check(gpumem_buffer_free(buffer, NULL));
    check(gpumem_device_close(device));
    return gpumem_close(library) == GPUMEM_OK ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc == 2)
        return reader(atoi(argv[1]));

    gpumem_library *library;
    gpumem_device *device;
    check(gpumem_open(NULL, &library)); /* GPUMEM_DRIVER=softgpu where there is no GPU */
    check(gpumem_device_open(library, 0, &device));

    /* 2 MiB of memory now, addresses for 1 GiB: it grows in place. */
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    check(gpumem_virtual_resource_create(device, NULL, &resource));
    check(gpumem_buffer_allocate(resource, 2 * MIB, GPUMEM_BUFFER_OPTIONS(.capacity = 1024 * MIB),
                                 &buffer));
    CUdeviceptr before = gpumem_buffer_pointer(buffer);
    check(gpumem_buffer_grow(buffer, 65 * MIB, NULL));
    printf("grown to %zu MiB, the pointer %s\n", gpumem_buffer_size(buffer) / MIB,
           gpumem_buffer_pointer(buffer) == before ? "stayed" : "moved");
    check(gpumem_buffer_write(buffer, 64 * MIB, "hello", 6, NULL));
    check(gpumem_stream_synchronize(device, NULL));

    int sockets[2];
    char number[12];
    gpumem_export *exported;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
        return 1;
    snprintf(number, sizeof number, "%d", sockets[1]);
    fflush(stdout);
    if (fork() == 0) {
        execv("/proc/self/exe", (char *[]){argv[0], number, NULL});
        _exit(1);
    }
    close(sockets[1]);
    check(gpumem_export_create(buffer, &exported));
    check(gpumem_export_send(exported, sockets[0], NULL)); /* until the other side has mapped it */

    check(gpumem_export_destroy(exported));
    check(gpumem_buffer_free(buffer, NULL));
    check(gpumem_resource_destroy(resource));
    check(gpumem_device_close(device));
    return gpumem_close(library) == GPUMEM_OK ? 0 : 1;
}
