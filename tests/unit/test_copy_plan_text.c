/* Plans as text: what was written is read back, and nothing else is. */
#include "mapped/copy/copy.h"

#include "test.h"

static const struct gm_copy_key key = {
    .cpu = "AMD EPYC 9575F 64-Core Processor", .driver = "580.159.04 13000", .gpu = "NVIDIA H200"};

static struct gm_copy_plan example(void) {
    struct gm_copy_plan plan = gm_copy_plan_default();
    plan.store = (struct gm_copy_cutover){.pinned = GM_COPY_NEVER, .pageable = 67108864};
    plan.load = (struct gm_copy_cutover){.pinned = 0, .pageable = 512};
    return plan;
}

static bool same(const struct gm_copy_plan *a, const struct gm_copy_plan *b) {
    if (a->class_count != b->class_count || a->store.pinned != b->store.pinned ||
        a->store.pageable != b->store.pageable || a->load.pinned != b->load.pinned ||
        a->load.pageable != b->load.pageable)
        return false;
    for (unsigned i = 0; i < a->class_count; i++)
        if (a->classes[i].bytes != b->classes[i].bytes ||
            a->classes[i].store != b->classes[i].store || a->classes[i].load != b->classes[i].load)
            return false;
    return true;
}

static char why[256];

static bool decode(const char *text, size_t length, struct gm_copy_plan *plan) {
    why[0] = 0;
    return gm_copy_plan_decode(text, length, &key, plan, why, sizeof why);
}

TEST(a_written_plan_is_read_back) {
    struct gm_copy_plan plan = example(), got;
    char text[GM_COPY_TEXT_ROOM];
    size_t length = gm_copy_plan_encode(&plan, &key, text);
    assert_int_equal(length, strlen(text));
    if (!decode(text, length, &got))
        fail_msg("%s\n%s", why, text);
    assert_true(same(&plan, &got));
}

TEST(the_largest_plan_fits_the_text_buffer) {
    struct gm_copy_plan plan = {.class_count = GM_COPY_CLASS_LIMIT}, got;
    struct gm_copy_key long_key;
    char text[GM_COPY_TEXT_ROOM];
    for (unsigned i = 0; i < GM_COPY_CLASS_LIMIT; i++)
        plan.classes[i] = (struct gm_copy_class){.bytes = UINT64_MAX - GM_COPY_CLASS_LIMIT + 1 + i};
    plan.store = plan.load =
        (struct gm_copy_cutover){.pinned = UINT64_MAX - 1, .pageable = UINT64_MAX - 1};
    memset(&long_key, 'x', sizeof long_key);
    long_key.cpu[GM_COPY_KEY_ROOM - 1] = long_key.driver[GM_COPY_KEY_ROOM - 1] =
        long_key.gpu[GM_COPY_KEY_ROOM - 1] = 0;
    size_t length = gm_copy_plan_encode(&plan, &long_key, text);
    assert_true(length > 0 && length < sizeof text);
    assert_true(gm_copy_plan_decode(text, length, &long_key, &got, why, sizeof why));
    assert_true(same(&plan, &got));
}

/* Every byte changed, every prefix, every line left out or doubled. */
TEST(every_modified_plan_text_is_refused) {
    struct gm_copy_plan plan = example(), got = {.class_count = 77};
    char text[GM_COPY_TEXT_ROOM], changed[2 * GM_COPY_TEXT_ROOM];
    size_t length = gm_copy_plan_encode(&plan, &key, text);
    for (size_t i = 0; i < length; i++) {
        static const unsigned char flips[] = {1, 2, 0x20, 0x80};
        for (size_t j = 0; j < sizeof flips; j++) {
            memcpy(changed, text, length);
            changed[i] = (char)((unsigned char)changed[i] ^ flips[j]);
            if (decode(changed, length, &got))
                fail_msg("byte %zu ^ %u was taken", i, flips[j]);
            assert_true(why[0] != 0);
        }
        if (decode(text, i, &got))
            fail_msg("the first %zu bytes were taken", i);
    }
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        size_t before = (size_t)(line - text), size = (size_t)(strchr(line, '\n') + 1 - line);
        memcpy(changed, text, before);
        memcpy(changed + before, line + size, length - before - size);
        assert_false(decode(changed, length - size, &got));
        memcpy(changed, text, before + size);
        memcpy(changed + before + size, line, length - before);
        assert_false(decode(changed, length + size, &got));
    }
    assert_int_equal(got.class_count, 77);
}

static void refused(const char *text, size_t length, const char *reason) {
    struct gm_copy_plan got = {.class_count = 77};
    assert_false(decode(text, length, &got));
    assert_int_equal(got.class_count, 77);
    if (!strstr(why, reason))
        fail_msg("'%s' does not say '%s'", why, reason);
}

TEST(a_refused_plan_text_has_a_reason) {
    struct gm_copy_plan plan = example();
    struct gm_copy_key other = key;
    char text[GM_COPY_TEXT_ROOM], large[GM_COPY_TEXT_ROOM + 1];
    size_t length = gm_copy_plan_encode(&plan, &key, text);
    memset(large, 'x', sizeof large);
    refused("", 0, "does not begin with 'gpumem copy plan 1'");
    refused("gpumem copy plan 2\n", 19, "does not begin with");
    refused(large, sizeof large, "4097 bytes, more than any plan");
    refused(text, length - 3, "checksum");
    text[length] = 0;
    refused(text, length + 1, "a byte 0");
    text[length] = '\n';
    refused(text, length + 1, "checksum");
    refused("gpumem copy plan 1\ncpu x\n", 25, "it is for the cpu 'x', not for 'AMD EPYC");
    strcpy(other.gpu, "NVIDIA L4");
    length = gm_copy_plan_encode(&plan, &other, text);
    refused(text, length, "it is for the gpu 'NVIDIA L4', not for 'NVIDIA H200'");
    other = key;
    strcpy(other.driver, "590");
    length = gm_copy_plan_encode(&plan, &other, text);
    refused(text, length, "it is for the driver '590', not for '580.159.04 13000'");
}

#define HEAD                                                                                       \
    "gpumem copy plan 1\ncpu AMD EPYC 9575F 64-Core Processor\ndriver 580.159.04 13000\n"          \
    "gpu NVIDIA H200\n"

/* Texts that could have been written on another machine, or by hand. */
TEST(invalid_plan_lines_are_refused) {
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {HEAD "class 64 store mmx load plain\n", "'mmx' is no kernel"},
        {HEAD "class 64 store sse41 load plain\n", "no kernel sse41 for stores"},
        {HEAD "class 64 store plain load sse2\n", "no kernel sse2 for loads"},
        {HEAD "class -1 store plain load plain\n", "a class is not understood"},
        {HEAD "class 0x40 store plain load plain\n", "a class is not understood"},
        {HEAD "class 18446744073709551616 store plain load plain\n", "a class is not understood"},
        {HEAD "class 64 stores plain\n", "a class is not understood"},
        {HEAD "class 64 store plain\n", "a class is not understood"},
        {HEAD "class 64 store\n", "'' is no kernel"},
        {HEAD "class 64 store plain load plain\n", "the cut-over of stores is missing"},
        {HEAD "class 64 store plain load plain\ncutover store pinned 1 pageable x\n",
         "the cut-over of stores is missing or not understood"},
        {HEAD "class 64 store plain load plain\ncutover store pinned 1 pageable never\n",
         "the cut-over of loads is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused(cases[i].text, strlen(cases[i].text), cases[i].reason);
}

TEST(a_plan_that_could_not_be_read_back_is_not_written) {
    struct gm_copy_plan good = example(), plan;
    char text[GM_COPY_TEXT_ROOM];
    struct gm_copy_key bad = key;
    bad.cpu[0] = 0;
    assert_int_equal(gm_copy_plan_encode(&good, &bad, text), 0);
    bad = key;
    bad.gpu[3] = '\n';
    assert_int_equal(gm_copy_plan_encode(&good, &bad, text), 0);
    bad = key;
    memset(bad.driver, 'x', sizeof bad.driver);
    assert_int_equal(gm_copy_plan_encode(&good, &bad, text), 0);
    plan = good;
    plan.class_count = 0;
    assert_int_equal(gm_copy_plan_encode(&plan, &key, text), 0);
    plan.class_count = GM_COPY_CLASS_LIMIT + 1;
    assert_int_equal(gm_copy_plan_encode(&plan, &key, text), 0);
    plan = good;
    plan.classes[1].bytes = plan.classes[0].bytes;
    assert_int_equal(gm_copy_plan_encode(&plan, &key, text), 0);
    plan = good;
    plan.classes[0].store = GM_COPY_SSE41;
    assert_int_equal(gm_copy_plan_encode(&plan, &key, text), 0);
    plan = good;
    plan.classes[0].load = GM_COPY_KERNEL_COUNT;
    assert_int_equal(gm_copy_plan_encode(&plan, &key, text), 0);
    assert_true(gm_copy_plan_encode(&good, &key, text) > 0);
}

TEST(the_cpu_name_can_be_used_as_a_key) {
    struct gm_copy_plan plan = example(), got;
    struct gm_copy_key here = key;
    char text[GM_COPY_TEXT_ROOM];
    memset(here.cpu, 0xff, sizeof here.cpu);
    gm_copy_cpu_name(here.cpu);
    assert_non_null(memchr(here.cpu, 0, sizeof here.cpu));
    size_t length = gm_copy_plan_encode(&plan, &here, text);
    assert_true(length > 0);
    assert_true(gm_copy_plan_decode(text, length, &here, &got, why, sizeof why));
}
