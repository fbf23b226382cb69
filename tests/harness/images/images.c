/* The bytes of the images, which the assembler reads from IMAGE_FOLDER. */
#include "images.h"

/* Aligned to 8 bytes, as readers of ELF require. */
#define IMAGE_DEFINED(name, size, file)                                                            \
    __asm__(".section .rodata.image_" #name ",\"a\"\n"                                             \
            ".balign 8\n"                                                                          \
            ".globl image_" #name "\n"                                                             \
            ".type image_" #name ", %object\n"                                                     \
            ".size image_" #name ", " #size "\n"                                                   \
            "image_" #name ":\n"                                                                   \
            ".incbin \"" IMAGE_FOLDER "/" file "\"\n"                                              \
            ".previous\n");
IMAGES(IMAGE_DEFINED)
