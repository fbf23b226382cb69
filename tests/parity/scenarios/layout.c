/*
 * Where allocations lie and what they take from the device: alignment, neighbours, the order in
 * which freed addresses come again, free memory before and after.
 */
#include "../parity.h"

/* One allocation of each size in turn, all kept: distance to the one before, alignment. */
SCENARIO(distances, "layout/distances", par_context) {
    static const size_t sizes[] = {1,    1,          256,   257,        512,     513, 1000,
                                   4096, 4097,       65536, 65537,      1 << 20, 1,   PAR_2M,
                                   1,    PAR_2M - 1, 1,     3 * PAR_2M, 1};
    CUdeviceptr last = 0, p;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        p = par_alloc(sizes[i]);
        size_t align = 1;
        while (p % (align * 2) == 0 && align < PAR_2M)
            align *= 2;
        par_note("size=%zu", sizes[i]);
        /* Beyond a step of 2 MiB the place is the machine's affair. */
        if (last != 0 && p / PAR_2M == last / PAR_2M)
            par_see("same-step-distance", "%lld", (long long)(p - last));
        else
            par_see("other-step", "align=%s",
                    align >= PAR_2M  ? "2M"
                    : align >= 65536 ? "64K"
                                     : "small");
        last = p;
    }
}

/* Which of three freed neighbours is given first? */
static void reuse(const size_t size) {
    CUdeviceptr p[6], q;
    par_context();
    for (int i = 0; i < 6; i++)
        p[i] = par_alloc(size);
    SETUP(cuMemFree_v2, (p[1]));
    SETUP(cuMemFree_v2, (p[4]));
    SETUP(cuMemFree_v2, (p[2]));
    for (int turn = 0; turn < 4; turn++) {
        int which = -1;
        q = par_alloc(size);
        for (int i = 0; i < 6; i++)
            which = p[i] == q ? i : which;
        par_note("size=%zu", size);
        par_see("reused", which < 0    ? "new"
                          : which == 1 ? "first-freed"
                          : which == 4 ? "second-freed"
                          : which == 2 ? "last-freed"
                                       : "live");
    }
}

SCENARIO_IS(reuse_small, "layout/reuse-small", reuse(1024));
SCENARIO_IS(reuse_middle, "layout/reuse-64K", reuse(65536));
SCENARIO_IS(reuse_step, "layout/reuse-2M", reuse(PAR_2M));
SCENARIO_IS(reuse_large, "layout/reuse-6M", reuse(3 * PAR_2M));

/* Freed neighbours together hold an allocation that neither holds alone? */
SCENARIO(joined, "layout/joined", par_context) {
    CUdeviceptr p[4], q;
    for (int i = 0; i < 4; i++)
        p[i] = par_alloc(4096);
    SETUP(cuMemFree_v2, (p[1]));
    SETUP(cuMemFree_v2, (p[2]));
    q = par_alloc(8192);
    par_see("joined", q == p[1] ? "at-the-first" : q == p[2] ? "at-the-second" : "elsewhere");
    q = par_alloc(512);
    par_see("next-small", q == p[1]          ? "at-the-first"
                          : q == p[1] + 8192 ? "behind-the-joined"
                          : q == p[3] + 4096 ? "behind-all"
                                             : "elsewhere");
}

static void fill(size_t size, int count, const char *what) {
    CUdeviceptr *p = calloc((size_t)count, sizeof(*p));
    par_free_mark();
    for (int i = 0; i < count; i++)
        p[i] = par_alloc(size);
    par_note("%s count=%d size=%zu", what, count, size);
    par_free_delta("alloc");
    for (int i = 0; i < count; i++)
        SETUP(cuMemFree_v2, (p[i]));
    par_note("%s count=%d size=%zu", what, count, size);
    par_free_delta("free");
    free(p);
}

SCENARIO(charges_small, "layout/charges-small", par_context, PAR_ALONE) {
    fill(1, 1, "one");
    fill(512, 4096, "one-step");
    fill(512, 4097, "one-more");
    fill(65536, 32, "one-step");
    fill(65536, 33, "one-more");
    fill(1 << 20, 2, "one-step");
    fill(1 << 20, 3, "one-more");
    fill((1 << 20) + 512, 2, "over-half");
    fill(PAR_2M - 512, 2, "almost");
    fill(PAR_2M, 3, "steps");
}

/* The rest of a step stays charged while one small allocation of it lives. */
SCENARIO(charges_held, "layout/charges-held", par_context, PAR_ALONE) {
    CUdeviceptr p[3];
    par_free_mark();
    for (int i = 0; i < 3; i++) {
        p[i] = par_alloc(4096);
        par_free_delta("small");
    }
    for (int i = 0; i < 3; i++) {
        SETUP(cuMemFree_v2, (p[i]));
        par_free_delta("freed");
    }
}

SCENARIO(charges_host, "layout/charges-host", par_context, PAR_ALONE) {
    par_free_mark();
    void *p = par_pinned(4096);
    par_free_delta("pinned-4K");
    void *q = par_pinned((size_t)8 << 20);
    par_free_delta("pinned-8M");
    SETUP(cuMemFreeHost, (q));
    SETUP(cuMemFreeHost, (p));
    par_free_delta("freed");
    (void)par_stream();
    par_free_delta("stream");
}

SCENARIO(pinned_distances, "layout/pinned", par_context) {
    char *p = par_pinned(100);
    char *q = par_pinned(100);
    par_see("small-apart", "%s", q > p && q - p < 4096 ? "same-page-up" : "other-page");
    par_see("alignment", "%s",
            (uintptr_t)p % 4096 == 0  ? "4K"
            : (uintptr_t)p % 512 == 0 ? "512"
                                      : "less");
    SETUP(cuMemFreeHost, (p));
    par_see("again", "%s", par_pinned(100) == (void *)p ? "same-address" : "other-address");
}
