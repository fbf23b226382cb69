#include "softgpu/address/epoch.h"

static uint64_t epoch = 1;
/* Running work, oldest first: stamps never decrease along the list. */
static struct sg_work *oldest, *newest;
static struct sg_retired *retired_head, *retired_tail;
static unsigned waiters;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;

void sg_work_begin(struct sg_work *work) {
    work->epoch = epoch;
    work->next = NULL;
    work->previous = newest;
    if (newest)
        newest->next = work;
    else
        oldest = work;
    newest = work;
}

/* Reclaiming may retire more: each object is removed from the list before it is reclaimed. */
static void reclaim_unseen(void) {
    while (retired_head && (!oldest || oldest->epoch >= retired_head->epoch)) {
        struct sg_retired *retired = retired_head;
        retired_head = retired->next;
        if (!retired_head)
            retired_tail = NULL;
        retired->reclaim(retired);
    }
}

void sg_work_end(struct sg_work *work) {
    if (work->previous)
        work->previous->next = work->next;
    else
        oldest = work->next;
    if (work->next)
        work->next->previous = work->previous;
    else
        newest = work->previous;
    reclaim_unseen();
    if (waiters)
        pthread_cond_broadcast(&ended);
}

void sg_retire(struct sg_retired *retired, void (*reclaim)(struct sg_retired *)) {
    if (!oldest) {
        reclaim(retired);
        return;
    }
    retired->next = NULL;
    retired->epoch = ++epoch;
    retired->reclaim = reclaim;
    if (retired_tail)
        retired_tail->next = retired;
    else
        retired_head = retired;
    retired_tail = retired;
}

uint64_t sg_epoch_mark(void) {
    return ++epoch;
}

bool sg_epoch_passed(uint64_t mark) {
    return !oldest || oldest->epoch >= mark;
}

void sg_epoch_wait(uint64_t mark) {
    waiters++;
    while (!sg_epoch_passed(mark))
        sg_wait(&ended, 0);
    waiters--;
}
