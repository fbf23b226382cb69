/* CUDA_VISIBLE_DEVICES: which devices are left, and in which order. */
#include "softgpu/device/profile.h"

#include "test.h"

static CUuuid uuids[4];

static int make_uuids(void **state) {
    for (int i = 0; i < 4; i++) {
        memset(&uuids[i], 0xab, sizeof uuids[i]);
        uuids[i].bytes[0] = (char)(i == 3 ? 0x11 : 0x10);
        uuids[i].bytes[15] = (char)i;
    }
    return 0;
}

ALL_TESTS(make_uuids, NULL);

/* "2 0" for what the list leaves of four devices. */
static const char *visible(const char *list) {
    static char text[64];
    int order[8];
    int count = sg_visible_devices(list, 4, uuids, order);
    text[0] = 0;
    for (int i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? " " : "", order[i]);
    return text;
}

TEST_IS(all_devices_are_visible_by_default, assert_string_equal(visible(NULL), "0 1 2 3"));

TEST(an_empty_list_hides_all_devices) {
    assert_string_equal(visible(""), "");
    assert_string_equal(visible("-1"), "");
    assert_string_equal(visible("none"), "");
    assert_string_equal(visible(","), "");
}

TEST(device_numbers_select_and_reorder_devices) {
    assert_string_equal(visible("2,0"), "2 0");
    assert_string_equal(visible(" 3 , 1 "), "3 1");
}

TEST(an_invalid_entry_ends_the_list) {
    assert_string_equal(visible("1,4,0"), "1");
    assert_string_equal(visible("1,-1,0"), "1");
    assert_string_equal(visible("1,,0"), "1");
    assert_string_equal(visible("1,2x,0"), "1");
    assert_string_equal(visible("1,1,0"), "1");
    assert_string_equal(visible("0,99999999999999999999,1"), "0");
}

TEST(devices_may_be_named_by_full_or_abbreviated_uuids) {
    assert_string_equal(visible("GPU-11ababab-abab-abab-abab-ababababab03"), "3");
    assert_string_equal(visible("gpu-11AB,0"), "3 0");
    assert_string_equal(visible("GPU-10ababab-abab-abab-abab-ababababab01"), "1");
    assert_string_equal(visible("GPU-10"), ""); /* three devices begin like this */
    assert_string_equal(visible("GPU-22"), "");
}
