/*
 * Option structs, filled where a call is made. Each struct has a macro of its own name:
 *
 *     gpumem_buffer_allocate(resource, bytes, GPUMEM_BUFFER_OPTIONS(.stream = stream), &buffer);
 *
 * It gives a pointer to a struct whose `size` is set, whose named members are as written and whose
 * others are zero. It needs designated initialisers: C99, or C++20, where they must stand in the
 * order of the struct. Earlier C++ writes
 *
 *     gpumem_buffer_options options = {};
 *     options.size = sizeof options;
 *     options.stream = stream;
 *
 * In C the struct lives until the end of the enclosing block; in C++ until the end of the full
 * expression, so there the macro belongs into the argument list of the call.
 */
#ifndef GPUMEM_OPTIONS_H
#define GPUMEM_OPTIONS_H

#include <stddef.h> /* of the structs' `size` */

#ifdef __cplusplus

/* Members that are left out are meant to be zero; without this g++ would warn of each, since its
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
