/* Profiles: what is read, and what is said about a wrong one. */
#include "softgpu/device/profile.h"
#include "temporary.h"
#include "test.h"

#define GOOD                                                                                       \
    "[device]\nname = Test\nmemory = 64M\npci = 0001:0a:03.1\n"                                    \
    "[attributes]\nCOMPUTE_CAPABILITY_MAJOR = 7\n"

static struct sg_profile profile;
static char message[512];

static bool parse(const char *text) {
    message[0] = 0;
    return sg_profile_parse(&profile, "here", text, message, sizeof message);
}

TEST(a_profile_is_read_section_by_section) {
    assert_true(parse(GOOD "WARP_SIZE = 0x10 ; a comment\n"
                           "NUMA_ID = -1\n"
                           "[links]\npeer_access = 1\nperformance_rank = 3\n"
                           "[kernels]\nptx_registers = 24\ncluster_groups = 18 16 2\n"
                           "[limits]\nSTACK_SIZE = 4K\n"));
    assert_string_equal(profile.name, "Test");
    assert_int_equal(profile.memory, 64 << 20);
    MEMBERS(profile.pci, (domain, 1), (bus, 10), (device, 3), (function, 1));
    assert_int_equal(profile.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR], 7);
    assert_int_equal(profile.attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE], 16);
    assert_int_equal(profile.attributes[CU_DEVICE_ATTRIBUTE_NUMA_ID], -1);
    assert_false(profile.has_attribute[CU_DEVICE_ATTRIBUTE_CLOCK_RATE]);
    assert_true(profile.links.peer_access);
    assert_int_equal(profile.links.performance_rank, 3);
    MEMBERS(profile.kernels, (ptx_registers, 24), (group_count, 3), (groups[2], 2));
    assert_true(profile.context.has_limit[CU_LIMIT_STACK_SIZE]);
    assert_int_equal(profile.context.limits[CU_LIMIT_STACK_SIZE], 4096);
    assert_false(profile.context.has_limit[CU_LIMIT_PRINTF_FIFO_SIZE]);
}

TEST(a_profile_may_lack_uuid_and_pool_descriptors) {
    assert_true(parse(GOOD));
    assert_false(profile.no_uuid || profile.no_pool_descriptors);
    assert_true(parse("[device]\nuuid = 0\npool_descriptors = 0\n" GOOD));
    assert_true(profile.no_uuid && profile.no_pool_descriptors);
    assert_false(parse("[device]\npool_descriptors = 2\n" GOOD));
    assert_string_equal(message, "here:2: pool_descriptors = 2: wanted 0 or 1");
    assert_false(parse("[device]\nuuid = 0\nuuid = 0\n" GOOD));
    assert_string_equal(message, "here:3: uuid is given twice");
}

TEST(a_profile_error_names_the_line_and_the_mistake) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "here: [device] name is missing"},
        {"[device]\nname = x\n", "here: [device] memory is missing"},
        {"[device]\nname = x\nmemory = 2M\n", "here: [device] pci is missing"},
        {"[device]\nname = x\nmemory = 2M\npci = 0:0:0\n",
         "here: [attributes] COMPUTE_CAPABILITY_MAJOR is missing"},
        {"name = x\n", "here:1: name comes before the first [section]"},
        {"[gpu]\nname = x\n", "here:2: there is no section [gpu]"},
        {"[g]\nname = x\n", "here:2: there is no section [g]"},
        {"[device]\ncolour = x\n", "here:2: [device] has no key colour: it has like, name, memory, "
                                   "pci, uuid, api_version, pool_descriptors"},
        {"[device]\nname = x\nname = y\n", "here:3: name is given twice"},
        {"[device]\nname =\n", "here:2: name must have 1 to 255 characters"},
        {"[device]\nmemory = 1M\n",
         "here:2: memory = 1M: wanted bytes, at least 2M, suffixes K M G T"},
        {"[device]\nmemory = 2MB\n",
         "here:2: memory = 2MB: wanted bytes, at least 2M, suffixes K M G T"},
        {"[device]\npci = 6\n", "here:2: pci = 6: wanted domain:bus:device.function"},
        {"[device]\npci = 0000:ff:00.0\n",
         "here:2: pci = 0000:ff:00.0: later devices need bus numbers after this one"},
        {"[device]\npci = 0000:00:20.0\n",
         "here:2: pci = 0000:00:20.0: wanted domain:bus:device.function"},
        {"[device]\nlike = a100\n", "here:2: like = a100: wanted h200"},
        {"[device]\nname = x\nlike = h200\n", "here:3: like must come before everything else"},
        {"[attributes]\nWARPSIZE = 32\n", "here:2: there is no CU_DEVICE_ATTRIBUTE_WARPSIZE"},
        {"[device]\nuuid = mesa\n", "here:2: uuid = mesa: UUID 1 of the list is no UUID"},
        {"[device]\napi_version = 13.3\n",
         "here:2: api_version = 13.3: wanted 13000 or more, 13030 for 13.3"},
        {"[device]\napi_version = 12090\n",
         "here:2: api_version = 12090: wanted 13000 or more, 13030 for 13.3"},
        {"[device]\napi_version = 13030\napi_version = 13030\n",
         "here:3: api_version is given twice"},
        {"[attributes]\nWARP_SIZE = many\n", "here:2: WARP_SIZE = many: wanted a 32-bit number"},
        {"[attributes]\nWARP_SIZE = 4294967296\n",
         "here:2: WARP_SIZE = 4294967296: wanted a 32-bit number"},
        {"[attributes]\nWARP_SIZE = 1\nWARP_SIZE = 1\n", "here:3: WARP_SIZE is given twice"},
        {"[limits]\nHEAP = 1\n", "here:2: there is no CU_LIMIT_HEAP"},
        {"[limits]\nSTACK_SIZE = -1\n",
         "here:2: STACK_SIZE = -1: wanted a number, suffixes K M G T"},
        {"[kernels]\nptx_registers = 256\n", "here:2: ptx_registers = 256: wanted 1 to 255"},
        {"[kernels]\nspeed = 1\n",
         "here:2: [kernels] has no key speed: it has ptx_registers, cluster_groups"},
        {"[kernels]\ncluster_groups = 16 x\n",
         "here:2: cluster_groups = 16 x: wanted at most 32 numbers from 1 to 1024"},
        {"[links]\nspeed = 1\n", "here:2: [links] has no key speed"},
        {"[links]\npeer_access = 2\n", "here:2: peer_access = 2: wanted 0 or 1"},
        {"[links]\nfabric = yes\n", "here:2: fabric = yes: wanted 0 or 1"},
        {"[links 1 0]\npeer_access = 1\n",
         "here:2: [links 1 0]: wanted two device numbers from 0 to 7, the smaller first"},
        {"[links 0 8]\npeer_access = 1\n",
         "here:2: [links 0 8]: wanted two device numbers from 0 to 7, the smaller first"},
        {"[links 0 1]\nmulticast = 1\n", "here:2: [links 0 1] has no key multicast"},
        {"[links 0 1]\npeer_access = 1\npeer_access = 1\n", "here:3: peer_access is given twice"},
        {"[device\nname = x\n", "here:1: wanted [section] or key = value"},
        {"[device] name = x\n", "here:1: wanted [section] or key = value"},
        {"; a\n\n# b\n [device] ; c\n\tname = \n", "here:5: name must have 1 to 255 characters"},
        {"[device]\nname ; = x\n", "here:2: wanted [section] or key = value"},
        {"[device]\nwhat is this\n", "here:2: wanted [section] or key = value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_false(parse(cases[i].text));
        assert_string_equal(message, cases[i].message);
    }
}

TEST(a_link_section_applies_to_its_pair_of_devices) {
    assert_true(parse(GOOD "[links 0 2]\npeer_access = 0\nperformance_rank = 7\n"
                           "[links]\npeer_access = 1\nnative_atomics = 1\nmulticast = 1\n"
                           "[links 1 2]\narray_access = 1\npartial_atomics = 1\n"));
    struct sg_links links = sg_profile_links(&profile, 2, 0);
    assert_false(links.peer_access);
    assert_int_equal(links.performance_rank, 7);
    assert_true(links.native_atomics);
    assert_false(links.array_access);
    links = sg_profile_links(&profile, 1, 2);
    assert_true(links.peer_access && links.array_access && links.partial_atomics);
    assert_int_equal(links.performance_rank, 0);
    assert_true(sg_profile_links(&profile, 0, 1).peer_access);
    assert_true(profile.multicast);
    assert_false(profile.fabric);
}

TEST(the_first_mistake_is_reported) {
    assert_false(parse("[device]\nmemory = x\npci = y\n"));
    assert_non_null(strstr(message, "here:2: memory"));
}

TEST(like_inherits_the_values_of_another_profile) {
    struct sg_profile whole;
    assert_true(sg_profile_load(&whole, "h200", message, sizeof message));
    assert_true(parse("[device]\nlike = h200\nname = Small\nmemory = 1G\n"
                      "[attributes]\nMULTIPROCESSOR_COUNT = 2\n"));
    assert_string_equal(profile.name, "Small");
    assert_int_equal(profile.memory, 1 << 30);
    assert_int_equal(profile.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT], 2);
    whole.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 2;
    assert_memory_equal(profile.attributes, whole.attributes, sizeof whole.attributes);
    assert_memory_equal(&profile.context, &whole.context, sizeof whole.context);
}

TEST(the_built_in_profile_equals_the_file) {
    FILE *file = fopen(GPUMEM_SOURCE_DIR "/profiles/h200.ini", "r");
    if (!file) {
        printf("skip: the sources that this test was built from are not here\n");
        skip();
    }
    static char text[1 << 16];
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_string_equal(sg_profile_builtin(), text);
}

TEST(the_h200_profile_has_the_recorded_values) {
    assert_true(sg_profile_load(&profile, "h200", message, sizeof message));
    assert_string_equal(profile.name, "NVIDIA H200");
    assert_int_equal(profile.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT], 132);
    assert_int_equal(profile.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR], 9);
    assert_int_equal(profile.attributes[CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID], 590680286);
}

TEST(a_profile_is_loaded_by_its_path) {
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "softgpu-profile");
    assert_true(fd >= 0);
    assert_int_equal(write(fd, GOOD, strlen(GOOD)), strlen(GOOD));
    close(fd);
    bool loaded = sg_profile_load(&profile, path, message, sizeof message);
    unlink(path);
    assert_true(loaded);
    assert_string_equal(profile.name, "Test");

    assert_false(sg_profile_load(&profile, path, message, sizeof message));
    assert_non_null(strstr(message, "No such file"));
    assert_non_null(strstr(message, path));
}

TEST(an_unknown_profile_error_names_the_searched_folders) {
    assert_false(sg_profile_load(&profile, "h2000", message, sizeof message));
    assert_non_null(strstr(message, "there is no profile h2000"));
    assert_non_null(strstr(message, "share/gpumem/profiles"));
    assert_false(sg_profile_load(&profile, "", message, sizeof message));
}

TEST(softgpu_only_lowers_the_claims_of_a_profile) {
    assert_true(sg_profile_load(&profile, "h200", message, sizeof message));
    int attributes[SG_ATTRIBUTE_LIMIT];
    memcpy(attributes, profile.attributes, sizeof attributes);
    sg_claims_apply(attributes);
    assert_int_equal(attributes[CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED], 0);
    assert_int_equal(attributes[CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES],
                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC);
    assert_int_equal(attributes[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED], 1);
    for (int i = 0; i < SG_ATTRIBUTE_LIMIT; i++) {
        assert_true(attributes[i] <= profile.attributes[i]);
        if (attributes[i] != profile.attributes[i])
            assert_non_null(sg_claim_reason(i));
    }
}

TEST(pci_addresses_are_parsed_in_each_form) {
    struct sg_pci pci;
    assert_true(sg_pci_parse("0000:00:06.0", &pci));
    assert_true(sg_pci_parse("00:06.0", &pci));
    assert_int_equal(pci.device, 6);
    assert_true(sg_pci_parse("ABCD:ef:1F", &pci));
    assert_int_equal(pci.domain, 0xabcd);
    assert_true(sg_pci_parse("ffff:ff:ff.f", &pci)); /* no device has it, but it is an address */
    static const char *const bad[] = {"",         "x",        "0000:00", "0000:00:06.",
                                      "00:06.0x", "garbage",  "2:F:-F",  "-1:00:06.0",
                                      " 0:06.0",  "0x1:06.0", "00:06.-1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(sg_pci_parse(bad[i], &pci));
}
