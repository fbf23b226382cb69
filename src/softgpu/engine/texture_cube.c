/* Cubes: the face that a direction points to, and what is beyond a face's edges. */
#include "softgpu/engine/texture_inside.h"

#include <math.h>

/* Across, down and towards the face, from CUDA's table of faces: linear in the direction. */
static void of_face(unsigned face, const double d[3], double *across, double *down, double *ahead) {
    static const struct {
        signed char across[3], down[3], ahead[3];
    } faces[6] = {
        {{0, 0, -1}, {0, -1, 0}, {1, 0, 0}}, {{0, 0, 1}, {0, -1, 0}, {-1, 0, 0}},
        {{1, 0, 0}, {0, 0, 1}, {0, 1, 0}},   {{1, 0, 0}, {0, 0, -1}, {0, -1, 0}},
        {{1, 0, 0}, {0, -1, 0}, {0, 0, 1}},  {{-1, 0, 0}, {0, -1, 0}, {0, 0, -1}},
    };
    *across = *down = *ahead = 0;
    for (unsigned i = 0; i < 3; i++) {
        /* Zero must not be multiplied with infinity. */
        *across += faces[face].across[i] ? faces[face].across[i] * d[i] : 0;
        *down += faces[face].down[i] ? faces[face].down[i] * d[i] : 0;
        *ahead += faces[face].ahead[i] ? faces[face].ahead[i] * d[i] : 0;
    }
}

/* For equal magnitudes, which the table leaves open: z before y before x. */
static unsigned face_of(const double d[3]) {
    double x = fabs(d[0]), y = fabs(d[1]), z = fabs(d[2]);
    if (z >= x && z >= y)
        return d[2] >= 0 ? 4 : 5;
    if (y >= x)
        return d[1] >= 0 ? 2 : 3;
    return d[0] >= 0 ? 0 : 1;
}

unsigned sg_cube_face(const double direction[3], double place[2]) {
    unsigned face = face_of(direction);
    double across, down, ahead;
    of_face(face, direction, &across, &down, &ahead);
    bool nowhere = ahead == 0; /* all three are 0: the middle of the face */
    place[0] = nowhere ? 0.5 : (across / ahead + 1) / 2;
    place[1] = nowhere ? 0.5 : (down / ahead + 1) / 2;
    return face;
}

void sg_cube_gradient(const double direction[3], const double gradient[3], double moved[2]) {
    unsigned face = face_of(direction);
    double across, down, ahead, d_across, d_down, d_ahead;
    of_face(face, direction, &across, &down, &ahead);
    of_face(face, gradient, &d_across, &d_down, &d_ahead);
    moved[0] = (d_across * ahead - across * d_ahead) / (ahead * ahead) / 2;
    moved[1] = (d_down * ahead - down * d_ahead) / (ahead * ahead) / 2;
}

static uint32_t texel_at(double place, uint32_t size) {
    double at = floor(place * size);
    return at < 0 ? 0 : at >= size ? size - 1 : (uint32_t)at;
}

/*
 * The centre of the texel, on the face's plane extended by one texel, is a direction; it meets the
 * neighbouring face in its outermost row, less than half a texel from a texel's centre.
 */
void sg_cube_neighbour(unsigned face, int64_t x, int64_t y, uint32_t size, unsigned *to,
                       uint32_t *to_x, uint32_t *to_y) {
    double s = 2 * ((double)x + 0.5) / size - 1, t = 2 * ((double)y + 0.5) / size - 1;
    const double directions[6][3] = {{1, -t, -s}, {-1, -t, s}, {s, 1, t},
                                     {s, -1, -t}, {s, -t, 1},  {-s, -t, -1}};
    double place[2];
    *to = sg_cube_face(directions[face], place);
    *to_x = texel_at(place[0], size);
    *to_y = texel_at(place[1], size);
}
