/* A library with kernels of its own is opened, used and closed, again and again, beside the program's kernels. */
#include "check.h"

#include <dlfcn.h>
#include <string>

__device__ int mine = 1;

__global__ void own(int *out) {
    *out = ++mine;
}

int main(int, char **words) {
    typedef int (*run)(int, int *);
    const std::string path = std::string(words[0]) + ".kernels.so";
    int result = 0, *device = to_device<int>(nullptr, 1);
    for (int round = 1; round <= 4; round++) {
        void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        run function = library ? (run)dlsym(library, "run") : nullptr;
        if (!function) {
            printf("%s\n", dlerror());
            return 1;
        }
        int error = function(round * 10, &result);
        printf("round %d: error %d, result %d\n", round, error, result);
        right("its variable is new each time", error == 0 && result == round * 10 + 100 + 1);
        error = function(round * 10, &result);
        right("and kept while it is open", error == 0 && result == round * 10 + 100 + 2);
        own<<<1, 1>>>(device);
        MUST(cudaGetLastError());
        if (dlclose(library))
            return 1;
        to_host(&result, device, 1);
        printf("the program's own: %d\n", result);
        right("which goes on", result == 1 + round);
    }
    MUST(cudaFree(device));
    return 0;
}
