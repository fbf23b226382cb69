/* Whole or nothing, for virtual memory by hand: ranges, memory by address and by handles that cross
 * processes, memory of the host. The device of this program has a fabric. */
#include "library_sweeps.h"
#include "temporary.h"

#define PAGE   (2 * MIB)
#define MAPPED 3

static gpumem_reservation *range;
static gpumem_physical *memory[MAPPED], *other;
static gpumem_mapping *mapping[MAPPED];
static struct fabric_handle fabric;
static int fd = -1;

static void sweep(const char *name, int (*act)(void *), void (*undo)(void *), bool may_succeed) {
    SWEEP(.name = name, .act = act, .recover = pop_contexts, .undo = undo,
          .may_succeed = may_succeed);
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

/* Three mappings and a hole before the last, with different rights. */
static void map_all(void *user) {
    static const size_t at[MAPPED] = {0, 1, 4};
    static const gpumem_access access[MAPPED] = {GPUMEM_ACCESS_READ, GPUMEM_ACCESS_NONE,
                                                 GPUMEM_ACCESS_READ_WRITE};
    for (size_t i = 0; i < MAPPED; i++) {
        OK(gpumem_mapping_destroy(mapping[i]));
        OK(gpumem_mapping_create(range, at[i] * PAGE, memory[i], &mapping[i]));
        OK(mapping_set_access(mapping[i], 0, access[i]));
    }
}

static int unmap_range(void *user) {
    return (int)gpumem_reservation_unmap(range, 0, 8 * PAGE);
}

static int set_access(void *user) {
    return (int)gpumem_reservation_set_access(range, 0, 2 * PAGE, 0, GPUMEM_ACCESS_READ_WRITE);
}

static void set_access_back(void *user) {
    OK(mapping_set_access(mapping[0], 0, GPUMEM_ACCESS_READ));
    OK(mapping_set_access(mapping[1], 0, GPUMEM_ACCESS_NONE));
}

/* An unmap that was refused is tried again. */
TEST(changing_a_mapped_range_is_all_or_nothing) {
    map_all(NULL);
    sweep("unmap a range", unmap_range, map_all, true);
    sweep("give access to a range", set_access, set_access_back, false);
}

/* ---- Memory that exists ---------------------------------------------------------------------- */

static void end_other(void *user) {
    pop_contexts(user);
    OK(gpumem_physical_destroy(other));
    other = NULL;
}

static int find(void *user) {
    return (int)gpumem_physical_from_address(device, mapping_info(mapping[2]).address, 0, &other);
}

static int find_of_size(void *user) {
    return (int)gpumem_physical_from_address(device, mapping_info(mapping[1]).address, PAGE,
                                             &other);
}

static int find_and_destroy(void *user) {
    int result = find(user);
    if (result == 0)
        (void)gpumem_physical_destroy(other);
    return result;
}

static int ask(void *user) {
    gpumem_physical_properties properties = {.size = sizeof properties};
    return (int)gpumem_physical_get_properties(memory[0], &properties);
}

static void nothing(void *user) {
}

/* Leaving the context has a second way, and a release that is refused is counted. */
TEST(finding_memory_by_address_is_all_or_nothing) {
    sweep("find memory", find, end_other, true);
    sweep("find memory of a known size", find_of_size, end_other, true); /* believed then */
    sweep("find memory and let go of it", find_and_destroy, pop_contexts, true);
    sweep("ask for properties", ask, nothing, false);
}

/* ---- Between processes ----------------------------------------------------------------------- */

static int export_fd(void *user) {
    return (int)physical_export_fd(memory[0], &fd);
}

static void close_fd(void *user) {
    close(fd);
    fd = -1;
}

static int import_fd(void *user) {
    return (int)physical_import_fd(device, fd, PAGE, &other);
}

static int export_fabric(void *user) {
    return (int)physical_export_fabric(other, &fabric);
}

static gpumem_physical *received;

static int import_fabric(void *user) {
    return (int)physical_import_fabric(device, &fabric, PAGE, &received);
}

static void end_received(void *user) {
    OK(gpumem_physical_destroy(received));
}

TEST(exporting_and_importing_handles_is_all_or_nothing) {
    sweep("export a descriptor", export_fd, close_fd, false);
    assert_int_equal(export_fd(NULL), 0);
    sweep("import a descriptor", import_fd, end_other, false);
    close_fd(NULL);
    OK(gpumem_physical_create(
        device, PAGE, GPUMEM_PHYSICAL_OPTIONS(.handle_type = GPUMEM_HANDLE_FABRIC), &other));
    sweep("export a fabric handle", export_fabric, nothing, false);
    assert_int_equal(export_fabric(NULL), 0);
    sweep("import a fabric handle", import_fabric, end_received, false);
    end_other(NULL);
}

/* ---- Memory of the host ---------------------------------------------------------------------- */

static gpumem_location place;

static int create_on_host(void *user) {
    gpumem_physical_options options = {
        .size = sizeof options, .location = place, .handle_type = GPUMEM_HANDLE_NONE};
    return (int)gpumem_physical_create(device, PAGE, &options, &other);
}

static int give_cpu_access(void *user) {
    return (int)mapping_set_access(mapping[0], -1, GPUMEM_ACCESS_READ_WRITE);
}

static void take_cpu_access(void *user) {
    OK(mapping_set_access(mapping[0], -1, GPUMEM_ACCESS_NONE));
}

TEST(creating_virtual_host_memory_is_all_or_nothing) {
    for (place = GPUMEM_LOCATION_HOST; place <= GPUMEM_LOCATION_HOST_NUMA_CURRENT; place++)
        sweep(gpumem_location_name(place), create_on_host, end_other, false);
    gpumem_mapping *first = mapping[0];
    place = GPUMEM_LOCATION_HOST_NUMA;
    assert_int_equal(create_on_host(NULL), 0);
    OK(gpumem_mapping_create(range, 6 * PAGE, other, &mapping[0]));
    sweep("give access to the CPU", give_cpu_access, take_cpu_access, false);
    OK(gpumem_mapping_destroy(mapping[0]));
    mapping[0] = first;
    end_other(NULL);
}

/* ---- The program ----------------------------------------------------------------------------- */

static int begin(void **state) {
    static const char profile[] = "[device]\nlike = h200\nmemory = 64M\n[links]\nfabric = 1\n";
    char path[TEMPORARY_ROOM];
    int file = temporary_file(path, "gpumem-profile");
    if (file < 0 || write(file, profile, sizeof profile - 1) != (ssize_t)sizeof profile - 1)
        return -1;
    close(file);
    setenv("SOFTGPU_PROFILE", path, 1);
    int result = begin_sweeps(state);
    unlink(path);
    if (result != 0)
        return -1;
    OK(gpumem_reservation_create(device, 8 * PAGE, NULL, &range));
    for (size_t i = 0; i < MAPPED; i++)
        OK(gpumem_physical_create(device, PAGE, NULL, &memory[i]));
    return 0;
}

AFTER(close_device) {
    for (size_t i = 0; i < MAPPED; i++)
        DESTROY(mapping[i], memory[i]);
    OK(gpumem_reservation_destroy(range));
}

ALL_TESTS(begin, after);
