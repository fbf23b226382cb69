/* UUIDs that are set for devices: how they are written, and what is said about wrong ones. */
#include "softgpu/core/config.h"
#include "softgpu/core/uuid.h"

#include "test.h"

#define MESA "6d657361-3232-2e33-2e36-000000000000"
#define NEXT "6d657361-3232-2e33-2e36-000000000001"

static struct sg_uuids uuids;
static char why[256];

static bool parse(const char *text) {
    why[0] = 0;
    return sg_uuids_parse(text, &uuids, why, sizeof why);
}

TEST(every_spelling_of_a_uuid_is_accepted) {
    static const char *const texts[] = {MESA,
                                        "GPU-" MESA,
                                        "gpu-6D657361-3232-2E33-2E36-000000000000",
                                        "6d65736132322e332e36000000000000",
                                        "GPU-6d65736132322E332e36000000000000",
                                        " \t" MESA " "};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        memset(&uuids, 0xff, sizeof uuids);
        if (!parse(texts[i]))
            fail_msg("'%s': %s", texts[i], why);
        assert_int_equal(uuids.count, 1);
        assert_memory_equal(uuids.of[0].bytes, "mesa22.3.6\0\0\0\0\0", 16);
    }
}

TEST(a_list_has_at_most_eight_uuids) {
    char list[9 * 48] = "";
    for (int i = 1; i <= 9; i++) {
        char one[48];
        snprintf(one, sizeof one, "%s000000000000000000000000000000%02d", i > 1 ? ", " : "", i);
        strcat(list, one);
        assert_int_equal(parse(list), i <= 8);
        if (i <= 8)
            assert_int_equal(uuids.count, i);
    }
    assert_string_equal(why, "UUID 9 of the list is one more than there can be devices");
    assert_int_equal(uuids.of[7].bytes[15], 8);
}

TEST(a_malformed_uuid_is_named_by_its_place_in_the_list) {
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "UUID 1 of the list is empty"},
        {",", "UUID 1 of the list is empty"},
        {MESA ",", "UUID 2 of the list is empty"},
        {MESA ",," NEXT, "UUID 2 of the list is empty"},
        {MESA "," MESA, "UUID 2 of the list was given before"},
        {MESA ",6d65736132322e332e36000000000000", "UUID 2 of the list was given before"},
        {"00000000-0000-0000-0000-000000000000", "UUID 1 of the list is all zeros"},
        {"mesa22.3.6", "UUID 1 of the list is no UUID"},
        {MESA "0", "UUID 1 of the list is no UUID"},
        {"6d657361-3232-2e33-2e36-00000000000", "UUID 1 of the list is no UUID"},
        {"6d6573613-232-2e33-2e36-000000000000", "UUID 1 of the list is no UUID"},
        {"6d65736132322e332e3600000000000g", "UUID 1 of the list is no UUID"},
        {"GPU-GPU-" MESA, "UUID 1 of the list is no UUID"},
        {"MIG-" MESA, "UUID 1 of the list is no UUID"},
        {NEXT ", " MESA " 1", "UUID 2 of the list is no UUID"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (parse(cases[i].text))
            fail_msg("'%s' was taken", cases[i].text);
        assert_string_equal(why, cases[i].why);
    }
}

TEST(devices_without_a_set_uuid_get_a_generated_one) {
    CUuuid all[3], made_up = sg_uuid_made_up(2);
    assert_true(parse(MESA "," NEXT));
    assert_true(sg_uuids_complete(&uuids, 3, all, why, sizeof why));
    assert_memory_equal(&all[0], &uuids.of[0], sizeof all[0]);
    assert_memory_equal(&all[1], &uuids.of[1], sizeof all[1]);
    assert_memory_equal(&all[2], &made_up, sizeof made_up);
    /* More than devices are taken from a profile, which does not know how many there will be. */
    assert_true(sg_uuids_complete(&uuids, 1, all, why, sizeof why));
}

TEST(a_set_uuid_equal_to_a_generated_one_is_refused) {
    CUuuid all[2];
    assert_true(parse("736f6674-6770-8075-8000-000000000001"));
    assert_true(sg_uuids_complete(&uuids, 1, all, why, sizeof why));
    assert_false(sg_uuids_complete(&uuids, 2, all, why, sizeof why));
    assert_string_equal(why, "UUID 1 of the list is the made-up one of device 1: set that too");
}

static const char *complaint(const char *devices, const char *value, int count) {
    static struct sg_complaints complaints;
    struct sg_config config;
    setenv("SOFTGPU_DEVICES", devices, 1);
    setenv("SOFTGPU_UUID", value, 1);
    sg_config_examine(&config, &complaints);
    unsetenv("SOFTGPU_UUID");
    unsetenv("SOFTGPU_DEVICES");
    assert_int_equal(config.uuids.count, count);
    assert_int_equal(complaints.count, count ? 0 : 1);
    return complaints.text[0];
}

TEST(a_bad_softgpu_uuid_is_explained) {
    (void)complaint("1", MESA, 1);
    (void)complaint("3", MESA "," NEXT, 2);
    const char *text = complaint("1", "mesa", 0);
    assert_non_null(strstr(text, "SOFTGPU_UUID='mesa' is not understood: it takes UUIDs of 32"));
    assert_non_null(strstr(text, "; UUID 1 of the list is no UUID"));
    text = complaint("1", MESA "," NEXT, 0);
    assert_non_null(strstr(text, "; there are 2 of them for 1 device"));
    text = complaint("2", "736f6674-6770-8075-8000-000000000001", 0);
    assert_non_null(strstr(text, "is the made-up one of device 1: set that too"));
}
