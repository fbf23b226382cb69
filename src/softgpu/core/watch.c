#include "softgpu/core/watch.h"

atomic_uint sg_watched = SG_WATCH_CONFIGURE;

void sg_watch(unsigned bits, bool on) {
    if (on)
        atomic_fetch_or(&sg_watched, bits);
    else
        atomic_fetch_and(&sg_watched, ~bits);
}
