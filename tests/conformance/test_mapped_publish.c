/*
 * What a running kernel sees of mapped memory: the payload whole, once it has seen the flag behind
 * it. By gpumem_mapped_publish, and by gpumem_store and its fence; by each method that the machine
 * has, and through a view of a buffer; a million rounds each, where kernels run. Queued work that
 * waits for the flag sees the same, and that is there on every driver.
 */
#include "kept_driver.h"
#include "library.h"
#include "polling_kernel.h"

#include <sched.h>
#include <time.h>

#define ROUNDS 1000000u
#define SLOTS  8u /* rounds that may be on the way */
#define STRIDE 8192u
#define WORDS  1024u /* of the largest payload */
/* Longer than the kernel waits: then it has ended. */
#define PATIENCE_SECONDS 60.0

static const gpumem_mapped_method methods[] = {
    GPUMEM_MAPPED_COHERENT,      GPUMEM_MAPPED_VULKAN_IMPORT, GPUMEM_MAPPED_DMA_BUF,
    GPUMEM_MAPPED_VULKAN_EXPORT, GPUMEM_MAPPED_DESCRIPTOR,    GPUMEM_MAPPED_HOST};

/* Sizes, places of the flag (in the payload's cache line, behind it, before it), and threads. */
static const struct round_case {
    uint32_t payload, bytes, flag, threads;
} cases[] = {
    {0, 60, 60, 1},    {0, 64, 64, 32},      {64, 64, 0, 32},
    {0, 256, 256, 32}, {128, 1024, 64, 128}, {0, 4096, 4096, 128},
};

struct source {
    gpumem_buffer *buffer;
    gpumem_buffer *view; /* where the buffer has no host pointer of its own */
    unsigned char *host;
    CUdeviceptr address;
    bool coherent;
    /* How one round gets there. */
    void (*send)(const struct source *source, uint32_t payload, const void *data, size_t bytes,
                 uint32_t flag, uint32_t value);
};

/* ---- Sending --------------------------------------------------------------------------------- */

static void by_publish(const struct source *source, uint32_t payload, const void *data,
                       size_t bytes, uint32_t flag, uint32_t value) {
    OK(gpumem_mapped_publish(source->buffer, payload, data, bytes, flag, value));
}

static void by_stores(const struct source *source, uint32_t payload, const void *data, size_t bytes,
                      uint32_t flag, uint32_t value) {
    gpumem_store(source->host + payload, data, bytes);
    gpumem_store_fence();
    gpumem_store(source->host + flag, &value, sizeof value);
    gpumem_store_fence();
}

/* A view has no publish: memory that is not coherent is flushed after each part. */
static void by_flushes(const struct source *source, uint32_t payload, const void *data,
                       size_t bytes, uint32_t flag, uint32_t value) {
    memcpy(source->host + payload, data, bytes);
    OK(gpumem_mapped_flush(source->view, payload, bytes));
    memcpy(source->host + flag, &value, sizeof value);
    OK(gpumem_mapped_flush(source->view, flag, sizeof value));
}

static void send_round(const struct source *source, const struct polling_layout *l,
                       uint32_t sequence) {
    uint32_t words[WORDS];
    uint32_t slot = (sequence & l->mask) * l->stride;
    for (uint32_t i = 0; i < l->words; i++)
        words[i] = polling_word(sequence, i);
    source->send(source, slot + l->payload, words, l->words * sizeof words[0], slot + l->flag,
                 sequence);
}

/* Ends a kernel that is in any round. The payload of that round is not looked at any more. */
static void send_stop(const struct source *source, const struct polling_layout *l) {
    const uint32_t nothing = 0;
    for (uint32_t i = 0; i <= l->mask; i++)
        source->send(source, i * l->stride + l->payload, &nothing, sizeof nothing,
                     i * l->stride + l->flag, POLLING_STOP);
}

/* ---- A kernel that polls --------------------------------------------------------------------- */

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Until the kernel has seen a round: false when it never does. */
static bool is_seen(const struct polling *polling, uint32_t sequence) {
    double end = 0;
    for (unsigned looks = 1; (int32_t)(polling_seen(polling) - sequence) < 0; looks++) {
        if (looks % 4096)
            continue;
        sched_yield();
        if (end == 0)
            end = seconds() + PATIENCE_SECONDS;
        else if (seconds() > end)
            return false;
    }
    return true;
}

/* No flag of an earlier kernel is left, nor a payload that looks like one. */
static void clear(const struct source *source) {
    OK(fill_now(source->buffer, 0, SLOTS * STRIDE, 0, NULL));
    if (source->view)
        OK(gpumem_mapped_invalidate(source->view, 0, SLOTS * STRIDE));
    else
        OK(gpumem_mapped_invalidate(source->buffer, 0, SLOTS * STRIDE));
}

static struct polling_layout layout_of(const struct round_case *c) {
    return (struct polling_layout){.mask = SLOTS - 1,
                                   .stride = STRIDE,
                                   .payload = c->payload,
                                   .words = c->bytes / 4,
                                   .flag = c->flag};
}

static void check_end(const struct polling *polling, uint32_t rounds, const char *what) {
    const struct polling_answer *a = polling->answer;
    OK_CU(cu.cuStreamSynchronize(polling->stream));
    if (polling_wrong(polling))
        fail_msg("%s: %llu wrong words; in round %u word %u was 0x%08x, not 0x%08x", what,
                 (unsigned long long)polling_wrong(polling), a->round, a->word, a->value,
                 polling_word(a->round, a->word));
    if (a->end || polling_seen(polling) != rounds)
        fail_msg("%s: the kernel saw %u of %u rounds (end %u)", what, polling_seen(polling), rounds,
                 a->end);
}

static void poll_rounds(struct polling *polling, const struct source *source, size_t way,
                        const struct round_case *c, uint32_t rounds) {
    const struct polling_layout layout = layout_of(c);
    clear(source);
    OK_CU(polling_start(polling, way, source->address, &layout, 1, rounds, c->threads));
    for (uint32_t i = 1; i <= rounds; i++) {
        if (i > SLOTS && !is_seen(polling, i - SLOTS))
            break;
        send_round(source, &layout, i);
    }
    char what[96];
    snprintf(what, sizeof what, "%s, %u bytes, flag at %u", polling_ways[way].name, c->bytes,
             c->flag);
    check_end(polling, rounds, what);
}

/* A million in all, of each size and by each way of looking alike. */
static void poll_million(struct polling *polling, const struct source *source, const char *what) {
    uint32_t parts = COUNT(cases) * COUNT(polling_ways);
    uint32_t rounds = soft ? 500 : (ROUNDS + parts - 1) / parts;
    double begin = seconds();
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t way = 0; way < COUNT(polling_ways); way++)
            poll_rounds(polling, source, way, &cases[i], rounds);
    print_message("# %s: %u rounds in %.2f s, every payload whole\n", what, rounds * parts,
                  seconds() - begin);
}

/* ---- Where the memory comes from ------------------------------------------------------------- */

static struct source open_source(gpumem_buffer *buffer, gpumem_buffer *view) {
    gpumem_mapped_info info = {.size = sizeof info};
    if (view)
        OK(gpumem_buffer_get_mapped_info(view, &info));
    return (struct source){
        .buffer = buffer,
        .view = view,
        .host = view ? gpumem_buffer_host_pointer(view) : gpumem_buffer_host_pointer(buffer),
        .address = gpumem_buffer_pointer(buffer),
        .coherent = info.coherent,
        .send = view ? by_flushes : by_publish,
    };
}

typedef void (*source_test)(struct source *source, void *user);

/* Each method that works here; `only_first`: the best of them. */
static void for_methods(source_test test, void *user, bool only_first) {
    for (size_t i = 0; i < COUNT(methods); i++) {
        gpumem_resource *resource = NULL;
        gpumem_mapped_info info = {.size = sizeof info};
        gpumem_status status = gpumem_mapped_resource_create(
            device, GPUMEM_MAPPED_OPTIONS(.method = methods[i], .method_strict = 1), &resource);
        if (status == GPUMEM_ERROR_NOT_SUPPORTED)
            continue;
        OK(status);
        OK(gpumem_mapped_get_info(resource, &info));
        print_message("# %s\n", gpumem_mapped_method_name(methods[i]));
        gpumem_buffer *buffer = NEW_BUFFER(resource, 2 * MIB);
        struct source source = open_source(buffer, NULL);
        source.coherent = info.coherent;
        test(&source, user);
        DESTROY(buffer, resource);
        if (only_first)
            return;
    }
}

/* A view of a virtual buffer; false where none can be had. */
static bool for_view(source_test test, void *user) {
    gpumem_buffer *view = NULL;
    gpumem_resource *memory = NEW_VIRTUAL();
    gpumem_buffer *buffer = NEW_BUFFER(memory, 2 * MIB);
    gpumem_status status = gpumem_buffer_host_view(buffer, NULL, &view);
    if (status == GPUMEM_OK) {
        struct source source = open_source(buffer, view);
        test(&source, user);
        OK(gpumem_buffer_free(view, NULL));
    } else {
        print_message("skip: only host memory can be shared: %s\n", gpumem_last_error()->message);
    }
    DESTROY(buffer, memory);
    assert_true(status == GPUMEM_OK || status == GPUMEM_ERROR_NOT_SUPPORTED);
    return status == GPUMEM_OK;
}

/* ---- The tests with a kernel ----------------------------------------------------------------- */

static void poll_both_ways(struct source *source, void *user) {
    poll_million(user, source, source->view ? "a view, stored and flushed" : "published");
    if (source->coherent) {
        source->send = by_stores;
        poll_million(user, source, "gpumem_store and its fence");
    }
}

TEST(a_polling_kernel_sees_complete_payloads_by_each_method) {
    struct polling polling;
    polling_make(&polling);
    open_library();
    for_methods(poll_both_ways, &polling, false);
    close_library();
    polling_free(&polling);
}

TEST(a_polling_kernel_sees_complete_payloads_through_a_view) {
    struct polling polling;
    polling_make(&polling);
    open_library();
    bool can = for_view(poll_both_ways, &polling);
    close_library();
    polling_free(&polling);
    if (!can)
        skip();
}

/* One word in seven is another one. */
static void send_damaged(const struct source *source, const struct polling_layout *l,
                         uint32_t sequence) {
    uint32_t words[WORDS];
    uint32_t slot = (sequence & l->mask) * l->stride;
    for (uint32_t i = 0; i < l->words; i++)
        words[i] = polling_word(sequence, i) + (i % 7 == 0);
    source->send(source, slot + l->payload, words, l->words * sizeof words[0], slot + l->flag,
                 sequence);
}

static void check_notices(struct polling *polling, const struct source *source, size_t way,
                          unsigned threads) {
    const struct polling_layout layout = layout_of(&cases[3]);
    const struct polling_answer *a = polling->answer;
    clear(source);
    OK_CU(polling_start(polling, way, source->address, &layout, 1, 2, threads));
    send_damaged(source, &layout, 1);
    send_round(source, &layout, 2);
    OK_CU(cu.cuStreamSynchronize(polling->stream));
    assert_int_equal(polling_seen(polling), 2);
    assert_int_equal(a->end, 0);
    assert_int_equal(polling_wrong(polling), (layout.words + 6) / 7);
    assert_int_equal(a->round, 1);
    if (threads == 1) { /* of several, each may have written a part of this */
        assert_int_equal(a->word, (layout.words - 1) / 7 * 7);
        assert_int_equal(a->value, polling_word(1, a->word) + 1);
    }
}

/* The kernel is none that finds everything right. */
static void notice_damage(struct source *source, void *user) {
    for (size_t way = 0; way < COUNT(polling_ways); way++) {
        check_notices(user, source, way, 1);
        check_notices(user, source, way, 32);
    }
}

TEST(the_polling_kernel_detects_wrong_words) {
    struct polling polling;
    polling_make(&polling);
    open_library();
    for_methods(notice_damage, &polling, true);
    close_library();
    polling_free(&polling);
}

static void stop_after_three(struct source *source, void *user) {
    struct polling *polling = user;
    const struct polling_layout layout = layout_of(&cases[1]);
    clear(source);
    OK_CU(polling_start(polling, 0, source->address, &layout, 1, ROUNDS, cases[1].threads));
    for (uint32_t i = 1; i <= 3; i++)
        send_round(source, &layout, i);
    assert_true(is_seen(polling, 3));
    send_stop(source, &layout);
    OK_CU(cu.cuStreamSynchronize(polling->stream));
    assert_int_equal(polling_seen(polling), 3);
    assert_int_equal(polling->answer->end, 2);
    assert_int_equal(polling_wrong(polling), 0);
}

TEST(the_stop_flag_ends_the_polling_kernel) {
    struct polling polling;
    polling_make(&polling);
    open_library();
    for_methods(stop_after_three, &polling, true);
    close_library();
    polling_free(&polling);
}

/* ---- Queued work that waits for the flag ----------------------------------------------------- */

#define QUEUED_ROUNDS 200u

/* Of each round: wait for the flag, then copy the payload away. All of it is queued before the flag
 * is written, so the copy goes to memory of the device: one from host to host would not be queued.
 */
static void queue_round(CUstream stream, const struct source *source,
                        const struct polling_layout *l, uint32_t sequence, CUdeviceptr to) {
    CUdeviceptr slot = source->address + (sequence & l->mask) * l->stride;
    OK_CU(cu.cuStreamWaitValue32_v2(stream, slot + l->flag, sequence, CU_STREAM_WAIT_VALUE_EQ));
    OK_CU(cu.cuMemcpyDtoDAsync_v2(to, slot + l->payload, l->words * sizeof(uint32_t), stream));
}

static void check_words(CUdeviceptr from, uint32_t sequence, uint32_t count) {
    uint32_t words[WORDS];
    OK_CU(cu.cuMemcpyDtoH_v2(words, from, count * sizeof words[0]));
    for (uint32_t i = 0; i < count; i++)
        if (words[i] != polling_word(sequence, i))
            fail_msg("round %u: word %u is 0x%08x, not 0x%08x", sequence, i, words[i],
                     polling_word(sequence, i));
}

static void wait_rounds(const struct source *source, const struct round_case *c, CUdeviceptr out) {
    const struct polling_layout layout = layout_of(c);
    clear(source);
    CUstream stream = new_stream();
    for (uint32_t first = 1; first <= QUEUED_ROUNDS; first += SLOTS) {
        for (uint32_t i = 0; i < SLOTS; i++)
            queue_round(stream, source, &layout, first + i, out + i * STRIDE);
        for (uint32_t i = 0; i < SLOTS; i++)
            send_round(source, &layout, first + i);
        OK_CU(cu.cuStreamSynchronize(stream));
        for (uint32_t i = 0; i < SLOTS; i++)
            check_words(out + i * STRIDE, first + i, layout.words);
    }
}

static void wait_all_sizes(struct source *source, void *user) {
    CUdeviceptr out = new_memory(SLOTS * STRIDE);
    for (size_t i = 0; i < COUNT(cases); i++)
        wait_rounds(source, &cases[i], out);
    if (source->coherent) {
        source->send = by_stores;
        for (size_t i = 0; i < COUNT(cases); i++)
            wait_rounds(source, &cases[i], out);
    }
}

TEST(queued_work_after_the_flag_sees_complete_payloads_by_each_method) {
    open_library();
    for_methods(wait_all_sizes, NULL, false);
}

TEST(queued_work_after_the_flag_sees_complete_payloads_through_a_view) {
    open_library();
    bool can = for_view(wait_all_sizes, NULL);
    close_library();
    if (!can)
        skip();
}

BEFORE_TESTS_DO(keep_lavapipe_loaded());
