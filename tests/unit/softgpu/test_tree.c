/* The ordered map against a plain array. */
#include "softgpu/address/tree.h"

#include "test.h"

#define KEYS 512

static struct sg_tree tree;
static struct sg_tree_node nodes[KEYS]; /* node i has the key 3 * i + 1 */
static bool inside[KEYS];

static unsigned random_number(void) {
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (unsigned)(x >> 20);
}

static uint64_t key_of(unsigned i) {
    return 3u * i + 1;
}

static void check_key(uint64_t key) {
    struct sg_tree_node *below = NULL, *above = NULL;
    for (unsigned i = 0; i < KEYS; i++) {
        if (inside[i] && key_of(i) <= key)
            below = &nodes[i];
        if (inside[i] && key_of(i) >= key && !above)
            above = &nodes[i];
    }
    assert_ptr_equal(sg_tree_at_most(&tree, key), below);
    assert_ptr_equal(sg_tree_at_least(&tree, key), above);
}

static void check_walk(void) {
    struct sg_tree_node *node = sg_tree_at_least(&tree, 0);
    size_t count = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        if (!inside[i])
            continue;
        assert_ptr_equal(node, &nodes[i]);
        node = sg_tree_next(node);
        count++;
    }
    assert_null(node);
    assert_int_equal(tree.count, count);
}

TEST(the_tree_agrees_with_a_plain_array) {
    for (unsigned round = 0; round < 5000; round++) {
        unsigned i = random_number() % KEYS;
        if (inside[i]) {
            sg_tree_remove(&tree, &nodes[i]);
        } else {
            nodes[i].key = key_of(i);
            sg_tree_insert(&tree, &nodes[i]);
        }
        inside[i] = !inside[i];
        check_key(random_number() % (3 * KEYS + 5));
        if (round % 100 == 0)
            check_walk();
    }
    check_walk();
}

static unsigned depth(const struct sg_tree_node *node) {
    if (!node)
        return 0;
    unsigned left = depth(node->child[0]), right = depth(node->child[1]);
    return 1 + (left > right ? left : right);
}

TEST(sorted_insertion_keeps_the_tree_balanced) {
    enum { MANY = 100000 };
    struct sg_tree sorted = {0};
    struct sg_tree_node *many = calloc(MANY, sizeof *many);
    assert_non_null(many);
    for (unsigned i = 0; i < MANY; i++) {
        many[i].key = i;
        sg_tree_insert(&sorted, &many[i]);
    }
    assert_true(depth(sorted.root) < 80); /* a balanced one would have 17 */
    free(many);
}
