/* Eight words in a long text of few letters, counted in two ways. */
#include "base/program.h"

#define WORDS  8
#define LENGTH 16
#define STATES 128

static const char *const list[WORDS] = {"a",    "ab",     "abba",   "cab",
                                        "bbbb", "accbaa", "ccabcc", "abcabcabc"};
static uint16_t states[STATES][32];
static uint32_t ends[STATES];

/* The automaton of Aho and Corasick over letters' low five bits. */
static void make_automaton(void) {
    uint16_t count = 1, queue[STATES], fails[STATES] = {0};
    unsigned head = 0, tail = 0;
    for (unsigned word = 0; word < WORDS; word++) {
        uint16_t state = 0;
        for (const char *at = list[word]; *at; at++) {
            uint16_t *next = &states[state][*at & 31];
            state = *next ? *next : (*next = count++);
        }
        ends[state] |= 1u << word;
    }
    for (unsigned letter = 0; letter < 32; letter++)
        if (states[0][letter])
            queue[tail++] = states[0][letter];
    while (head < tail) {
        uint16_t state = queue[head++];
        ends[state] |= ends[fails[state]];
        for (unsigned letter = 0; letter < 32; letter++) {
            uint16_t next = states[state][letter];
            if (!next) {
                states[state][letter] = states[fails[state]][letter];
                continue;
            }
            fails[next] = states[fails[state]][letter];
            queue[tail++] = next;
        }
    }
}

static void set_constants(void) {
    CUdeviceptr words, lengths;
    unsigned char text[WORDS][LENGTH] = {{0}};
    uint32_t sizes[WORDS];
    size_t size;
    for (unsigned i = 0; i < WORDS; i++) {
        sizes[i] = (uint32_t)strlen(list[i]);
        memcpy(text[i], list[i], sizes[i]);
    }
    OK(cu.cuModuleGetGlobal_v2(&words, &size, program_module, "words"));
    device_write(words, text, sizeof text);
    OK(cu.cuModuleGetGlobal_v2(&lengths, &size, program_module, "lengths"));
    device_write(lengths, sizes, sizeof sizes);
}

PROGRAM("string_search") {
    uint32_t want[WORDS] = {0}, first[WORDS], got[WORDS], got_first[WORDS];
    unsigned size = 60007 * program_scale(20), part = 101, overlap = LENGTH;
    char *text = host_new(size + LENGTH);
    for (unsigned i = 0; i < size; i++)
        text[i] = "abc"[random_bits() % 3];
    memset(first, 0xff, sizeof first);
    for (unsigned i = 0; i < size; i++)
        for (unsigned word = 0; word < WORDS; word++)
            if (strncmp(text + i, list[word], strlen(list[word])) == 0) {
                want[word]++;
                first[word] = i < first[word] ? i : first[word];
            }
    make_automaton();
    set_constants();
    memset(got_first, 0xff, sizeof got_first);
    CUdeviceptr device = device_copy(text, size), found = device_new(sizeof got);
    CUdeviceptr firsts = device_copy(got_first, sizeof got_first), again = device_new(sizeof got);
    CUdeviceptr table = device_copy(states, sizeof states), words = device_copy(ends, sizeof ends);
    LAUNCH("compare", SHAPE((size + 127) / 128, 128), &device, &size, &found, &firsts);
    LAUNCH("automaton", SHAPE((size / part + 64) / 64, 64), &device, &size, &table, &words, &part,
           &overlap, &again);
    device_read(got, found, sizeof got);
    device_read(got_first, firsts, sizeof got_first);
    expect_equal("words, by comparing", got, want, sizeof got);
    expect_equal("first places", got_first, first, sizeof got_first);
    for (unsigned i = 0; i < WORDS; i++)
        expect(got[i] == want[i], "%s: %u times, first at %u", list[i], got[i], got_first[i]);
    device_read(got, again, sizeof got);
    expect_equal("words, by an automaton", got, want, sizeof got);
}
