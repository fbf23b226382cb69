/*
 * Option structs, filled in at the call. Each struct has a macro named after it:
 *
 *     gpumem_buffer_allocate(resource, bytes, GPUMEM_BUFFER_OPTIONS(.stream = stream), &buffer);
 *
 * It yields a pointer to a struct with `size` set, the named members as written and the others
 * zero. It needs designated initialisers: C99, or C++20, where they must follow the order of the
 * struct. Earlier C++ writes
 *
 *     gpumem_buffer_options options = {};
 *     options.size = sizeof options;
 *     options.stream = stream;
 *
 * In C the struct lives until the end of the enclosing block; in C++ until the end of the full
 * expression, so there the macro belongs in the argument list of the call.
 */
#ifndef GPUMEM_OPTIONS_H
#define GPUMEM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h> /* size_t, for the structs' `size` */

#ifdef __cplusplus

/* Omitted members are zero on purpose; without this g++ would warn about each, since its
 * -Wmissing-field-initializers covers designated initialisers. */
#ifdef __GNUC__
#pragma GCC system_header
#endif

#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::lifetimebound)
#define GPUMEM_LIFETIME_BOUND [[clang::lifetimebound]]
#endif
#endif
#ifndef GPUMEM_LIFETIME_BOUND
#define GPUMEM_LIFETIME_BOUND
#endif

/* The address of a temporary, which C++'s own & refuses. */
template <typename T>
constexpr const T *gpumem_options_address(const T &&options GPUMEM_LIFETIME_BOUND) noexcept {
    return &options;
}

#define GPUMEM_OPTIONS(type, ...) (gpumem_options_address(type{.size = sizeof(type), __VA_ARGS__}))

#else

#define GPUMEM_OPTIONS(type, ...) (&(type){.size = sizeof(type), __VA_ARGS__})

#endif

#endif
