#include "wrap/inner_buffer.h"

void gm_inner_free(gpumem_buffer *from, CUstream stream, int ordered) {
    pthread_mutex_lock(&from->lock);
    from->wait_count = 0;
    pthread_mutex_unlock(&from->lock);
    (void)gpumem_buffer_free(from, ordered ? stream : NULL);
}
