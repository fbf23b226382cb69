/* A wrapper that calls the program when memory runs out. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/object/reclaim.h"
#include "memory/object/resource.h"
#include "wrap/wrapper.h"

#include <stdlib.h>

#define DEFAULT_RETRIES 8

struct failure_callback_resource {
    struct gm_wrapper wrapper;
    gpumem_resource *resource;
    gpumem_failure_callback_fn fn;
    void *user;
    unsigned maximum_retries;
};

/* An allocation or a growth. */
struct step {
    const gpumem_request *request; /* NULL: a growth */
    gpumem_allocation *allocation;
    gpumem_allocation before; /* the initial state of each try */
    size_t bytes;             /* to grow to */
    CUstream stream;
};

static gpumem_status try_once(gpumem_resource *up, const struct step *step) {
    *step->allocation = step->before;
    if (step->request)
        return up->ops.allocate(up->user, step->request, step->allocation);
    return up->ops.resize(up->user, step->allocation, step->bytes, step->stream);
}

static size_t bytes_of(const struct step *step) {
    return step->request ? step->request->bytes : step->bytes - step->before.bytes;
}

static gpumem_status try_hard(gpumem_resource *up, const struct step *step) {
    struct gm_reclaim reclaim = gm_reclaim_for(up, bytes_of(step));
    gpumem_status status = try_once(up, step);
    while (gm_reclaim_more(&reclaim, status))
        status = try_once(up, step);
    return status;
}

/* Whether this thread is already in the callback: failures inside it do not call it again. */
static _Thread_local int answering;

static gpumem_failure_answer ask(const struct failure_callback_resource *f, const struct step *step,
                                 gpumem_status status, unsigned attempt) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    const gpumem_allocation_failure failure = {
        .size = sizeof failure,
        .resource = f->resource,
        .status = status,
        .message = saved.message,
        .bytes = bytes_of(step),
        .stream = step->stream,
        .attempt = attempt,
        .attempts_left = f->maximum_retries - attempt + 1,
    };
    struct gm_current current;
    int entered = gm_current_enter(&current, f->resource->device) == GPUMEM_OK;
    answering = 1;
    gpumem_failure_answer answer = f->fn(f->user, &failure);
    answering = 0;
    if (entered)
        gm_current_leave(&current);
    gm_error_restore(&saved);
    return answer;
}

static gpumem_status run(const struct failure_callback_resource *f, const struct step *step) {
    gpumem_status status = try_hard(f->wrapper.upstream, step);
    for (unsigned attempt = 1; gm_ran_out(status) && !answering && attempt <= f->maximum_retries;
         attempt++) {
        if (ask(f, step, status, attempt) != GPUMEM_FAILURE_RETRY)
            break;
        status = try_hard(f->wrapper.upstream, step);
    }
    return status;
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    return run(user, &(struct step){.request = request,
                                    .allocation = allocation,
                                    .before = *allocation,
                                    .stream = request->stream});
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    const struct failure_callback_resource *f = user;
    f->wrapper.upstream->ops.deallocate(f->wrapper.upstream->user, allocation, stream);
}

static gpumem_status resize(void *user, gpumem_allocation *allocation, size_t bytes,
                            CUstream stream) {
    const struct step step = {
        .allocation = allocation, .before = *allocation, .bytes = bytes, .stream = stream};
    const struct failure_callback_resource *f = user;
    /* A shrink runs under the buffer's lock, and requests nothing. */
    return bytes > allocation->bytes ? run(f, &step) : try_once(f->wrapper.upstream, &step);
}

static const struct gm_wrapper_ops own = {
    .kind = "failure_callback",
    .allocate = allocate,
    .deallocate = deallocate,
    .resize = resize,
    .destroy = free,
    .transparent = 1,
};

gpumem_status gpumem_failure_callback_resource_create(gpumem_resource *upstream,
                                                      const gpumem_failure_callback_options *given,
                                                      gpumem_resource **resource) {
    GM_UNCANCELLED;
    gpumem_failure_callback_options options;
    GM_CHECK(upstream, "gpumem_failure_callback_resource_create");
    GM_REQUIRE(resource, "gpumem_failure_callback_resource_create: resource is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_failure_callback_options, given, &options);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(options.fn, "gpumem_failure_callback_resource_create: fn is NULL");
    struct failure_callback_resource *f = calloc(1, sizeof *f);
    if (!f)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    f->fn = options.fn;
    f->user = options.user;
    f->maximum_retries = options.maximum_retries ? options.maximum_retries : DEFAULT_RETRIES;
    gpumem_resource *made;
    status = gm_wrapper_make(&f->wrapper, upstream, &own, &made);
    if (status != GPUMEM_OK)
        return status;
    /* After GIVE_UP the library does not try again by itself. */
    made->reclaims = 1;
    *resource = f->resource = made;
    return GPUMEM_OK;
}
