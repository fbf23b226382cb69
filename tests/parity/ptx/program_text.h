/* Random programs: see program_text.c. */
#ifndef PTX_PROGRAM_TEXT_H
#define PTX_PROGRAM_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#define PTX_PROGRAM_THREADS 96
#define PTX_PROGRAM_BLOCKS  2

/*
 * The PTX of a seed; the caller frees it. Its entry "k" takes the address of PTX_PROGRAM_THREADS *
 * PTX_PROGRAM_BLOCKS words, and 6 more for each block. Statements whose numbers are set in drop[]
 * are left out; all others are unchanged. *statements: the number of statements, which are counted
 * from 1.
 */
char *ptx_program_text(uint64_t seed, const bool *drop, unsigned drops, unsigned *statements);

#endif
