#include "cache/placement/area.h"

#include <assert.h>
#include <stdlib.h>

/* ---- The index: a treap by size and address -------------------------------------------------- */

static uintptr_t address_of(const struct gm_piece *piece) {
    return piece->area->base + piece->offset;
}

static int is_before(const struct gm_piece *piece, size_t bytes, uintptr_t address) {
    return piece->bytes != bytes ? piece->bytes < bytes : address_of(piece) < address;
}

/* Random, but the same for a piece as long as it is in the index: which one is the root depends on
 * no order of insertion. */
static uint64_t priority(const struct gm_piece *piece) {
    uint64_t x = (uint64_t)(uintptr_t)piece * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 32;
    return x * UINT64_C(0xd6e8feb86659fd93);
}

/* Divides a tree at the place of a piece. */
static void split_tree(struct gm_piece *root, const struct gm_piece *at, struct gm_piece **less,
                       struct gm_piece **more) {
    const uintptr_t address = address_of(at);
    while (root) {
        if (is_before(root, at->bytes, address)) {
            *less = root;
            less = &root->right;
            root = root->right;
        } else {
            *more = root;
            more = &root->left;
            root = root->left;
        }
    }
    *less = *more = NULL;
}

static struct gm_piece *join_trees(struct gm_piece *less, struct gm_piece *more) {
    struct gm_piece *root = NULL, **at = &root;
    while (less && more) {
        if (priority(less) > priority(more)) {
            *at = less;
            at = &less->right;
            less = less->right;
        } else {
            *at = more;
            at = &more->left;
            more = more->left;
        }
    }
    *at = less ? less : more;
    return root;
}

static void index_add(struct gm_index *index, struct gm_piece *piece) {
    struct gm_piece **at = &index->root;
    const uint64_t own = priority(piece);
    const uintptr_t address = address_of(piece);
    while (*at && priority(*at) >= own)
        at = is_before(*at, piece->bytes, address) ? &(*at)->right : &(*at)->left;
    split_tree(*at, piece, &piece->left, &piece->right);
    *at = piece;
    index->bytes += piece->bytes;
}

static void index_remove(struct gm_index *index, struct gm_piece *piece) {
    struct gm_piece **at = &index->root;
    const uintptr_t address = address_of(piece);
    while (*at && *at != piece)
        at = is_before(*at, piece->bytes, address) ? &(*at)->right : &(*at)->left;
    *at = join_trees(piece->left, piece->right);
    piece->left = piece->right = NULL;
    index->bytes -= piece->bytes;
}

/* The first piece that is not before this size and address. */
static struct gm_piece *index_at(const struct gm_index *index, size_t bytes, uintptr_t address) {
    struct gm_piece *piece = index->root, *found = NULL;
    while (piece) {
        if (is_before(piece, bytes, address)) {
            piece = piece->right;
        } else {
            found = piece;
            piece = piece->left;
        }
    }
    return found;
}

struct gm_piece *gm_index_next(const struct gm_index *index, size_t bytes,
                               const struct gm_piece *piece) {
    return piece ? index_at(index, piece->bytes, address_of(piece) + 1) : index_at(index, bytes, 0);
}

size_t gm_index_largest(const struct gm_index *index) {
    const struct gm_piece *piece = index->root;
    while (piece && piece->right)
        piece = piece->right;
    return piece ? piece->bytes : 0;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* `left` is the one before, `right` the one after. */
static void list_bare(struct gm_piece *piece) {
    struct gm_area *area = piece->area;
    piece->left = NULL;
    piece->right = area->bare_ones;
    if (piece->right)
        piece->right->left = piece;
    area->bare_ones = piece;
}

static void unlist_bare(struct gm_piece *piece) {
    if (piece->right)
        piece->right->left = piece->left;
    if (piece->left)
        piece->left->right = piece->right;
    else
        piece->area->bare_ones = piece->right;
    piece->left = piece->right = NULL;
}

/* Leaves its state: out of the index and the sums. */
static void leave(struct gm_piece *piece) {
    struct gm_area *area = piece->area;
    if (piece->state == GM_PIECE_FREE)
        index_remove(area->index, piece);
    else if (piece->state == GM_PIECE_USED)
        area->used -= piece->bytes;
    if (piece->state == GM_PIECE_BARE) {
        area->bare -= piece->bytes;
        unlist_bare(piece);
    }
}

static void enter(struct gm_piece *piece, enum gm_piece_state state) {
    struct gm_area *area = piece->area;
    piece->state = state;
    if (state == GM_PIECE_FREE)
        index_add(area->index, piece);
    else if (state == GM_PIECE_USED)
        area->used += piece->bytes;
    if (state == GM_PIECE_BARE) {
        area->bare += piece->bytes;
        list_bare(piece);
    }
    area->near = piece;
}

/* Makes `rest`, of the same state, of what follows the first `bytes` of a piece that has left its
 * own. */
static void divide(struct gm_piece *piece, size_t bytes, struct gm_piece *rest) {
    *rest = (struct gm_piece){.offset = piece->offset + bytes,
                              .bytes = piece->bytes - bytes,
                              .area = piece->area,
                              .before = piece,
                              .after = piece->after,
                              .state = piece->state};
    if (rest->after)
        rest->after->before = rest;
    piece->after = rest;
    piece->bytes = bytes;
}

/* Joins what follows to the piece; both have left their state. */
static void absorb(struct gm_piece *piece) {
    struct gm_piece *rest = piece->after;
    piece->bytes += rest->bytes;
    piece->after = rest->after;
    if (piece->after)
        piece->after->before = piece;
    if (piece->area->near == rest)
        piece->area->near = piece;
    free(rest);
}

static int joins(enum gm_piece_state state) {
    return state == GM_PIECE_FREE || state == GM_PIECE_BARE;
}

/* Enters a state, together with neighbours that are free or bare as it is. */
static void enter_joined(struct gm_piece *piece, enum gm_piece_state state) {
    if (joins(state) && piece->after && piece->after->state == state) {
        leave(piece->after);
        absorb(piece);
    }
    if (joins(state) && piece->before && piece->before->state == state) {
        piece = piece->before;
        leave(piece);
        absorb(piece);
    }
    enter(piece, state);
}

int gm_area_init(struct gm_area *area, uintptr_t base, size_t bytes, struct gm_index *index,
                 enum gm_piece_state state) {
    struct gm_piece *whole = malloc(sizeof *whole);
    if (!whole)
        return -1;
    *area = (struct gm_area){.base = base, .bytes = bytes, .first = whole, .index = index};
    *whole = (struct gm_piece){.bytes = bytes, .area = area};
    enter(whole, state);
    return 0;
}

void gm_area_end(struct gm_area *area) {
    assert(!area->used);
    while (area->first) {
        struct gm_piece *piece = area->first;
        leave(piece);
        area->first = piece->after;
        free(piece);
    }
}

void gm_area_move(struct gm_area *area, struct gm_index *index) {
    for (struct gm_piece *piece = area->first; piece; piece = piece->after)
        if (piece->state == GM_PIECE_FREE)
            index_remove(area->index, piece);
    area->index = index;
    for (struct gm_piece *piece = area->first; piece; piece = piece->after)
        if (piece->state == GM_PIECE_FREE)
            index_add(index, piece);
}

/* ---- Taking and giving ----------------------------------------------------------------------- */

/* Bytes to skip at the start of a piece to be aligned. */
static size_t lead(const struct gm_piece *piece, size_t alignment) {
    return (size_t)(-address_of(piece) & (uintptr_t)(alignment - 1));
}

/* After this many pieces that are large enough and badly aligned, one that fits at any alignment is
 * preferred. */
#define MOST_TRIED 32

static struct gm_piece *best(const struct gm_index *index, size_t bytes, size_t alignment) {
    struct gm_piece *piece = index_at(index, bytes, 0), *any = NULL;
    for (unsigned tried = 0; piece && piece->bytes - bytes < lead(piece, alignment); tried++) {
        if (tried == MOST_TRIED)
            any = index_at(index, bytes + alignment - GM_PIECE_UNIT, 0);
        piece = any ? any : index_at(index, piece->bytes, address_of(piece) + 1);
    }
    return piece;
}

struct gm_piece *gm_index_take(struct gm_index *index, size_t bytes, size_t alignment) {
    if (alignment < GM_PIECE_UNIT)
        alignment = GM_PIECE_UNIT;
    if (bytes == 0 || bytes > index->bytes || alignment > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + GM_PIECE_UNIT - 1) / GM_PIECE_UNIT * GM_PIECE_UNIT;
    struct gm_piece *piece = best(index, bytes, alignment);
    if (!piece)
        return NULL;
    size_t skip = lead(piece, alignment), left = piece->bytes - skip - bytes;
    struct gm_piece *body = skip ? malloc(sizeof *body) : piece;
    struct gm_piece *tail = left ? malloc(sizeof *tail) : NULL;
    if (!body || (left && !tail)) {
        if (skip)
            free(body);
        free(tail);
        return NULL;
    }
    leave(piece);
    if (skip) {
        divide(piece, skip, body);
        enter(piece, GM_PIECE_FREE);
    }
    if (left) {
        divide(body, bytes, tail);
        enter(tail, GM_PIECE_FREE);
    }
    enter(body, GM_PIECE_USED);
    return body;
}

void gm_piece_give(struct gm_piece *piece) {
    leave(piece);
    enter_joined(piece, GM_PIECE_FREE);
}

/* ---- Parts that get memory, or lose it ------------------------------------------------------- */

struct gm_piece *gm_area_find(const struct gm_area *area, struct gm_piece *near, size_t offset) {
    struct gm_piece *piece = near ? near : area->near;
    while (piece->offset > offset)
        piece = piece->before;
    while (piece->offset + piece->bytes <= offset)
        piece = piece->after;
    return piece;
}

/* Divides the piece at `offset`, inside it, with memory for `rest`. */
static struct gm_piece *divide_at(struct gm_piece *piece, size_t offset, struct gm_piece *rest) {
    enum gm_piece_state state = piece->state;
    leave(piece);
    divide(piece, offset - piece->offset, rest);
    enter(piece, state);
    enter(rest, state);
    return rest;
}

int gm_area_set(struct gm_area *area, size_t offset, size_t bytes, enum gm_piece_state state) {
    size_t end = offset + bytes;
    struct gm_piece *first = gm_area_find(area, NULL, offset);
    struct gm_piece *last = gm_area_find(area, first, end - 1);
    int splits = first->offset != offset, cuts = last->offset + last->bytes != end;
    int same = first == last;
    struct gm_piece *rest = splits ? malloc(sizeof *rest) : NULL;
    struct gm_piece *tail = cuts ? malloc(sizeof *tail) : NULL;
    if ((splits && !rest) || (cuts && !tail)) {
        free(rest);
        free(tail);
        return -1;
    }
    if (rest)
        first = divide_at(first, offset, rest);
    if (tail)
        (void)divide_at(same ? first : last, end, tail);
    leave(first);
    while (first->offset + first->bytes < end) {
        leave(first->after);
        absorb(first);
    }
    enter_joined(first, state);
    return 0;
}

size_t gm_area_largest(const struct gm_area *area) {
    size_t largest = 0;
    for (const struct gm_piece *piece = area->first; piece; piece = piece->after)
        if (piece->state == GM_PIECE_FREE && piece->bytes > largest)
            largest = piece->bytes;
    return largest;
}

/* ---- Invariants ------------------------------------------------------------------------------ */

static void must(int holds) {
    if (!holds)
        abort();
}

static int is_indexed(const struct gm_piece *piece) {
    return index_at(piece->area->index, piece->bytes, address_of(piece)) == piece;
}

static int is_listed(const struct gm_piece *piece) {
    const struct gm_piece *one = piece->area->bare_ones;
    while (one && one != piece)
        one = one->right;
    return one != NULL;
}

void gm_area_check(const struct gm_area *area) {
    size_t end = 0, used = 0, bare = 0, nears = 0;
    const struct gm_piece *before = NULL;
    for (const struct gm_piece *piece = area->first; piece; piece = piece->after) {
        must(piece->area == area && piece->before == before && piece->offset == end);
        must(piece->bytes && piece->bytes % GM_PIECE_UNIT == 0);
        must(!joins(piece->state) || !before || before->state != piece->state);
        must(piece->state != GM_PIECE_FREE || is_indexed(piece));
        must(piece->state != GM_PIECE_BARE || is_listed(piece));
        nears += piece == area->near;
        used += piece->state == GM_PIECE_USED ? piece->bytes : 0;
        bare += piece->state == GM_PIECE_BARE ? piece->bytes : 0;
        end += piece->bytes;
        before = piece;
    }
    must(end == area->bytes && used == area->used && bare == area->bare && nears == 1);
}
