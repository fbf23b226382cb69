// A kernel that serves the host while it runs: requests come through host memory, and answers go
// back there, each with a number that says that it is whole.
#include "device.cuh"

struct request {
    u32 number, count, values[62];
};
struct answer {
    u32 number, sum, product, block;
};

INLINE u32 load_system(const u32 *at) {
    u32 value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
INLINE void store_system(u32 *at, u32 value) {
    asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

// Each block has a place of its own; a count of ~0 ends it.
KERNEL serve(request *requests, answer *answers) {
    SHARED u32 count;
    request *own = &requests[block()];
    answer *reply = &answers[block()];
    for (u32 number = 1;; number++) {
        if (thread() == 0) {
            while (load_system(&own->number) != number)
                ;
            count = ((volatile request *)own)->count;
        }
        sync();
        if (count == ~0u)
            return;
        u32 sum = 0, product = 1;
        for (u32 i = lane(); i < count; i += 32) {
            u32 value = ((volatile u32 *)own->values)[i];
            sum += value;
            product *= value | 1;
        }
        for (u32 mask = 16; mask > 0; mask /= 2) {
            sum += shuffle_xor(sum, mask);
            product *= shuffle_xor(product, mask);
        }
        sync();
        if (thread() == 0) {
            reply->sum = sum;
            reply->product = product;
            reply->block = block();
            store_system(&reply->number, number);
        }
    }
}
