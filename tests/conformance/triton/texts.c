/* The texts, read by the assembler: a bundle has no folder of fixtures. */
#include "triton/texts.h"

#define FOLDER GPUMEM_SOURCE_DIR "/tests/fixtures/triton/"
#define TRITON_TEXT_DEFINED(name, file)                                                            \
    __asm__(".section .rodata.triton_" #name ",\"a\"\n"                                            \
            ".globl triton_" #name "\n"                                                            \
            ".type triton_" #name ", %object\n"                                                    \
            "triton_" #name ":\n"                                                                  \
            ".incbin \"" FOLDER file ".ptx\"\n"                                                    \
            ".byte 0\n"                                                                            \
            ".size triton_" #name ", . - triton_" #name "\n"                                       \
            ".previous\n");
TRITON_TEXTS(TRITON_TEXT_DEFINED)
