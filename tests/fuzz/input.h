/* Bytes of a fuzzer's input, drawn one after the other; zeros when they are used up. */
#ifndef TESTS_FUZZ_INPUT_H
#define TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct input {
    const uint8_t *at, *end;
};

static inline uint8_t draw8(struct input *input) {
    return input->at < input->end ? *input->at++ : 0;
}

static inline void draw_bytes(struct input *input, void *into, size_t size) {
    size_t left = (size_t)(input->end - input->at);
    size_t take = size < left ? size : left;
    memset(into, 0, size);
    if (take == 0)
        return;
    memcpy(into, input->at, take);
    input->at += take;
}

static inline uint32_t draw32(struct input *input) {
    uint32_t value;
    draw_bytes(input, &value, sizeof value);
    return value;
}

static inline uint64_t draw64(struct input *input) {
    uint64_t value;
    draw_bytes(input, &value, sizeof value);
    return value;
}

#endif
