#include "softgpu/launch/crew.h"

#include "base/thread.h"
#include "softgpu/core/config.h"

#include <sys/prctl.h>

/* The crew helps one grid at a time. No other lock is taken while this one is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, left = PTHREAD_COND_INITIALIZER;
static struct {
    struct sg_grid *grid; /* NULL: there is nothing to do */
    uint64_t budget;
    unsigned wanted;  /* how many more may come */
    unsigned inside;  /* those that advance it now */
    unsigned threads; /* those that exist */
    bool failed;      /* no more can be started */
} crew;

static void *help(void *unused) {
    (void)unused;
    prctl(PR_SET_NAME, "softgpu-kernel");
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!crew.wanted)
            pthread_cond_wait(&work, &lock);
        crew.wanted--;
        crew.inside++;
        struct sg_grid *grid = crew.grid;
        uint64_t budget = crew.budget;
        pthread_mutex_unlock(&lock);
        sg_grid_advance(grid, budget);
        pthread_mutex_lock(&lock);
        if (--crew.inside == 0)
            pthread_cond_signal(&left);
    }
    return NULL;
}

/* With the crew's lock. */
static void call(struct sg_grid *grid, uint64_t budget, unsigned helpers) {
    while (crew.threads < helpers && !crew.failed) {
        crew.failed = gm_thread_start(NULL, 0, help, NULL) != 0;
        crew.threads += !crew.failed;
    }
    crew.grid = grid;
    crew.budget = budget;
    crew.wanted = helpers < crew.threads ? helpers : crew.threads;
    for (unsigned i = 0; i < crew.wanted; i++)
        pthread_cond_signal(&work);
}

/* Calls off the threads that have not come yet. */
static void dismiss(void) {
    pthread_mutex_lock(&lock);
    crew.wanted = 0;
    while (crew.inside)
        pthread_cond_wait(&left, &lock);
    crew.grid = NULL;
    pthread_mutex_unlock(&lock);
}

unsigned sg_crew_size(void) {
    const struct sg_config *config = sg_config();
    return config->schedule == SG_SCHEDULE_EAGER ? (unsigned)config->kernel_workers : 1;
}

bool sg_crew_advance(struct sg_grid *grid, uint64_t budget) {
    unsigned room = sg_grid_room(grid);
    if (room < 2)
        return sg_grid_advance(grid, budget);
    pthread_mutex_lock(&lock);
    bool mine = !crew.grid;
    if (mine)
        call(grid, budget, room - 1);
    pthread_mutex_unlock(&lock);
    bool over = sg_grid_advance(grid, budget);
    if (!mine)
        return over;
    dismiss();
    return sg_grid_over(grid);
}
