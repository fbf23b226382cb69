/* What reports show of user objects; inside graph/ only. */
#ifndef SG_GRAPH_USER_OBJECT_H
#define SG_GRAPH_USER_OBJECT_H

#include <stdint.h>

struct sg_user_object;

/* References held by the application, and by graphs and execs. */
uint64_t sg_user_object_owned(const struct sg_user_object *object);
uint64_t sg_user_object_held(const struct sg_user_object *object);

#endif
