/* What tests of the snapshot share: taking one, and finding things in it. */
#ifndef TESTS_SNAPSHOT_TEST_H
#define TESTS_SNAPSHOT_TEST_H

#include "json_reader.h"
#include "library_test.h"

static char *taken;

static inline const char *take(void) {
    free(taken);
    taken = NULL;
    OK(snapshot_of(device, &taken));
    if (!json_is_valid(taken))
        fail_msg("no valid JSON:\n%s", taken);
    return json_find(taken, "devices.0");
}

static inline int teardown(void **state) {
    free(taken);
    taken = NULL;
    return close_device(state);
}

/* The first element of a list whose member has this value; NULL when there is none. */
static inline const char *with(const char *list, const char *member, const char *value) {
    for (size_t i = 0; i < json_count(list); i++) {
        char index[24];
        snprintf(index, sizeof index, "%zu", i);
        const char *element = json_find(list, index);
        if (json_is(json_find(element, member), value))
            return element;
    }
    return NULL;
}

static inline const char *resource_of_kind(const char *of, const char *kind) {
    return with(json_find(of, "resources"), "kind", kind);
}

static inline const char *address_text(CUdeviceptr address) {
    static char text[24];
    snprintf(text, sizeof text, "0x%llx", address);
    return text;
}

static inline const char *buffer_of(const char *resource, const gpumem_buffer *buffer) {
    return with(json_find(resource, "buffers"), "address",
                address_text(gpumem_buffer_pointer(buffer)));
}

#define NUMBER(object, path, wanted)                                                               \
    assert_int_equal(json_unsigned(json_find(object, path)), (unsigned long long)(wanted))

#endif
