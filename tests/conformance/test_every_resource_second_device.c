/* Every kind of resource, by one list of properties, on the second device. */
#include "every_resource.h"
#include "kept_driver.h"

BEFORE_TESTS {
    keep_lavapipe_loaded();
    return add_every_resource(1);
}
