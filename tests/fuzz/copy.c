/*
 * Copies to and from mapped memory, by every kernel that this CPU has, and plans as text. An input
 * that begins with 'g' is a text, every other one a row of copies.
 */
#include "mapped/copy/copy.h"
#include "input.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LARGEST ((size_t)20000)
#define ALIGN   64

static void require(bool true_here) {
    if (!true_here)
        abort();
}

/* Exactly `bytes` bytes at an address that is `shift` past a multiple of 64: with the sanitizer one
 * more is somebody else's, behind them at once. */
static unsigned char *exactly(size_t bytes, size_t shift, unsigned char **block) {
    *block = aligned_alloc(ALIGN, (shift + bytes + ALIGN) / ALIGN * ALIGN);
    require(*block != NULL);
    memset(*block, 0xa5, (shift + bytes + ALIGN) / ALIGN * ALIGN);
    return *block + shift;
}

static void copy_once(struct input *input) {
    enum gm_copy_kernel kernel = (enum gm_copy_kernel)(draw8(input) % (GM_COPY_KERNEL_COUNT + 1));
    bool store = draw8(input) & 1;
    size_t to_shift = draw8(input) % ALIGN, from_shift = draw8(input) % ALIGN;
    size_t bytes = draw32(input) % (draw8(input) & 1 ? LARGEST : 300);
    unsigned char *to_block, *from_block;
    unsigned char *to = exactly(bytes, to_shift, &to_block);
    unsigned char *from = exactly(bytes, from_shift, &from_block);
    for (size_t i = 0; i < bytes; i++)
        from[i] = (unsigned char)(i * 7 + (i >> 8) + to_shift);
    if (store)
        gm_copy_store(kernel, to, from, bytes);
    else
        gm_copy_load(kernel, to, from, bytes);
    gm_copy_fence();
    require(memcmp(to, from, bytes) == 0);
    for (size_t i = 0; i < to_shift; i++)
        require(to_block[i] == 0xa5);
    for (size_t i = to_shift + bytes; i < (to_shift + bytes + ALIGN) / ALIGN * ALIGN; i++)
        require(to_block[i] == 0xa5);
    free(to_block);
    free(from_block);
}

/* What is taken is what encode writes. */
static void decode(const char *text, size_t length) {
    static const struct gm_copy_key key = {.cpu = "cpu", .driver = "driver", .gpu = "gpu"};
    struct gm_copy_plan plan;
    char again[GM_COPY_TEXT_ROOM], why[200];
    memset(why, 'x', sizeof why);
    if (!gm_copy_plan_decode(text, length, &key, &plan, why, sizeof why)) {
        require(memchr(why, 0, sizeof why) && why[0]);
        return;
    }
    require(gm_copy_plan_encode(&plan, &key, again) == length);
    require(memcmp(again, text, length) == 0);
    for (unsigned i = 0; i < plan.class_count; i++) {
        require(gm_copy_kernel_can(plan.classes[i].store, GM_COPY_STORE));
        require(gm_copy_kernel_can(plan.classes[i].load, GM_COPY_LOAD));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, data + size};
    if (size > 0 && data[0] == 'g') {
        decode((const char *)data, size);
        return 0;
    }
    for (int i = 0; i < 16 && input.at < input.end; i++)
        copy_once(&input);
    return 0;
}
