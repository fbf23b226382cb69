/* Every kind of resource, by one list of properties, on the second device. */
#include "every_resource.h"

int main(int argc, char **argv) {
    return run_every_resource(argc, argv, 1);
}
