/* A user's program in C++20, over gpumem.hpp: needs no driver. */
#include <gpumem/gpumem.hpp>
#include <cstdio>

int main() {
    const gpumem::result<gpumem::library> library =
        gpumem::library::try_open({.driver = "/no/such/driver.so"});
    if (library || library.error().status() != GPUMEM_ERROR_NO_DRIVER)
        return 1;
    std::printf("%s\n", library.error().message());
    return 0;
}
