/* A user's program of vkgdr, which needs no GPU to be refused. Compiles as C and as C++. */
#include <stdlib.h>
#include <string.h>
#include <vkgdr.h>

int main(void) {
    vkgdr_t opened = vkgdr_open(0, 8);
    char *why = vkgdr_last_error();
    int wrong = opened || !why || !strstr(why, "unknown flags 0x8");
    free(why);
    return wrong;
}
