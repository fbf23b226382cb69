/* Every kind of resource, by one list of properties, on the second device. */
#include "every_resource.h"

BEFORE_TESTS {
    return add_every_resource(1);
}
