#include "share/refusal.h"

#include "base/printable.h"

#include <string.h>

/* What is left of a message beside the words before it: 240 printable bytes are shown whole. */
#define SHOWN_BYTES 400

void gm_refusal_write(char text[GM_REFUSAL_BYTES]) {
    (void)gm_printable(gpumem_last_error()->message, text, GM_REFUSAL_BYTES);
}

gpumem_status gm_refusal_read(int32_t status, const char text[GM_REFUSAL_BYTES]) {
    char ended[GM_REFUSAL_BYTES], shown[SHOWN_BYTES];
    memcpy(ended, text, sizeof ended);
    ended[sizeof ended - 1] = 0;
    (void)gm_printable(ended, shown, sizeof shown);
    return gm_fail(GPUMEM_ERROR_PEER, "the other process refused (%s): %s",
                   gpumem_status_name((gpumem_status)status), shown);
}
