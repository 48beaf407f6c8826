"""Triangles -> views, in compiled loops: textures, lights, shadows, gloss. Arrays only.

What a corner carries is (t, 3, CARRIED): 1 / depth, texture place, position, normal, ambient light.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np

from oaccdepth.compiling import compiled, inlined
from oaccdepth.rendering.rasteriser import NOTHING, barycentric, draw, within_cell

# Columns of what a corner carries: 1 / depth is the first, position from 3, normal from 6, ambient
# light from 9.
TEXTURE, CARRIED = 1, 12


@inlined
def lit(shadow_map, x, y, near):
    """Part of the light that arrives at a place of a shadow map: 3 x 3 taps, bilinear between."""
    size = shadow_map.shape[0]
    left, top = int(np.floor(x)) - 1, int(np.floor(y)) - 1
    if left < 0 or top < 0 or left + 3 >= size or top + 3 >= size:
        return 1.0
    part_x, part_y = x - np.floor(x), y - np.floor(y)
    total = 0.0
    for i in range(4):
        weight_y = 1.0 - part_y if i == 0 else (part_y if i == 3 else 1.0)
        for j in range(4):
            weight_x = 1.0 - part_x if j == 0 else (part_x if j == 3 else 1.0)
            if shadow_map[top + i, left + j] <= near:
                total += weight_x * weight_y
    return total / 9.0


@inlined
def folded(position, length, mirrored):
    """Place [texels] of a position [textures] in a texture that is repeated, mirrored or not."""
    if mirrored:
        position -= 2.0 * np.floor(0.5 * position)
        position = min(position, 2.0 - position)
    else:
        position -= np.floor(position)
    return min(max(position * length - 0.5, 0.0), length - 1.0)


@inlined
def add_bilinear(texels, levels, texture, level, x, y, weight, colour):
    """Add a bilinear sample of one mip level to `colour`."""
    place, width, height = (
        levels[texture, level, 0],
        levels[texture, level, 1],
        levels[texture, level, 2],
    )
    mirrored = levels[texture, level, 3] != 0
    x, y = folded(x, width, mirrored), folded(y, height, mirrored)
    left, top = int(x), int(y)
    right, bottom = min(left + 1, width - 1), min(top + 1, height - 1)
    part_x, part_y = x - left, y - top
    first, second = place + top * width, place + bottom * width
    w0, w1 = weight * (1 - part_y) * (1 - part_x), weight * (1 - part_y) * part_x
    w2, w3 = weight * part_y * (1 - part_x), weight * part_y * part_x
    for channel in range(3):
        colour[channel] += (
            w0 * texels[first + left, channel]
            + w1 * texels[first + right, channel]
            + w2 * texels[second + left, channel]
            + w3 * texels[second + right, channel]
        )


@inlined
def look_up(texels, levels, texture, x, y, level, colour):
    """Sample a texture, (n, 3) uint16, between two mip levels."""
    colour[0] = colour[1] = colour[2] = 0.0
    fine = int(level)
    part = level - fine
    add_bilinear(texels, levels, texture, fine, x, y, (1 - part) / 65535.0, colour)
    if part > 1e-3:
        add_bilinear(texels, levels, texture, fine + 1, x, y, part / 65535.0, colour)


@inlined
def prepare_triangle(corners, carried, step_u, step_v, samples, edges, slopes):
    """Edge functions of one triangle, and how 1 / depth and the texture place change with x, y."""
    barycentric(corners, step_u, step_v, samples, edges)
    for k in range(3):
        for axis in range(2):
            w0, w1 = edges[0, 1 + axis], edges[1, 1 + axis]
            w2 = -w0 - w1
            a, b, c = carried[0, 0], carried[1, 0], carried[2, 0]
            if k > 0:
                a, b, c = a * carried[0, k], b * carried[1, k], c * carried[2, k]
            slopes[k, axis] = w0 * a + w1 * b + w2 * c


@inlined
def weigh(carried, triangle, edges, x, y, weights):
    """Weights of the corners at place (x, y), correct in perspective; returns 1 / depth there."""
    w0 = edges[0, 0] + edges[0, 1] * x + edges[0, 2] * y
    w1 = edges[1, 0] + edges[1, 1] * x + edges[1, 2] * y
    w2 = (1.0 - w0 - w1) * carried[triangle, 2, 0]
    w0, w1 = w0 * carried[triangle, 0, 0], w1 * carried[triangle, 1, 0]
    total = w0 + w1 + w2
    inverse = 1.0 / total
    weights[0], weights[1], weights[2] = w0 * inverse, w1 * inverse, w2 * inverse
    return total


@inlined
def blend(carried, triangle, weights, k):
    """Column k of what the corners carry, by their weights."""
    return (
        weights[0] * carried[triangle, 0, k]
        + weights[1] * carried[triangle, 1, k]
        + weights[2] * carried[triangle, 2, k]
    )


@inlined
def choose_level(point, slopes, levels):
    """Mip level whose texels are as large as a sample: the mean of its axes on the texture.

    A long footprint counts as at least a quarter of its length.
    """
    width, height, inverse = levels[0, 1], levels[0, 2], 1.0 / point[0]
    ux = (slopes[1, 0] - point[1] * slopes[0, 0]) * inverse * width
    uy = (slopes[1, 1] - point[1] * slopes[0, 1]) * inverse * width
    vx = (slopes[2, 0] - point[2] * slopes[0, 0]) * inverse * height
    vy = (slopes[2, 1] - point[2] * slopes[0, 1]) * inverse * height
    longest = np.sqrt(max(ux * ux + vx * vx, uy * uy + vy * vy))
    texels = max(np.sqrt(abs(ux * vy - uy * vx)), 0.25 * longest)
    if texels <= 1.0:
        return 0.0
    return min(np.log2(texels), len(levels) - 1.0)


@inlined
def arriving(point, light, cosine, shadow_map):
    """Part of a light that arrives at a point."""
    px, py, pz = point[3], point[4], point[5]
    x = light[2, 0] * px + light[2, 1] * py + light[2, 2] * pz + light[5, 0]
    y = light[3, 0] * px + light[3, 1] * py + light[3, 2] * pz + light[5, 1]
    near = light[4, 0] * px + light[4, 1] * py + light[4, 2] * pz + light[5, 2]
    return lit(shadow_map, x, y, near + light[6, 0] + light[6, 1] * (1.0 - cosine))


@inlined
def look_back(point, camera, mirrored):
    """Direction of the camera mirrored at the surface; returns the cosine to the normal."""
    away = 0.0
    facing = 0.0
    for axis in range(3):
        mirrored[axis] = camera[axis] - point[3 + axis]
        away += mirrored[axis] * mirrored[axis]
    away = 1.0 / np.sqrt(away)
    for axis in range(3):
        mirrored[axis] *= away
        facing += mirrored[axis] * point[6 + axis]
    for axis in range(3):
        mirrored[axis] = 2.0 * facing * point[6 + axis] - mirrored[axis]
    return facing


@inlined
def illuminate(point, material, camera, lights, maps, mirrored, out):
    """Light on a point: `out` takes what its colour is multiplied by, and what gloss adds.

    `lights` is (l, 7, 3): direction, colour, projection to the shadow map (3 x 3, shift), lift.
    """
    length = 1.0 / np.sqrt(point[6] ** 2 + point[7] ** 2 + point[8] ** 2 + 1e-12)
    for axis in range(3):
        point[6 + axis] *= length
        out[axis] = point[9 + axis]
        out[3 + axis] = 0.0
    if material[0] > 0.0:
        facing = look_back(point, camera, mirrored)
        sheen = 0.25 + 0.75 * (1.0 - min(abs(facing), 1.0)) ** 3
        sheen *= material[0] * (0.5 - 0.5 * mirrored[1])  # the sky above is bright
        for channel in range(3):
            out[3 + channel] = sheen * point[9 + channel]
    for index in range(len(lights)):
        light = lights[index]
        cosine = point[6] * light[0, 0] + point[7] * light[0, 1] + point[8] * light[0, 2]
        if cosine <= 0.0:
            continue
        part = arriving(point, light, cosine, maps[index])
        if part <= 0.0:
            continue
        shine = 0.0
        if material[0] > 0.0:
            along = mirrored[0] * light[0, 0] + mirrored[1] * light[0, 1]
            along = max(along + mirrored[2] * light[0, 2], 0.0)
            shine = material[0] * part * along ** material[1]
        for channel in range(3):
            out[channel] += cosine * part * light[1, channel]
            out[3 + channel] += shine * light[1, channel]


@compiled
def shade(triangles, textures, materials, light, view, samples, owner, out):
    """Average the colours of each pixel's samples into `out`, (h, w, 3), linear.

    The texture is looked up at every sample, light once for each triangle in a pixel.
    """
    corners, carried, style = triangles
    texels, levels = textures
    step_u, step_v, camera = view
    edges, slopes, weights = np.empty((4, 3)), np.empty((3, 2)), np.empty(3)
    point, colour, lit_by, mirrored = np.empty(CARRIED), np.empty(3), np.empty(6), np.empty(3)
    before, level, share = -1, 0.0, 1.0 / (samples * samples)
    height, width = out.shape[:2]
    for row in range(height):
        for column in range(width):
            lit_triangle = -1
            red = green = blue = 0.0
            for sample in range(samples * samples):
                y, x = row * samples + sample // samples, column * samples + sample % samples
                triangle = owner[y, x]
                if triangle < 0:
                    continue
                texture = style[triangle, 0]
                if triangle != before:
                    prepare_triangle(
                        corners[triangle], carried[triangle], step_u, step_v, samples, edges, slopes
                    )
                    before = triangle
                place_x, place_y = x + within_cell(y, samples), y + within_cell(x, samples)
                near = weigh(carried, triangle, edges, place_x, place_y, weights)
                if triangle != lit_triangle:
                    point[0] = near
                    for k in range(1, CARRIED):
                        point[k] = blend(carried, triangle, weights, k)
                    level = choose_level(point, slopes, levels[texture])
                    material = materials[style[triangle, 1]]
                    illuminate(point, material, camera, light[0], light[1], mirrored, lit_by)
                    lit_triangle = triangle
                place_x = blend(carried, triangle, weights, TEXTURE)
                place_y = blend(carried, triangle, weights, TEXTURE + 1)
                look_up(texels, levels, texture, place_x, place_y, level, colour)
                red += colour[0] * lit_by[0] + lit_by[3]
                green += colour[1] * lit_by[1] + lit_by[4]
                blue += colour[2] * lit_by[2] + lit_by[5]
            out[row, column, 0] = red * share
            out[row, column, 1] = green * share
            out[row, column, 2] = blue * share


@compiled
def draw_view(triangles, textures, materials, light, place, baseline, samples, out):
    """Render one view, (h, w, 3) linear, from a camera at `place` (2,): down, right [steps]."""
    rows, columns = out.shape[0] * samples, out.shape[1] * samples
    depth = np.full((rows, columns), np.float32(NOTHING))
    owner = np.full((rows, columns), np.int32(-1))
    step_u, step_v = place[0], place[1]
    draw(triangles[0], step_u, step_v, samples, depth, owner)
    camera = np.array([step_v * baseline, step_u * baseline, 0.0])
    view = (step_u, step_v, camera)
    shade(triangles, textures, materials, light, view, samples, owner, out)
