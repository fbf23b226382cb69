/*
 * Worker threads: they run operations that no thread waits for.
 *
 * A program that queues a copy and waits for it is served fastest by its own thread, so the
 * queueing call must not pay for waking another. Hence one worker, the watcher, looks at the queues
 * on its own from time to time as long as there is activity, and takes only what was already there
 * at its last look. Only after a period of inactivity does it sleep until it is woken. The other
 * workers sleep until the watcher finds more to do than it can do itself.
 *
 * Whenever an operation is queued there is a watcher, or a worker that will look again once its
 * operation is done; a worker inside a host function does not count, because it may block.
 */
#include "base/thread.h"
#include "softgpu/stream/schedule.h"

#include <sys/prctl.h>
#include <unistd.h>

#define STEP_SHORTEST 50000u /* ns between looks: about what a sleep costs to be worth it */
#define STEP_LONGEST  400000u
#define STEP_QUIET    1000000u   /* when nothing has moved for QUIET_AFTER */
#define QUIET_AFTER   100000000u /* ns */
#define SLEEP_AFTER   3000000u   /* ns without work before the watcher sleeps until woken */
#define LATE_AFTER    5000000u   /* ns: late work runs after this if nothing else happens */

static pthread_cond_t watch = PTHREAD_COND_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static unsigned threads;  /* total */
static unsigned in_host;  /* of these, how many are inside host functions */
static unsigned sleeping; /* on `idle`, and not yet woken */
static unsigned woken;    /* signals on `idle` that were not consumed yet */
static unsigned starting; /* created, but not yet looking */
static bool watching;
static bool start_failed;

static void *worker(void *unused);

static void start_worker(void) {
    if (gm_thread_start(NULL, 0, worker, NULL) == 0) {
        threads++;
        starting++;
    } else if (!start_failed) {
        start_failed = true;
        sg_log(SG_LOG_ERROR, "no thread for queued work: it runs only when something waits for it");
    }
}

static void wake_another(void) {
    if (woken + starting > 0)
        return;
    if (sleeping > 0) {
        sleeping--;
        woken++;
        pthread_cond_signal(&idle);
        return;
    }
    unsigned limit = sg_config()->workers > 0 ? (unsigned)sg_config()->workers : 1;
    if (threads - in_host < limit)
        start_worker();
}

void sg_workers_later(void) {
    if (!watching)
        wake_another();
}

void sg_workers_now(void) {
    if (watching)
        pthread_cond_signal(&watch);
    else
        wake_another();
}

/* ---- What a worker takes -------------------------------------------------------------------- */

/* What a worker remembers between looks. */
struct view {
    uint64_t submissions, completions; /* at the last look */
    uint64_t changed;                  /* when they last changed */
    bool polls;                        /* something waits for a value in memory */
};

struct choice {
    struct sg_op *op;
    bool more; /* another operation could start */
};

static bool may_take(const struct view *view, const struct sg_op *op, bool late) {
    if (sg_schedule_kind() == SG_SCHEDULE_EAGER)
        return op->host_function || op->wanted || op->serial <= view->submissions;
    return late || op->wanted;
}

static struct choice choose(struct view *view, bool late) {
    struct choice choice = {0};
    uint64_t candidates = 0;
    view->polls = false;
    for (struct sg_stream *s = sg_working; s; s = s->work_next) {
        enum sg_head state = sg_head_state(s);
        view->polls |= state == SG_HEAD_POLL;
        bool turn = state == SG_HEAD_HOST && sg_host_turn(s) == s->head;
        bool startable = state == SG_HEAD_START || turn;
        if (!startable || !may_take(view, s->head, late))
            continue;
        choice.more = choice.op != NULL;
        candidates++;
        bool better = sg_schedule_kind() == SG_SCHEDULE_RANDOM
                          ? sg_schedule_draw(candidates) == 0
                          : choice.op && sg_schedule_before(s->head, choice.op);
        if (!choice.op || better)
            choice.op = s->head;
    }
    return choice;
}

static void run(struct choice choice) {
    bool host_function = choice.op->host_function;
    in_host += host_function;
    /* While this thread is away, another one must look after the rest. */
    if (choice.more || (host_function && sg_working->work_next))
        sg_workers_later();
    sg_thread()->in_host_function = host_function;
    sg_op_execute(choice.op);
    sg_thread()->in_host_function = false;
    in_host -= host_function;
}

/* ---- The thread ----------------------------------------------------------------------------- */

/* Exit handlers are running: whatever this thread would touch may be gone. It ends with the
 * process. */
static void stop_for_exit(void) {
    sg_unlock();
    for (;;)
        pause();
}

static void sleep_until_woken(void) {
    sleeping++;
    while (woken == 0 && !atomic_load(&sg_exiting))
        sg_wait(&idle, 0);
    if (woken > 0)
        woken--;
}

static uint64_t next_step(uint64_t step, const struct view *view, uint64_t quiet) {
    if (quiet > QUIET_AFTER)
        return STEP_QUIET;
    uint64_t longest = view->polls ? STEP_LONGEST / 2 : STEP_LONGEST;
    return step * 2 < longest ? step * 2 : longest;
}

/* Looks for operations and runs them until there is nothing left for this thread. */
static void work(struct view *view) {
    uint64_t step = STEP_SHORTEST;
    while (!atomic_load(&sg_exiting)) {
        uint64_t now = sg_now();
        if (view->submissions != sg_submissions || view->completions != sg_completions)
            view->changed = now;
        uint64_t quiet = now - view->changed;
        struct choice choice = choose(view, quiet >= LATE_AFTER);
        view->submissions = sg_submissions;
        view->completions = sg_completions;
        if (choice.op) {
            bool late = quiet >= LATE_AFTER;
            run(choice);
            /* Completions made by a worker itself do not show that the program is active. */
            if (late && sg_submissions == view->submissions)
                view->completions = sg_completions;
            step = STEP_SHORTEST;
            continue;
        }
        if (watching || (!sg_working && quiet > SLEEP_AFTER))
            return;
        watching = true;
        sg_wait(&watch, step);
        watching = false;
        step = next_step(step, view, quiet);
    }
}

static void *worker(void *unused) {
    (void)unused;
    prctl(PR_SET_NAME, "softgpu");
    prctl(PR_SET_TIMERSLACK, 1000ul); /* ns; the default would double the shortest step */
    struct view view = {0};
    sg_lock();
    starting--;
    for (;;) {
        /* The counts of the last look are kept: newly queued operations are left to a waiter for
         * one step. */
        view.changed = sg_now();
        work(&view);
        if (atomic_load(&sg_exiting))
            stop_for_exit();
        sleep_until_woken();
    }
    return NULL;
}
