// Words in a text: by comparing at each place, and by an automaton that finds all of them at once,
// each thread of which begins before its part. The words are in constant memory.
#include "device.cuh"

#define WORDS  8
#define LENGTH 16

CONSTANT u8 words[WORDS][LENGTH];
CONSTANT u32 lengths[WORDS];

KERNEL compare(const u8 *text, u32 size, u32 *found, u32 *first) {
    u32 at = index();
    if (at >= size)
        return;
    for (u32 word = 0; word < WORDS; word++) {
        u32 i = 0;
        while (i < lengths[word] && at + i < size && text[at + i] == words[word][i])
            i++;
        if (i == lengths[word]) {
            atomic_add(&found[word], 1u);
            atomic_min(&first[word], at);
        }
    }
}

// states[state][letter] is the next state; ends[state] the words that end there, a bit each.
KERNEL automaton(const u8 *text, u32 size, const u16 *states, const u32 *ends, u32 part,
                 u32 overlap, u32 *found) {
    u32 begin = index() * part, state = 0;
    if (begin >= size)
        return;
    u32 end = begin + part < size ? begin + part : size;
    for (u32 i = begin < overlap ? 0 : begin - overlap; i < end; i++) {
        state = states[state * 32 + (text[i] & 31)];
        if (i >= begin)
            for (u32 left = ends[state]; left; left &= left - 1)
                atomic_add(&found[__builtin_ctz(left)], 1u);
    }
}
