/* Whole or nothing: sweeps over what is done with buffers that exist. Whichever driver call fails,
 * an operation that reports an error has left no hold, no tensor and no buffer behind. */
#include "library_sweeps.h"

#include <gpumem/dlpack_abi.h>

static gpumem_resource *memory;

struct subject {
    gpumem_buffer *buffer; /* 4 MiB */
    gpumem_buffer *made;
    CUdeviceptr pointer; /* memory of nobody's resource */
    CUstream stream;
    gpumem_location location;
    DLManagedTensorVersioned *tensor;
    int deleted;
};

static void sweep(const char *name, int (*act)(void *), void (*undo)(void *),
                  struct subject *subject) {
    sweep_act(name, act, undo, subject);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_release(subject->buffer)); /* nobody holds it */
}

/* ---- Views, attributes, layouts -------------------------------------------------------------- */

static int view_and_free(void *user) {
    struct subject *s = user;
    int result = (int)gpumem_buffer_view(s->buffer, KIB, KIB, &s->made);
    if (result)
        return result;
    result = (int)gpumem_buffer_fill(s->made, 0, KIB, 1, s->stream);
    OK(gpumem_buffer_free(s->made, s->stream));
    return result;
}

static int ask_attributes(void *user) {
    struct subject *s = user;
    gpumem_buffer_attributes attributes = {.size = sizeof attributes};
    int result = (int)gpumem_buffer_get_attributes(s->buffer, &attributes);
    if (!result)
        assert_int_equal(attributes.location, s->location);
    return result;
}

static unsigned told;

static void listen(void *user, const gpumem_watch_event *event) {
    told += event->base % (2 * MIB) == 0 && event->bytes % (2 * MIB) == 0;
}

static int shrink_watched(void *user) {
    struct subject *s = user;
    gpumem_watch *watch;
    int result = (int)gpumem_buffer_watch(s->buffer, listen, NULL, &watch);
    if (result)
        return result;
    told = 0;
    size_t before = gpumem_buffer_committed(s->buffer);
    result = (int)gpumem_buffer_shrink(s->buffer, MIB, NULL);
    if (gpumem_buffer_committed(s->buffer) != before)
        assert_int_equal(told, 1); /* never without a word */
    OK(gpumem_watch_destroy(watch));
    return result;
}

static void grow_back(void *user) {
    struct subject *s = user;
    settle(user);
    OK(gpumem_buffer_grow(s->buffer, 4 * MIB, NULL));
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static int copy_in_every_form(void *user) {
    struct subject *s = user;
    const uint32_t pattern = 0x01020304;
    const gpumem_rows rows = {.width = 16, .count = 4, .to_pitch = 32, .from_pitch = 64};
    const gpumem_buffer_copy_item items[] = {{s->buffer, 0, s->buffer, MIB, KIB},
                                             {s->buffer, KIB, s->buffer, MIB, KIB}};
    int result = (int)gpumem_buffer_fill_pattern(s->buffer, 0, KIB, &pattern, 4, s->stream);
    if (!result)
        result = (int)gpumem_buffer_copy_2d(s->buffer, 0, s->buffer, MIB, &rows, s->stream);
    if (!result)
        result = (int)gpumem_buffer_copy_batch(items, 2, s->stream, NULL);
    if (!result)
        result = (int)copy_now(s->buffer, 0, s->buffer, MIB, KIB, s->stream);
    return result;
}

/* ---- Foreign memory -------------------------------------------------------------------------- */

static void deleter(void *user, CUdeviceptr pointer, size_t bytes, CUstream stream) {
    struct subject *s = user;
    assert_int_equal(pointer, s->pointer);
    s->deleted++;
}

static int take_over(void *user) {
    struct subject *s = user;
    s->deleted = 0;
    int result = (int)gpumem_buffer_from_pointer(
        device, s->pointer, KIB, GPUMEM_FOREIGN_OPTIONS(.deleter = deleter, .user = s), &s->made);
    if (result)
        assert_int_equal(s->deleted, 0);
    return result;
}

static void give_up(void *user) {
    struct subject *s = user;
    OK(gpumem_buffer_free(s->made, NULL));
    settle(user);
    assert_int_equal(s->deleted, 1);
}

/* The deleter comes once, however its streams are asked. */
static int take_over_and_free(void *user) {
    struct subject *s = user;
    int result = take_over(user);
    if (!result)
        OK(gpumem_buffer_free(s->made, s->stream));
    return result;
}

static void all_was_given_back(void *user) {
    struct subject *s = user;
    settle(user);
    assert_int_equal(s->deleted, 1);
}

/* ---- DLPack ---------------------------------------------------------------------------------- */

static int make_tensor(void *user) {
    struct subject *s = user;
    s->tensor = NULL;
    int result = (int)gpumem_buffer_to_dlpack(s->buffer, GPUMEM_DLPACK_OPTIONS(.stream = s->stream),
                                              &s->tensor);
    if (result)
        assert_null(s->tensor);
    return result;
}

static void delete_tensor(void *user) {
    struct subject *s = user;
    s->tensor->deleter(s->tensor);
    settle(user);
}

static int take_tensor(void *user) {
    struct subject *s = user;
    DLManagedTensorVersioned *tensor;
    OK(gpumem_buffer_to_dlpack(s->buffer, NULL, &tensor));
    int result = (int)gpumem_buffer_from_dlpack(device, tensor, NULL, &s->made);
    if (result)
        tensor->deleter(tensor); /* it is still ours */
    else
        OK(gpumem_buffer_free(s->made, NULL));
    return result;
}

/* The tensor itself is made without a fault; only its being taken is swept. */
static DLManagedTensorVersioned *given;

static int take_given(void *user) {
    struct subject *s = user;
    return (int)gpumem_buffer_from_dlpack(device, given, NULL, &s->made);
}

static void give_again(void *user) {
    struct subject *s = user;
    OK(gpumem_buffer_free(s->made, NULL));
    settle(user);
    OK(gpumem_buffer_to_dlpack(s->buffer, NULL, &given));
}

/* ---- The sweeps ------------------------------------------------------------------------------ */

static struct subject make_subject(void) {
    CUcontext before;
    struct subject subject = {.buffer = NEW_BUFFER(memory, 4 * MIB), .stream = NEW_STREAM()};
    OK(gpumem_buffer_use(subject.buffer, subject.stream));
    cu->cuCtxPushCurrent_v2(gpumem_device_context(device));
    OK_CU(cu->cuMemAlloc_v2(&subject.pointer, KIB));
    cu->cuCtxPopCurrent_v2(&before);
    /* What is made once, the device's own resources, is made. */
    subject.made = NEW_VIEW(subject.buffer, 0, 1);
    OK(gpumem_buffer_free(subject.made, NULL));
    return subject;
}

static void end_subject(struct subject *subject) {
    CUcontext before;
    OK(gpumem_buffer_free(subject->buffer, NULL));
    settle(subject);
    OK(gpumem_stream_destroy(device, subject->stream));
    cu->cuCtxPushCurrent_v2(gpumem_device_context(device));
    OK_CU(cu->cuMemFree_v2(subject->pointer));
    cu->cuCtxPopCurrent_v2(&before);
}

TEST(views_are_all_or_nothing) {
    struct subject subject = make_subject();
    sweep("view, fill, free", view_and_free, NULL, &subject);
    sweep("attributes", ask_attributes, NULL, &subject);
    end_subject(&subject);
}

/* Where host memory is only its handle tells, which is retained for the question. */
TEST(querying_the_location_of_host_memory_leaks_no_handle) {
    struct subject subject = {.location = GPUMEM_LOCATION_HOST_NUMA};
    gpumem_resource *resource = NEW_VIRTUAL(.location = GPUMEM_LOCATION_HOST_NUMA);
    subject.buffer = NEW_BUFFER(resource, MIB);
    sweep("attributes of host memory", ask_attributes, NULL, &subject);
    OK(gpumem_buffer_free(subject.buffer, NULL));
    settle(&subject);
    (void)gpumem_resource_destroy(resource);
}

TEST(shrinking_a_watched_buffer_is_all_or_nothing) {
    struct subject subject = make_subject();
    sweep("shrink what is watched", shrink_watched, grow_back, &subject);
    end_subject(&subject);
}

TEST(copies_of_every_form_are_all_or_nothing) {
    struct subject subject = make_subject();
    sweep("copies in every form", copy_in_every_form, NULL, &subject);
    end_subject(&subject);
}

TEST(wrapping_foreign_memory_is_all_or_nothing) {
    struct subject subject = make_subject();
    sweep("a buffer from a pointer", take_over, give_up, &subject);
    sweep("and its end", take_over_and_free, all_was_given_back, &subject);
    end_subject(&subject);
}

TEST(dlpack_conversions_are_all_or_nothing) {
    struct subject subject = make_subject();
    sweep("to DLPack", make_tensor, delete_tensor, &subject);
    OK(gpumem_buffer_to_dlpack(subject.buffer, NULL, &given));
    sweep_act("from DLPack", take_given, give_again, &subject);
    given->deleter(given);
    assert_int_equal(take_tensor(&subject), 0);
    settle(&subject);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_release(subject.buffer));
    end_subject(&subject);
}

static int begin(void **state) {
    if (begin_sweeps(state) != 0)
        return -1;
    memory = NEW_VIRTUAL(.maximum_chunk_bytes = 2 * MIB, .exact_growth = 1);
    return 0;
}

static int end(void **state) {
    (void)gpumem_resource_destroy(memory);
    return end_sweeps(state);
}

ALL_TESTS(begin, end);
