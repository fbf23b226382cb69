/* The words with which one process refuses what another sent: a text in a message of fixed size. */
#ifndef GM_SHARE_REFUSAL_H
#define GM_SHARE_REFUSAL_H

#include "base/error.h"

#include <stdint.h>

/* Part of the protocols. */
#define GM_REFUSAL_BYTES 240

/* This thread's last message, as much of it as there is room for. */
void gm_refusal_write(char text[GM_REFUSAL_BYTES]);

/* PEER, with the other side's status and words. It chose them, and they go to logs and terminals
 * here: whatever is not printable is shown as gm_printable does. */
gpumem_status gm_refusal_read(int32_t status, const char text[GM_REFUSAL_BYTES]);

#endif
