/* Checksums by the algorithms of xxHash: what it gave, and what it gives where it is installed. */
#include "base/xxh.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#if __has_include(<xxhash.h>)
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

#define MOST 5000

static unsigned char bytes[MOST + 8];

BEFORE_TESTS {
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    return 0;
}

/* Each length where the specification begins another case. */
TEST(values_are_those_that_xxhash_gave) {
    static const struct {
        size_t size;
        uint64_t plain, seeded, older;
    } rows[] = {
#include "xxh_values.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(gm_xxh3(bytes, rows[i].size, 0), rows[i].plain);
        assert_int_equal(gm_xxh3(bytes, rows[i].size, 0x123456789abcdef0), rows[i].seeded);
        assert_int_equal(gm_xxh64(bytes, rows[i].size), rows[i].older);
    }
}

TEST(every_length_gives_what_the_installed_xxhash_gives) {
#ifdef XXH_INLINE_ALL
    for (size_t size = 0; size <= MOST; size++) {
        const unsigned char *at = bytes + size % 8;
        assert_int_equal(gm_xxh3(at, size, 0), XXH3_64bits(at, size));
        assert_int_equal(gm_xxh3(at, size, size << 33 | 7),
                         XXH3_64bits_withSeed(at, size, size << 33 | 7));
        assert_int_equal(gm_xxh64(at, size), XXH64(at, size, 0));
    }
#else
    printf("skip: xxhash.h is not installed\n");
    skip();
#endif
}
