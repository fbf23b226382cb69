#include "arena.h"

/* The example is a program; its main is not wanted here. */
int main_of_the_example(int argc, char **argv);
#define main main_of_the_example
#include "../../examples/arena.c"
#undef main

gpumem_status make_arena(gpumem_resource *upstream, size_t block_bytes,
                         gpumem_resource **resource) {
    return arena_create(upstream, block_bytes, resource);
}
