/* per_thread.cu: in the calling thread's own default stream. */
#pragma once
void per_thread_add(int *value, int what);
cudaError_t per_thread_synchronize();
