// A hash table with open addressing: keys are claimed by compare and swap, values are added up, and
// what is asked for is found by many threads.
#include "device.cuh"

#define EMPTY 0xffffffffu

struct slot {
    u32 key, value;
};

INLINE u32 hash(u32 key) {
    key ^= key >> 16;
    key *= 0x7feb352du;
    key ^= key >> 15;
    key *= 0x846ca68bu;
    return key ^ key >> 16;
}

KERNEL insert(slot *slots, u32 mask, const u32 *keys, const u32 *values, u32 count) {
    if (index() >= count)
        return;
    u32 key = keys[index()], at = hash(key) & mask;
    for (;; at = (at + 1) & mask) {
        u32 found = atomic_swap_if(&slots[at].key, EMPTY, key);
        if (found == EMPTY || found == key)
            break;
    }
    atomic_add(&slots[at].value, values[index()]);
}

KERNEL find(const slot *slots, u32 mask, const u32 *keys, u32 *values, u32 count) {
    if (index() >= count)
        return;
    u32 key = keys[index()], at = hash(key) & mask;
    while (slots[at].key != key && slots[at].key != EMPTY)
        at = (at + 1) & mask;
    values[index()] = slots[at].key == key ? slots[at].value : EMPTY;
}

KERNEL count_used(const slot *slots, u32 size, u32 *used) {
    u32 own = 0;
    for (u32 i = index(); i < size; i += all_threads())
        own += slots[i].key != EMPTY;
    for (u32 mask = 16; mask > 0; mask /= 2)
        own += shuffle_xor(own, mask);
    if (lane() == 0)
        atomic_add(used, own);
}
