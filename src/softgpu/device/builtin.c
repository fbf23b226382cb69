/* profiles/h200.ini itself, included by the assembler: the file remains the only copy of its facts.
 * The path is relative to src/, which is on the include path that compilers pass to the assembler.
 */
#include "softgpu/device/profile.h"

__asm__(".pushsection .rodata\n"
        ".hidden sg_profile_h200\n"
        ".globl sg_profile_h200\n"
        "sg_profile_h200:\n"
        ".incbin \"../profiles/h200.ini\"\n"
        ".byte 0\n"
        ".popsection\n");

extern const char sg_profile_h200[] __attribute__((visibility("hidden")));

const char *sg_profile_builtin(void) {
    return sg_profile_h200;
}
