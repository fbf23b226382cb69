/*
 * How tests make and end objects of the library, where nothing may fail. What is made on a device
 * is made on `device`, a variable of whoever includes this.
 *
 *     gpumem_resource *memory = NEW_VIRTUAL(.cache_bytes = 64 * MIB);
 *     gpumem_resource *cache = NEW_CACHING(memory);
 *     gpumem_buffer *buffer = NEW_BUFFER_WITH(cache, 2 * MIB, .stream = stream);
 *     ...
 *     DESTROY(buffer, cache, memory);
 *
 * A macro without fields passes no options.
 */
#ifndef TESTS_OBJECTS_H
#define TESTS_OBJECTS_H

#include "at_once.h"
#include "checks.h"

/* What a function gives through its last parameter. It must give something. */
#define MADE(type, create, ...) GIVEN_BY(type, #create, OK(create(__VA_ARGS__, &given_)))

/* NULL where there are no fields. */
#define OPTIONS_IF_ANY(options, ...) (sizeof #__VA_ARGS__ > 1 ? options(__VA_ARGS__) : NULL)
#define NEW_RESOURCE(kind, options, ...)                                                           \
    MADE(gpumem_resource *, gpumem_##kind##_resource_create, device,                               \
         OPTIONS_IF_ANY(options, __VA_ARGS__))
#define NEW_POOL(...)    NEW_RESOURCE(device_pool, GPUMEM_DEVICE_POOL_OPTIONS, __VA_ARGS__)
#define NEW_PINNED(...)  NEW_RESOURCE(pinned, GPUMEM_PINNED_OPTIONS, __VA_ARGS__)
#define NEW_MANAGED(...) NEW_RESOURCE(managed, GPUMEM_MANAGED_OPTIONS, __VA_ARGS__)
#define NEW_VIRTUAL(...) NEW_RESOURCE(virtual, GPUMEM_VIRTUAL_OPTIONS, __VA_ARGS__)
#define NEW_MAPPED(...)  NEW_RESOURCE(mapped, GPUMEM_MAPPED_OPTIONS, __VA_ARGS__)

/* Over others. */
#define NEW_OVER(kind, upstream, ...)                                                              \
    MADE(gpumem_resource *, gpumem_##kind##_resource_create, upstream, __VA_ARGS__)
#define NEW_LIMIT(upstream, bytes) NEW_OVER(limiting, upstream, bytes)
#define NEW_CACHING(upstream)      NEW_OVER(caching, upstream, NULL)
#define NEW_CACHING_WITH(upstream, ...)                                                            \
    NEW_OVER(caching, upstream, GPUMEM_CACHING_OPTIONS(__VA_ARGS__))
#define NEW_LOGGING(upstream, ...) NEW_OVER(logging, upstream, GPUMEM_LOGGING_OPTIONS(__VA_ARGS__))
#define NEW_TRACE(upstream, ...)   NEW_OVER(trace, upstream, GPUMEM_TRACE_OPTIONS(__VA_ARGS__))
#define NEW_TRACKING(upstream, ...)                                                                \
    NEW_OVER(tracking, upstream, GPUMEM_TRACKING_OPTIONS(__VA_ARGS__))
#define NEW_ALIGNMENT(upstream, ...)                                                               \
    NEW_OVER(alignment, upstream, GPUMEM_ALIGNMENT_OPTIONS(__VA_ARGS__))
#define NEW_FAILURE(upstream, ...)                                                                 \
    NEW_OVER(failure_callback, upstream, GPUMEM_FAILURE_CALLBACK_OPTIONS(__VA_ARGS__))
#define NEW_FALLBACK(first, second) NEW_OVER(fallback, first, second)

#define NEW_BUFFER(from, bytes) MADE(gpumem_buffer *, gpumem_buffer_allocate, from, bytes, NULL)
#define NEW_BUFFER_WITH(from, bytes, ...)                                                          \
    MADE(gpumem_buffer *, gpumem_buffer_allocate, from, bytes, GPUMEM_BUFFER_OPTIONS(__VA_ARGS__))
#define NEW_VIEW(of, offset, bytes) MADE(gpumem_buffer *, gpumem_buffer_view, of, offset, bytes)
#define NEW_EXPORT(of)              MADE(gpumem_export *, gpumem_export_create, of)
#define NEW_STREAM()                MADE(CUstream, gpumem_stream_create, device, NULL)
#define NEW_EVENT()                 MADE(CUevent, gpumem_event_create, device, NULL)

static inline gpumem_resource *new_own_pool(void) {
    return NEW_POOL(.pool = GPUMEM_POOL_OWN);
}

static inline gpumem_buffer *allocate_on(gpumem_resource *from, size_t bytes, CUstream stream) {
    return NEW_BUFFER_WITH(from, bytes, .stream = stream);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static inline gpumem_status destroy_buffer(gpumem_device *on, gpumem_buffer *buffer) {
    return gpumem_buffer_free(buffer, NULL);
}

static inline gpumem_status destroy_resource(gpumem_device *on, gpumem_resource *resource) {
    return gpumem_resource_destroy(resource);
}

static inline gpumem_status destroy_export(gpumem_device *on, gpumem_export *exported) {
    return gpumem_export_destroy(exported);
}

static inline gpumem_status destroy_physical(gpumem_device *on, gpumem_physical *physical) {
    return gpumem_physical_destroy(physical);
}

static inline gpumem_status destroy_reservation(gpumem_device *on, gpumem_reservation *range) {
    return gpumem_reservation_destroy(range);
}

static inline gpumem_status destroy_mapping(gpumem_device *on, gpumem_mapping *mapping) {
    return gpumem_mapping_destroy(mapping);
}

/* What a header before this one has more: a type, and the function that ends such an object. */
#ifndef DESTROY_MORE
#define DESTROY_MORE
#endif

/* Buffers are freed on the NULL stream. */
#define DESTROY_ONE(object)                                                                        \
    check_status(_Generic((object), DESTROY_MORE gpumem_buffer *                                   \
                          : destroy_buffer, gpumem_resource *                                      \
                          : destroy_resource, gpumem_export *                                      \
                          : destroy_export, gpumem_physical *                                      \
                          : destroy_physical, gpumem_reservation *                                 \
                          : destroy_reservation, gpumem_mapping *                                  \
                          : destroy_mapping, CUstream                                              \
                          : gpumem_stream_destroy, CUevent                                         \
                          : gpumem_event_destroy)(device, (object)),                               \
                 GPUMEM_OK, "the end of " #object, __FILE__, __LINE__)

/* Ends those of an array. */
#define DESTROY_EACH(objects, count)                                                               \
    do {                                                                                           \
        for (size_t each_ = 0; each_ < (size_t)(count); each_++)                                   \
            DESTROY_ONE((objects)[each_]);                                                         \
    } while (0)

/* Ends up to eight objects, in this order. */
#define DESTROY(...) DESTROY_COUNTED(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)(__VA_ARGS__)
/* Which of the following it is. */
#define DESTROY_COUNTED(a, b, c, d, e, f, g, h, count, ...) DESTROY_##count

#define DESTROY_1(a)      DESTROY_ONE(a)
#define DESTROY_2(a, ...) (DESTROY_ONE(a), DESTROY_1(__VA_ARGS__))
#define DESTROY_3(a, ...) (DESTROY_ONE(a), DESTROY_2(__VA_ARGS__))
#define DESTROY_4(a, ...) (DESTROY_ONE(a), DESTROY_3(__VA_ARGS__))
#define DESTROY_5(a, ...) (DESTROY_ONE(a), DESTROY_4(__VA_ARGS__))
#define DESTROY_6(a, ...) (DESTROY_ONE(a), DESTROY_5(__VA_ARGS__))
#define DESTROY_7(a, ...) (DESTROY_ONE(a), DESTROY_6(__VA_ARGS__))
#define DESTROY_8(a, ...) (DESTROY_ONE(a), DESTROY_7(__VA_ARGS__))

#endif
