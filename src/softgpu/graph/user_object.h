/* What reports want to know of user objects; inside graph/. */
#ifndef SG_GRAPH_USER_OBJECT_H
#define SG_GRAPH_USER_OBJECT_H

#include <stdint.h>

struct sg_user_object;

/* References of the application, and of graphs and execs. */
uint64_t sg_user_object_owned(const struct sg_user_object *object);
uint64_t sg_user_object_held(const struct sg_user_object *object);

#endif
