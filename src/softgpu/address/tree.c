#include "softgpu/address/tree.h"

#include <stdbool.h>

/* The finalizer of a 64-bit mix: consecutive counts give priorities without a pattern. */
static uint32_t next_priority(void) {
    static uint64_t count;
    uint64_t x = ++count * 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return (uint32_t)(x >> 32);
}

/* Puts `with` in the place of `node`. */
static void replace(struct sg_tree *tree, struct sg_tree_node *node, struct sg_tree_node *with) {
    if (!node->up)
        tree->root = with;
    else
        node->up->child[node->up->child[1] == node] = with;
    if (with)
        with->up = node->up;
}

/* Rotates a node above its parent; preserves the order of keys. */
static void rotate_up(struct sg_tree *tree, struct sg_tree_node *node) {
    struct sg_tree_node *parent = node->up;
    int side = parent->child[1] == node;
    struct sg_tree_node *inner = node->child[!side];
    replace(tree, parent, node);
    node->child[!side] = parent;
    parent->up = node;
    parent->child[side] = inner;
    if (inner)
        inner->up = parent;
}

void sg_tree_insert(struct sg_tree *tree, struct sg_tree_node *node) {
    struct sg_tree_node *up = NULL, **link = &tree->root;
    while (*link) {
        up = *link;
        link = &up->child[node->key > up->key];
    }
    node->child[0] = node->child[1] = NULL;
    node->up = up;
    node->priority = next_priority();
    *link = node;
    tree->count++;
    while (node->up && node->up->priority < node->priority)
        rotate_up(tree, node);
}

void sg_tree_remove(struct sg_tree *tree, struct sg_tree_node *node) {
    while (node->child[0] && node->child[1])
        rotate_up(tree, node->child[node->child[0]->priority < node->child[1]->priority]);
    replace(tree, node, node->child[0] ? node->child[0] : node->child[1]);
    tree->count--;
}

struct sg_tree_node *sg_tree_at_most(const struct sg_tree *tree, uint64_t key) {
    struct sg_tree_node *found = NULL, *node = tree->root;
    while (node) {
        bool fits = node->key <= key;
        if (fits)
            found = node;
        node = node->child[fits];
    }
    return found;
}

struct sg_tree_node *sg_tree_at_least(const struct sg_tree *tree, uint64_t key) {
    struct sg_tree_node *found = NULL, *node = tree->root;
    while (node) {
        bool fits = node->key >= key;
        if (fits)
            found = node;
        node = node->child[!fits];
    }
    return found;
}

struct sg_tree_node *sg_tree_next(struct sg_tree_node *node) {
    if (node->child[1]) {
        node = node->child[1];
        while (node->child[0])
            node = node->child[0];
        return node;
    }
    while (node->up && node->up->child[1] == node)
        node = node->up;
    return node->up;
}
