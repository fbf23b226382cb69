/* Machines without a Vulkan loader: NVIDIA's driver is opened by itself, under either of its names;
 * and machines without any. This program's dlopen stands for what is installed. */
#include "stand_in.h"
#include "vulkan/device.h"
#include "vulkan_test.h"

#include <link.h>

EACH_TEST(start_with_icd, NULL);

static void install(const char *name) {
    machine_library = name;
    choose_vulkan(NULL);
}

TEST(without_vulkan_the_refusal_names_every_library) {
    struct gm_vulkan *vulkan = NULL;
    char reason[GM_VULKAN_REASON] = "";
    install(NULL);
    FAILS(NOT_SUPPORTED, gm_vulkan_open(softgpu_uuid, &vulkan, reason, sizeof reason));
    assert_null(vulkan);
    for (size_t i = 0; i < MACHINE_LIBRARIES; i++)
        if (!strstr(reason, machine_libraries[i]))
            fail_msg("%s is not in: %s", machine_libraries[i], reason);
    SAYS("No such file or directory");
}

TEST(nvidias_driver_is_opened_without_a_loader) {
    for (size_t i = 1; i < MACHINE_LIBRARIES; i++) {
        struct gm_vulkan *vulkan = NULL;
        install(machine_libraries[i]);
        OK(gm_vulkan_open(softgpu_uuid, &vulkan, NULL, 0));
        const struct gm_vulkan_facts *facts = gm_vulkan_get_facts(vulkan);
        assert_non_null(strstr(facts->library, "libvulkan_icd.so"));
        assert_true(facts->placed);
        for (size_t before = 0; before < MACHINE_LIBRARIES; before++)
            assert_int_equal(strstr(facts->refusals, machine_libraries[before]) != NULL,
                             before < i);
        gm_vulkan_close(vulkan);
        assert_nothing_left();
    }
}

/* NVIDIA's runtime for containers leaves Vulkan out unless it is told. */
TEST(a_container_without_the_graphics_capability_is_explained) {
    struct gm_vulkan *vulkan = NULL;
    install(NULL);
    for (int i = 0; i < 2; i++) {
        char reason[GM_VULKAN_REASON] = "";
        machine_module = i == 1 ? MODULE_LOADED : MODULE_ABSENT;
        FAILS(NOT_SUPPORTED, gm_vulkan_open(softgpu_uuid, &vulkan, reason, sizeof reason));
        assert_int_equal(strstr(reason, "a container needs the capability graphics") != NULL,
                         machine_module == MODULE_LOADED);
    }
    machine_module = MODULE_ABSENT;
}

static gpumem_mapped_method chosen(const char **why) {
    static gpumem_mapped_info info;
    info = (gpumem_mapped_info){.size = sizeof info};
    gpumem_resource *mapped = NEW_MAPPED();
    OK(gpumem_mapped_get_info(mapped, &info));
    OK(gpumem_resource_destroy(mapped));
    *why = info.refusals;
    return info.method;
}

TEST(mapped_memory_falls_back_to_descriptors_and_says_why) {
    const char *why;
    install(NULL);
    assert_int_equal(chosen(&why), GPUMEM_MAPPED_DESCRIPTOR);
    for (size_t i = 0; i < MACHINE_LIBRARIES; i++)
        assert_non_null(strstr(why, machine_libraries[i]));
    gpumem_vulkan_info info = {.size = sizeof info};
    OK(gpumem_device_get_vulkan_info(library, 0, &info));
    assert_false(info.available);
    assert_non_null(strstr(info.reason, "libEGL_nvidia.so.0"));
    install(machine_libraries[1]);
    assert_int_equal(chosen(&why), GPUMEM_MAPPED_VULKAN_IMPORT);
    OK(gpumem_device_get_vulkan_info(library, 0, &info));
    assert_true(info.available);
}

static int begin(void **state) {
    return open_device(state) != 0 ? -1 : find_icd(state);
}

ALL_TESTS(begin, close_device);

BEFORE_TESTS {
    machine_libraries_stand_in = true;
    machine_module = MODULE_ABSENT;
    return 0;
}
