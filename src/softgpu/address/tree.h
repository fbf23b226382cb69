/*
 * An ordered map from 64-bit keys to nodes that live inside their owners: a treap, whose priorities
 * come from a hash of the insertion count, so that equal histories give equal shapes.
 *
 * No operation allocates, so none can fail. Keys are unique. Requires the lock.
 */
#ifndef SG_ADDRESS_TREE_H
#define SG_ADDRESS_TREE_H

#include <stddef.h>
#include <stdint.h>

struct sg_tree_node {
    struct sg_tree_node *child[2], *up;
    uint64_t key;
    uint32_t priority;
};

struct sg_tree {
    struct sg_tree_node *root;
    size_t count;
};

/* node->key is set by the caller and must not be in the tree. */
void sg_tree_insert(struct sg_tree *tree, struct sg_tree_node *node);
void sg_tree_remove(struct sg_tree *tree, struct sg_tree_node *node);

/* The node with the greatest key <= key, or NULL. */
struct sg_tree_node *sg_tree_at_most(const struct sg_tree *tree, uint64_t key);
/* The node with the least key >= key, or NULL. */
struct sg_tree_node *sg_tree_at_least(const struct sg_tree *tree, uint64_t key);
struct sg_tree_node *sg_tree_next(struct sg_tree_node *node);

/* The struct around a node, or NULL for NULL. */
#define SG_TREE_OWNER(node, type, member) ((type *)sg_tree_owner((node), offsetof(type, member)))

static inline void *sg_tree_owner(struct sg_tree_node *node, size_t offset) {
    return node ? (unsigned char *)node - offset : NULL;
}

#endif
