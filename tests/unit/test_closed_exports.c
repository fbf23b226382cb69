/* Exports keep descriptors. A program that closes all and opens files of its own keeps its files.
 */
#include "library_test.h"

#include <errno.h>
#include <gpumem/share.h>
#include <gpumem/virtual.h>
#include <sys/socket.h>
#include <sys/stat.h>

static gpumem_resource *memory;
static gpumem_buffer *buffer;
static gpumem_export *exported;

static int begin(void **state) {
    return open_device(state) != 0 ||
           gpumem_virtual_resource_create(device, NULL, &memory) != GPUMEM_OK;
}

static int end(void **state) {
    return gpumem_resource_destroy(memory) != GPUMEM_OK || close_device(state) != 0;
}

ALL_TESTS(begin, end);

/* The export's descriptor becomes that of a file of the program's. */
static int take_over(void) {
    int fd = -1;
    FILE *own = tmpfile();
    assert_non_null(own);
    buffer = NEW_BUFFER(memory, 2 * MIB);
    exported = NEW_EXPORT(buffer);
    OK(export_descriptor(exported, 0, &fd));
    assert_int_equal(dup2(fileno(own), fd), fd);
    fclose(own);
    return fd;
}

static void give_back(int own) {
    struct stat status;
    DESTROY(exported, buffer);
    assert_int_equal(fstat(own, &status), 0);
    close(own);
}

TEST_IS(destroying_an_export_does_not_close_a_reused_descriptor, give_back(take_over()));

TEST(sending_an_export_does_not_send_a_reused_descriptor) {
    int ends[2], own = take_over();
    char byte;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    FAILS(SYSTEM, gpumem_export_send(exported, ends[0], NULL));
    assert_int_equal(gpumem_last_error()->system_code, EBADF);
    SAYS("closed");
    /* The other side has not heard of it. */
    assert_int_equal(recv(ends[1], &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    close(ends[0]);
    close(ends[1]);
    give_back(own);
}

TEST(an_export_does_not_return_a_reused_descriptor) {
    int own = take_over();
    gpumem_export_info info = {.size = sizeof info};
    FAILS(SYSTEM, gpumem_export_get_info(exported, &info));
    assert_null(info.descriptors);
    give_back(own);
}
