/*
 * Images are read and programs are made in an application's thread, whose floating-point modes are
 * its own: numbers of a text must not depend on them, and traps that it has enabled are not for it
 * to get from here.
 */
#ifndef SG_IMAGE_FLOAT_MODES_H
#define SG_IMAGE_FLOAT_MODES_H

#include <fenv.h>

/* Round to nearest, keep subnormal numbers, trap nothing; `own` receives what was set. */
static inline void sg_float_modes_set(fenv_t *own) {
    fegetenv(own);
    fesetenv(FE_DFL_ENV);
#if defined __x86_64__
    __builtin_ia32_ldmxcsr(0x1f80); /* not every libc resets the flushing of subnormal numbers */
#endif
}

/* Sets those of the thread again, and its flags. */
static inline void sg_float_modes_restore(const fenv_t *own) {
    fesetenv(own);
}

#endif
