/* Physical memory by fabric handle between processes, with a profile that has a fabric; what there
 * is without one is in test_physical_places. */
#include "library_test.h"
#include "temporary.h"

#include <errno.h>
#include <sys/wait.h>

#define PAGE   (2 * MIB)
#define FABRIC GPUMEM_PHYSICAL_OPTIONS(.handle_type = GPUMEM_HANDLE_FABRIC)

static gpumem_reservation *range;
static gpumem_mapping *mapping;

static void map(gpumem_physical *memory) {
    OK(gpumem_reservation_create(device, PAGE, NULL, &range));
    OK(gpumem_mapping_create(range, 0, memory, &mapping));
    OK(mapping_set_access(mapping, 0, GPUMEM_ACCESS_READ_WRITE));
}

static void unmap(void) {
    DESTROY(mapping, range);
}

static void fill(unsigned char value) {
    OK(fill_bytes(device, mapping_info(mapping).address, PAGE, value, NULL));
    synchronize(NULL);
}

static unsigned char last_byte(void) {
    unsigned char byte = 0;
    OK(copy_bytes(device, (CUdeviceptr)(uintptr_t)&byte, mapping_info(mapping).address + PAGE - 1,
                  1, NULL));
    synchronize(NULL);
    return byte;
}

/* ---- The other process ----------------------------------------------------------------------- */

static struct fabric_handle received;

static void another_process_maps_what_a_fabric_handle_names(void **state) {
    gpumem_physical *memory;
    OK(physical_import_fabric(device, &received, PAGE, &memory));
    map(memory);
    assert_int_equal(last_byte(), 0x51);
    fill(0x52);
    struct fabric_handle handle = received;
    FAILS_SAYING(NOT_SUPPORTED, "imported", physical_export_fabric(memory, &handle));
    assert_memory_equal(&handle, &received, sizeof handle);
    unmap();
    OK(gpumem_physical_destroy(memory));
}

CHILD(other) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        another_process_maps_what_a_fabric_handle_names, open_device, close_device)};
    if (read(STDIN_FILENO, &received, sizeof received) != (ssize_t)sizeof received)
        return 9;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Runs this program again with the handle as its input; its exit status. */
static int run_other(const struct fabric_handle *handle) {
    int ends[2], status = -1;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[0], STDIN_FILENO);
        execl("/proc/self/exe", "run", test_file(), "--child", "other", (char *)NULL);
        _exit(9);
    }
    close(ends[0]);
    assert_int_equal(write(ends[1], handle, sizeof *handle), sizeof *handle);
    close(ends[1]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- This one -------------------------------------------------------------------------------- */

TEST(physical_memory_is_shared_by_fabric_handle) {
    gpumem_physical *memory = MADE(gpumem_physical *, gpumem_physical_create, device, PAGE, FABRIC);
    gpumem_physical_properties properties = {.size = sizeof properties};
    OK(gpumem_physical_get_properties(memory, &properties));
    MEMBERS(properties, (exports_fabric, 1), (exports_fd, 0));
    map(memory);
    fill(0x51);
    struct fabric_handle handle = MADE(struct fabric_handle, physical_export_fabric, memory);
    assert_int_equal(run_other(&handle), 0);
    assert_int_equal(last_byte(), 0x52);
    unmap();
    OK(gpumem_physical_destroy(memory));
    /* A name does not keep anything alive. */
    FAILS(DRIVER, physical_import_fabric(device, &handle, PAGE, &memory));
    SAYS("fabric handle");
    assert_int_equal(device_stats().chunks, 0);
}

TEST(exporting_the_wrong_handle_type_is_refused) {
    struct fabric_handle handle;
    int fd = -1;
    gpumem_physical *fabric = MADE(gpumem_physical *, gpumem_physical_create, device, PAGE, FABRIC);
    gpumem_physical *plain = MADE(gpumem_physical *, gpumem_physical_create, device, PAGE, NULL);
    FAILS_SAYING(NOT_SUPPORTED, "GPUMEM_HANDLE_POSIX_FD", physical_export_fd(fabric, &fd));
    FAILS(NOT_SUPPORTED, physical_export_fabric(plain, &handle));
    SAYS("GPUMEM_HANDLE_FABRIC");
    assert_int_equal(fd, -1);
    FAILS(INVALID_ARGUMENT, physical_export_fabric(fabric, NULL));
    FAILS(INVALID_ARGUMENT, physical_import_fabric(device, NULL, PAGE, &plain));
    FAILS(INVALID_ARGUMENT, physical_import_fabric(device, &handle, 0, &plain));
    SAYS("bytes is 0");
    FAILS(INVALID_ARGUMENT, physical_import_fabric(device, &handle, 1, &plain));
    SAYS("not a multiple of the granularity");
    DESTROY(plain, fabric);
}

/* What softgpu reads when it is opened first. */
static char profile_path[TEMPORARY_ROOM];

static int choose_profile(void **state) {
    static const char profile[] = "[device]\nlike = h200\nmemory = 64M\n[links]\nfabric = 1\n";
    int fd = temporary_file(profile_path, "gpumem-profile");
    if (fd < 0 || write(fd, profile, sizeof profile - 1) != (ssize_t)sizeof profile - 1)
        return -1;
    close(fd);
    return setenv("SOFTGPU_PROFILE", profile_path, 1);
}

static int remove_profile(void **state) {
    return unlink(profile_path);
}

EACH_TEST(open_device, close_device);
ALL_TESTS(choose_profile, remove_profile);
