/* Machines without a Vulkan loader: NVIDIA's driver is opened by itself, under either of its names;
 * and machines without any. This program's dlopen stands for what is installed. */
#include "vulkan/device.h"
#include "vulkan_test.h"

#include <link.h>
#include <stdbool.h>

static const char *const usual[] = {"libvulkan.so.1", "libEGL_nvidia.so.0", "libGLX_nvidia.so.0"};

/* The one of them that is the test driver; NULL: none is there. */
static const char *installed;

static bool is_usual(const char *name) {
    for (size_t i = 0; name && i < COUNT(usual); i++)
        if (strcmp(name, usual[i]) == 0)
            return true;
    return false;
}

/* Instead of libc's, for all that is linked into this program. */
void *dlopen(const char *name, int flags) {
    static void *(*real)(const char *, int);
    if (!real) {
        void *symbol = dlsym(RTLD_NEXT, "dlopen");
        memcpy(&real, &symbol, sizeof real);
    }
    if (!is_usual(name))
        return real(name, flags);
    if (installed && strcmp(name, installed) == 0)
        return real(GPUMEM_BINARY_DIR VULKAN_ICD_FILE, flags);
    char missing[64];
    snprintf(missing, sizeof missing, "/nowhere/%s", name); /* dlerror has something to say */
    return real(missing, flags);
}

/* NVIDIA's kernel module is loaded. */
static bool module;

int access(const char *path, int mode) {
    static int (*real)(const char *, int);
    if (!real) {
        void *symbol = dlsym(RTLD_NEXT, "access");
        memcpy(&real, &symbol, sizeof real);
    }
    return strcmp(path, "/proc/driver/nvidia/version") == 0 ? (module ? 0 : -1) : real(path, mode);
}

static void install(const char *name) {
    installed = name;
    choose_vulkan(NULL);
}

static void nothing_is_installed(void **state) {
    (void)state;
    struct gm_vulkan *vulkan = NULL;
    char reason[GM_VULKAN_REASON] = "";
    install(NULL);
    FAILS(NOT_SUPPORTED, gm_vulkan_open(softgpu_uuid, &vulkan, reason, sizeof reason));
    assert_null(vulkan);
    for (size_t i = 0; i < COUNT(usual); i++)
        if (!strstr(reason, usual[i]))
            fail_msg("%s is not in: %s", usual[i], reason);
    SAYS("No such file or directory");
}

static void nvidias_driver_is_opened_without_one(void **state) {
    (void)state;
    for (size_t i = 1; i < COUNT(usual); i++) {
        struct gm_vulkan *vulkan = NULL;
        install(usual[i]);
        OK(gm_vulkan_open(softgpu_uuid, &vulkan, NULL, 0));
        const struct gm_vulkan_facts *facts = gm_vulkan_get_facts(vulkan);
        assert_non_null(strstr(facts->library, "libvulkan_icd.so"));
        assert_true(facts->placed);
        for (size_t before = 0; before < COUNT(usual); before++)
            assert_int_equal(strstr(facts->refusals, usual[before]) != NULL, before < i);
        gm_vulkan_close(vulkan);
        assert_nothing_left();
    }
}

/* NVIDIA's runtime for containers leaves Vulkan out unless it is told. */
static void a_container_without_graphics_is_told_so(void **state) {
    (void)state;
    struct gm_vulkan *vulkan = NULL;
    install(NULL);
    for (int i = 0; i < 2; i++) {
        char reason[GM_VULKAN_REASON] = "";
        module = i == 1;
        FAILS(NOT_SUPPORTED, gm_vulkan_open(softgpu_uuid, &vulkan, reason, sizeof reason));
        assert_int_equal(strstr(reason, "a container needs the capability graphics") != NULL,
                         module);
    }
    module = false;
}

static gpumem_mapped_method chosen(const char **why) {
    static gpumem_mapped_info info;
    gpumem_resource *mapped;
    info = (gpumem_mapped_info){.size = sizeof info};
    OK(gpumem_mapped_resource_create(device, NULL, &mapped));
    OK(gpumem_mapped_get_info(mapped, &info));
    OK(gpumem_resource_destroy(mapped));
    *why = info.refusals;
    return info.method;
}

static void mapped_memory_goes_round_and_says_so(void **state) {
    (void)state;
    const char *why;
    install(NULL);
    assert_int_equal(chosen(&why), GPUMEM_MAPPED_DESCRIPTOR);
    for (size_t i = 0; i < COUNT(usual); i++)
        assert_non_null(strstr(why, usual[i]));
    gpumem_vulkan_info info = {.size = sizeof info};
    OK(gpumem_device_query_vulkan(library, 0, &info));
    assert_false(info.available);
    assert_non_null(strstr(info.reason, "libEGL_nvidia.so.0"));
    install(usual[1]);
    assert_int_equal(chosen(&why), GPUMEM_MAPPED_VULKAN_IMPORT);
    OK(gpumem_device_query_vulkan(library, 0, &info));
    assert_true(info.available);
}

static int begin(void **state) {
    return open_device(state) != 0 ? -1 : find_icd(state);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, start_with_icd)
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_installed),
        TEST(nvidias_driver_is_opened_without_one),
        TEST(a_container_without_graphics_is_told_so),
        TEST(mapped_memory_goes_round_and_says_so),
    };
    return cmocka_run_group_tests(tests, begin, close_device);
}
