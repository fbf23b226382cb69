/* Which library is opened for a device, what is said of those that are not, and how long it stays.
 */
#include "kept_driver.h"
#include "lavapipe.h"
#include "stand_in.h"
#include "temporary.h"
#include "vulkan/device.h"
#include "vulkan_test.h"

#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/stat.h>

ALL_TESTS(find_icd, NULL);
EACH_TEST(start_with_icd, end_with_icd);

static const unsigned char nobody[16] = {1, 2, 3};
static struct gm_vulkan *vulkan;
static char reason[GM_VULKAN_REASON];

#define REASON(text)                                                                               \
    do {                                                                                           \
        if (!strstr(reason, text))                                                                 \
            fail_msg("'%s' is not in: %s", text, reason);                                          \
    } while (0)

static gpumem_status open_it(void) {
    vulkan = NULL;
    reason[0] = 0;
    return gm_vulkan_open(softgpu_uuid, &vulkan, reason, sizeof reason);
}

static void refused(gpumem_status wanted) {
    gpumem_status got = open_it();
    if (got != wanted)
        fail_msg("answered %s: %s", gpumem_status_name(got), gpumem_last_error()->message);
    assert_null(vulkan);
    assert_nothing_left();
}

TEST(opening_a_device_again_returns_the_same_device) {
    struct gm_vulkan *first, *second;
    OK(gm_vulkan_open(softgpu_uuid, &first, NULL, 0));
    OK(gm_vulkan_open(softgpu_uuid, &second, NULL, 0));
    assert_ptr_equal(first, second);
    assert_int_equal(icd->live().devices, 1);
    const struct gm_vulkan_facts *facts = gm_vulkan_get_facts(first);
    assert_string_equal(facts->library, GPUMEM_BINARY_DIR VULKAN_ICD_FILE);
    assert_string_equal(facts->name, "test driver, device 0");
    assert_string_equal(facts->refusals, "");
    assert_true(facts->placed && facts->coherent && facts->has_budget);
    assert_int_equal(facts->place_multiple, VULKAN_ICD_PLACE_MULTIPLE);
    assert_int_equal(facts->heap_bytes, GIB);
    assert_int_equal(facts->most_memories, 4096);
    gm_vulkan_close(first);
    assert_int_equal(icd->live().devices, 1);
    gm_vulkan_close(second);
    gm_vulkan_close(NULL);
}

TEST(the_device_is_found_by_its_uuid) {
    setenv("VULKAN_ICD_UUID",
           "00000000-0000-0000-0000-000000000001,736f6674-6770-8075-8000-000000000000", 1);
    OK(open_it());
    assert_string_equal(gm_vulkan_get_facts(vulkan)->name, "test driver, device 1");
    gm_vulkan_close(vulkan);
}

TEST(an_unknown_uuid_is_refused) {
    FAILS(NOT_SUPPORTED, gm_vulkan_open(nobody, &vulkan, reason, sizeof reason));
    REASON("libvulkan_icd.so: it has no device with this UUID (only test driver, device 0, UUID "
           "736f6674-6770-8075-8000-000000000000)");
    SAYS("no device with this UUID");
    setenv("VULKAN_ICD_UUID", "", 1);
    refused(GPUMEM_ERROR_NOT_SUPPORTED);
    REASON("it has no device with this UUID, nor any other");
}

TEST(a_missing_function_or_extension_is_named) {
    static const struct {
        const char *without, *says;
    } rows[] = {
#define VK_FN(stage, name) {#name, #name},
#include "vulkan/functions.def"
        {"VK_KHR_external_memory_fd", "lacks the extension VK_KHR_external_memory_fd"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        setenv("VULKAN_ICD_WITHOUT", rows[i].without, 1);
        /* Without an instance the test driver has no settings yet; and what cannot be destroyed
         * stays. Both would be another driver's faults. */
        if (strcmp(rows[i].without, "vkCreateInstance") == 0 ||
            strncmp(rows[i].without, "vkDestroy", strlen("vkDestroy")) == 0)
            continue;
        if (strstr(rows[i].without, "Memory2KHR")) {
            OK(open_it());
            assert_false(gm_vulkan_get_facts(vulkan)->placed);
            gm_vulkan_close(vulkan);
            continue;
        }
        refused(GPUMEM_ERROR_NOT_SUPPORTED);
        REASON(rows[i].says);
    }
}

TEST(optional_extensions_may_be_missing) {
    uint64_t budget, usage;
    setenv("VULKAN_ICD_PLACED", "no", 1);
    setenv("VULKAN_ICD_WITHOUT", "VK_EXT_memory_budget", 1);
    OK(open_it());
    assert_false(gm_vulkan_get_facts(vulkan)->placed);
    assert_false(gm_vulkan_get_facts(vulkan)->has_budget);
    FAILS(NOT_SUPPORTED, gm_vulkan_get_budget(vulkan, &budget, &usage));
    SAYS("VK_EXT_memory_budget");
    gm_vulkan_close(vulkan);

    /* A placed map that leaves a hole when it ends is of no use. */
    setenv("VULKAN_ICD_PLACED", "unreserved", 1);
    OK(open_it());
    assert_false(gm_vulkan_get_facts(vulkan)->placed);
    struct gm_vulkan_memory *memory;
    void *host;
    OK(gm_vulkan_allocate(vulkan, MIB, 0, &memory));
    FAILS(NOT_SUPPORTED, gm_vulkan_map(memory, (void *)(uintptr_t)GIB, &host));
    SAYS("VK_EXT_map_memory_placed");
    OK(gm_vulkan_free(memory));
    gm_vulkan_close(vulkan);
}

/* Without a choice each library has its turn, and its refusal. */
TEST(the_refusals_of_all_libraries_are_reported) {
    choose_vulkan(NULL);
    for (machine_module = MODULE_ABSENT; machine_module <= MODULE_LOADED; machine_module++) {
        refused(GPUMEM_ERROR_NOT_SUPPORTED);
        REASON("libvulkan.so.1: ");
        REASON("; libEGL_nvidia.so.0: cannot open shared object file");
        REASON("; libGLX_nvidia.so.0: cannot open shared object file");
        SAYS(reason);
        assert_int_equal(strstr(reason, "graphics") != NULL, machine_module == MODULE_LOADED);
    }
    machine_module = MODULE_ABSENT;
}

/* Functions that a loader of Debian 12 does not know go through it as well. */
TEST(the_vulkan_loader_opens_the_test_driver) {
    char folder[TEMPORARY_ROOM], path[TEMPORARY_ROOM + 16];
    unsigned char uuid[16];
    if (!find_lavapipe(uuid))
        skip();
    assert_non_null(temporary_folder(folder, "icd"));
    snprintf(path, sizeof path, "%s/icd.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "{\"file_format_version\": \"1.0.0\", \"ICD\": {\"library_path\": \"%s\", "
            "\"api_version\": \"1.1.0\"}}\n",
            GPUMEM_BINARY_DIR VULKAN_ICD_FILE);
    fclose(file);
    setenv("VK_ICD_FILENAMES", path, 1);
    choose_vulkan(NULL);
    OK(open_it());
    assert_non_null(strstr(gm_vulkan_get_facts(vulkan)->library, "libvulkan.so.1"));
    assert_string_equal(gm_vulkan_get_facts(vulkan)->name, "test driver, device 0");
    assert_true(gm_vulkan_get_facts(vulkan)->placed);
    struct gm_vulkan_memory *memory;
    void *host;
    OK(gm_vulkan_allocate(vulkan, MIB, 0, &memory));
    OK(gm_vulkan_map(memory, NULL, &host));
    memset(host, 1, MIB);
    OK(gm_vulkan_free(memory));
    gm_vulkan_close(vulkan);
    unsetenv("VK_ICD_FILENAMES");
    unlink(path);
    rmdir(folder);
}

/* ---- What the environment may name ----------------------------------------------------------- */

TEST(invalid_library_names_are_refused) {
    static const struct {
        const char *name, *says;
        gpumem_status status;
    } rows[] = {
        {"nvidia", "GPUMEM_VULKAN is 'nvidia'", GPUMEM_ERROR_INVALID_ARGUMENT},
        {"\x1b[2Jx", "\\x1b[2Jx", GPUMEM_ERROR_INVALID_ARGUMENT},
        {"off", "GPUMEM_VULKAN=off", GPUMEM_ERROR_NOT_SUPPORTED},
        {"/nowhere/lib.so", "No such file", GPUMEM_ERROR_NOT_SUPPORTED},
        {"/proc", "not a regular file", GPUMEM_ERROR_NOT_SUPPORTED},
        {"/dev/zero", "not a regular file", GPUMEM_ERROR_NOT_SUPPORTED},
        {"/proc/self/maps", "/proc/self/maps: ", GPUMEM_ERROR_NOT_SUPPORTED},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        choose_vulkan(rows[i].name);
        refused(rows[i].status);
        REASON(rows[i].says);
    }
    choose_vulkan("/nowhere/\x1b[31mred");
    refused(GPUMEM_ERROR_NOT_SUPPORTED);
    REASON("/nowhere/\\x1b[31mred: ");
}

TEST(a_library_without_vulkan_is_refused) {
    struct link_map *map = NULL;
    assert_int_equal(dlinfo(dlopen("libc.so.6", RTLD_NOW), RTLD_DI_LINKMAP, &map), 0);
    choose_vulkan(map->l_name);
    refused(GPUMEM_ERROR_NOT_SUPPORTED);
    REASON("not a Vulkan loader or driver");
}

TEST(an_overlong_library_name_is_refused) {
    char name[20000];
    memset(name, '/', sizeof name);
    name[sizeof name - 1] = 0;
    choose_vulkan(name);
    refused(GPUMEM_ERROR_NOT_SUPPORTED);
    memset(name, 'x', sizeof name - 1);
    choose_vulkan(name);
    refused(GPUMEM_ERROR_INVALID_ARGUMENT);
}

/* Opening it would wait for a writer for ever. */
TEST(a_fifo_as_library_is_refused_without_blocking) {
    char folder[TEMPORARY_ROOM], path[TEMPORARY_ROOM + 16];
    assert_non_null(temporary_folder(folder, "fifo"));
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    choose_vulkan(path);
    refused(GPUMEM_ERROR_NOT_SUPPORTED);
    REASON("not a regular file");
    unlink(path);
    rmdir(folder);
}

TEST(an_empty_library_name_means_the_default) {
    choose_vulkan("");
    refused(GPUMEM_ERROR_NOT_SUPPORTED);
    REASON("libvulkan.so.1: ");
}

TEST(a_reason_is_truncated_to_its_buffer) {
    char small[8] = "ABCDEFG";
    FAILS(NOT_SUPPORTED, gm_vulkan_open(nobody, &vulkan, small, 4));
    assert_int_equal(strlen(small), 3);
    assert_string_equal(small + 4, "EFG");
    FAILS(NOT_SUPPORTED, gm_vulkan_open(nobody, &vulkan, small, 0));
    FAILS(NOT_SUPPORTED, gm_vulkan_open(nobody, &vulkan, NULL, 0));
}

TEST(opening_keeps_the_threads_signal_mask) {
    sigset_t wanted, got;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &wanted, NULL);
    OK(open_it());
    pthread_sigmask(SIG_SETMASK, NULL, &got);
    assert_true(sigismember(&got, SIGUSR1));
    assert_false(sigismember(&got, SIGUSR2));
    sigemptyset(&wanted);
    pthread_sigmask(SIG_SETMASK, &wanted, NULL);
    gm_vulkan_close(vulkan);
}

BEFORE_TESTS {
    machine_module = MODULE_ABSENT;
    keep_lavapipe_loaded();
    return 0;
}
