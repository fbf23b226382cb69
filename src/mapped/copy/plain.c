/* Copies by machine words, for every machine. */
#include "mapped/copy/edge.h"
#include "mapped/copy/kernel.h"

#define WORD 8
#define LINE 64

void gm_store_plain(unsigned char *dst, const unsigned char *src, size_t bytes) {
    size_t done = gm_store_head(dst, src, bytes, WORD);
    for (; bytes - done >= LINE; done += LINE)
        for (size_t i = 0; i < LINE; i += WORD)
            gm_store_64(dst + done + i, src + done + i);
    for (; bytes - done >= WORD; done += WORD)
        gm_store_64(dst + done, src + done);
    gm_store_tail(dst + done, src + done, bytes - done, WORD);
}

void gm_load_plain(unsigned char *dst, const unsigned char *src, size_t bytes) {
    size_t done = gm_load_head(dst, src, bytes, WORD);
    for (; bytes - done >= LINE; done += LINE)
        for (size_t i = 0; i < LINE; i += WORD)
            gm_load_64(dst + done + i, src + done + i);
    for (; bytes - done >= WORD; done += WORD)
        gm_load_64(dst + done, src + done);
    gm_load_tail(dst + done, src + done, bytes - done, WORD);
}
