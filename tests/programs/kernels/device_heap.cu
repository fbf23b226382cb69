// Lists whose nodes kernels allocate: one kernel makes them, one adds them up, one gives them back.
#include "device.cuh"

extern "C" DEVICE void *malloc(size_t size);
extern "C" DEVICE void free(void *p);

struct node {
    node *next;
    u32 value;
};

KERNEL make(node **lists, u32 *wrong) {
    node *list = nullptr;
    for (u32 i = 0; i < index() % 7; i++) {
        node *added = (node *)malloc(sizeof *added + i * 24);
        if (!added || (u64)added % 16) {
            atomic_add(wrong, 1u);
            continue;
        }
        added->next = list;
        added->value = index() * 10 + i;
        list = added;
    }
    lists[index()] = list;
    if (index() == 0) {
        void *volatile huge = malloc((size_t)1 << 40); // a plain one is taken to succeed
        if (huge)
            atomic_add(wrong, 1000u);
    }
}

KERNEL sum(node *const *lists, u32 *sums) {
    u32 total = 0;
    for (const node *each = lists[index()]; each; each = each->next)
        total = total * 31 + each->value;
    sums[index()] = total;
}

KERNEL give_back(node **lists) {
    for (node *each = lists[index()], *next; each; each = next) {
        next = each->next;
        free(each);
    }
    free(nullptr);
    lists[index()] = nullptr;
}
