/* The page table as running work sees it, and reclaim behind running work. */
#include "softgpu/address/epoch.h"
#include "softgpu/address/pagetable.h"
#include "softgpu/address/window.h"
#include "softgpu/core/calls.h"

#include "test.h"
#include <pthread.h>

static unsigned char *at(uintptr_t address) {
    return (unsigned char *)address;
}

static CUdeviceptr take(size_t size) {
    CUdeviceptr p = 0;
    assert_int_equal(sg_addresses_take(size, SG_PAGE, 0, &p), CUDA_SUCCESS);
    return p;
}

TEST(unmapped_addresses_translate_to_null) {
    size_t span;
    CUdeviceptr p = take(2 * SG_PAGE);
    assert_null(sg_translate(0, p, 1, SG_READ, &span));
    assert_null(sg_translate(0, 0, 1, SG_READ, &span));
    assert_null(sg_translate(0, (CUdeviceptr)1 << 60, 1, SG_READ, &span));
    sg_addresses_give(p, 2 * SG_PAGE);
}

TEST(host_addresses_translate_to_themselves) {
    char bytes[64];
    size_t span = 0;
    CUdeviceptr p = (CUdeviceptr)(uintptr_t)bytes;
    assert_ptr_equal(sg_translate(3, p, 64, SG_READ | SG_WRITE, &span), bytes);
    assert_int_equal(span, 64);
}

TEST(a_translated_span_ends_with_its_contiguous_memory) {
    size_t span = 0;
    CUdeviceptr p = take(4 * SG_PAGE);
    unsigned char *one = at(64 * SG_PAGE), *other = at(256 * SG_PAGE);
    sg_rights all = sg_rights_of_mask(0xff);
    sg_table_map(p, 2 * SG_PAGE, one, all);
    sg_table_map(p + 2 * SG_PAGE, SG_PAGE, other, all);
    assert_ptr_equal(sg_translate(0, p + 5, 10, SG_READ, &span), one + 5);
    assert_int_equal(span, 10);
    assert_ptr_equal(sg_translate(0, p + 5, 9 * SG_PAGE, SG_READ, &span), one + 5);
    assert_int_equal(span, 2 * SG_PAGE - 5);
    assert_ptr_equal(sg_translate(7, p + 2 * SG_PAGE, 9 * SG_PAGE, SG_WRITE, &span), other);
    assert_int_equal(span, SG_PAGE);
    sg_table_unmap(p, 4 * SG_PAGE);
    assert_null(sg_translate(0, p, 1, SG_READ, &span));
    sg_addresses_give(p, 4 * SG_PAGE);
}

TEST(access_rights_are_per_device) {
    size_t span;
    CUdeviceptr p = take(SG_PAGE);
    sg_table_map(p, SG_PAGE, at(64 * SG_PAGE), sg_rights_of(1, SG_READ));
    for (int device = 0; device < SG_MAX_DEVICES; device++) {
        assert_int_equal(sg_translate(device, p, 1, SG_READ, &span) != NULL, device == 1);
        assert_null(sg_translate(device, p, 1, SG_WRITE, &span));
    }
    sg_table_rights(p, SG_PAGE, sg_rights_of(7, 3), sg_rights_of(7, SG_READ | SG_WRITE));
    assert_non_null(sg_translate(7, p, 1, SG_READ | SG_WRITE, &span));
    assert_non_null(sg_translate(1, p, 1, SG_READ, &span));
    sg_table_rights(p, SG_PAGE, sg_rights_of(1, 3), 0);
    assert_null(sg_translate(1, p, 1, SG_READ, &span));
    sg_table_unmap(p, SG_PAGE);
    sg_addresses_give(p, SG_PAGE);
}

TEST(host_memory_may_lie_below_or_above_the_device_address) {
    size_t span;
    CUdeviceptr p = take(SG_PAGE);
    uintptr_t places[] = {SG_PAGE, (uintptr_t)0x7ffff0000000, (uintptr_t)p};
    for (unsigned i = 0; i < 3; i++) {
        sg_table_map(p, SG_PAGE, at(places[i]), sg_rights_of(0, SG_READ));
        assert_ptr_equal(sg_translate(0, p + 77, 1, SG_READ, &span), at(places[i] + 77));
    }
    sg_table_unmap(p, SG_PAGE);
    sg_addresses_give(p, SG_PAGE);
}

/* ---- Reclaim --------------------------------------------------------------------------------- */

struct object {
    struct sg_retired retired;
    bool reclaimed;
};

static void reclaim(struct sg_retired *retired) {
    ((struct object *)retired)->reclaimed = true;
}

TEST(reclaiming_waits_for_work_that_began_before) {
    struct object idle = {0}, first = {0}, second = {0};
    struct sg_work a, b, c;
    sg_lock();
    sg_retire(&idle.retired, reclaim);
    assert_true(idle.reclaimed);
    sg_work_begin(&a);
    sg_retire(&first.retired, reclaim);
    sg_work_begin(&b);
    sg_retire(&second.retired, reclaim);
    sg_work_begin(&c);
    assert_false(first.reclaimed);
    sg_work_end(&c);
    assert_false(first.reclaimed || second.reclaimed);
    sg_work_end(&a);
    assert_true(first.reclaimed);
    assert_false(second.reclaimed);
    sg_work_end(&b);
    assert_true(second.reclaimed);
    sg_unlock();
}

TEST(reclaiming_works_if_work_ends_in_any_order) {
    struct object object = {0};
    struct sg_work works[16];
    sg_lock();
    for (int i = 0; i < 16; i++)
        sg_work_begin(&works[i]);
    sg_retire(&object.retired, reclaim);
    for (int i = 0; i < 16; i++) {
        assert_false(object.reclaimed);
        sg_work_end(&works[i * 7 % 16]);
    }
    assert_true(object.reclaimed);
    sg_unlock();
}

static struct sg_work running;

static void *end_running(void *unused) {
    sg_lock();
    sg_work_end(&running);
    sg_unlock();
    return NULL;
}

TEST(an_epoch_waits_for_earlier_work_only) {
    pthread_t thread;
    struct sg_work later;
    sg_lock();
    sg_work_begin(&running);
    uint64_t mark = sg_epoch_mark();
    sg_work_begin(&later); /* began after the mark: not waited for */
    assert_false(sg_epoch_passed(mark));
    assert_int_equal(pthread_create(&thread, NULL, end_running, NULL), 0);
    sg_epoch_wait(mark);
    assert_true(sg_epoch_passed(mark));
    sg_work_end(&later);
    sg_unlock();
    pthread_join(thread, NULL);
}
