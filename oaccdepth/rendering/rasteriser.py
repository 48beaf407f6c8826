"""Triangles -> z-buffers, shadow maps and visibility, in compiled loops. Arrays only.

Disparity is affine in the picture over a plane, so it serves as depth. View (u, v) sees a corner at
(x - disparity * step_v, y - disparity * step_u); the larger disparity is in front. A shadow map is
the same picture, seen from a light.

Corners are (t, 3, 3): x, y [px] of the reference view, and disparity [px per step].
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np

from oaccdepth.compiling import compiled, inlined

NOTHING = -1e9  # disparity where there is no triangle
EDGE = -1e-6  # neighbours overlap by this part of a triangle: no cracks between them


@inlined
def barycentric(corners, step_u, step_v, samples, out):
    """Edge functions of one triangle on the grid of samples: weights are affine in (x, y).

    `out` takes weight 0 and weight 1 as value at the origin, slope along x, slope along y.
    Returns False for a triangle without area.
    """
    ax = (corners[0, 0] - corners[0, 2] * step_v + 0.5) * samples
    ay = (corners[0, 1] - corners[0, 2] * step_u + 0.5) * samples
    bx = (corners[1, 0] - corners[1, 2] * step_v + 0.5) * samples
    by = (corners[1, 1] - corners[1, 2] * step_u + 0.5) * samples
    cx = (corners[2, 0] - corners[2, 2] * step_v + 0.5) * samples
    cy = (corners[2, 1] - corners[2, 2] * step_u + 0.5) * samples
    area = (by - cy) * (ax - cx) + (cx - bx) * (ay - cy)
    if abs(area) < 1e-9:
        return False
    inverse = 1.0 / area
    out[0, 1], out[0, 2] = (by - cy) * inverse, (cx - bx) * inverse
    out[1, 1], out[1, 2] = (cy - ay) * inverse, (ax - cx) * inverse
    out[0, 0] = -out[0, 1] * cx - out[0, 2] * cy
    out[1, 0] = -out[1, 1] * cx - out[1, 2] * cy
    # The bounding box, for the loops
    out[2, 0], out[2, 1] = min(ax, bx, cx), max(ax, bx, cx)
    out[3, 0], out[3, 1] = min(ay, by, cy), max(ay, by, cy)
    return True


@inlined
def within_cell(other, samples):
    """Where in its cell a sample lies, along one axis, by its number along the other.

    No two samples of a pixel share a row or a column, so that even an upright edge covers it in
    steps of 1 / samples^2.
    """
    return (other % samples + 0.5) / samples


@inlined
def draw_triangle(corner, step_u, step_v, samples, number, edges, depth, owner):
    """Draw one triangle into a z-buffer."""
    if not barycentric(corner, step_u, step_v, float(samples), edges):
        return
    rows, columns = depth.shape
    first_x, last_x = max(int(edges[2, 0]), 0), min(int(edges[2, 1]), columns - 1)
    first_y, last_y = max(int(edges[3, 0]), 0), min(int(edges[3, 1]), rows - 1)
    far, by_0, by_1 = corner[2, 2], corner[0, 2] - corner[2, 2], corner[1, 2] - corner[2, 2]
    w0x, w1x, w0y, w1y = edges[0, 1], edges[1, 1], edges[0, 2], edges[1, 2]
    for y in range(first_y, last_y + 1):
        in_x = within_cell(y, samples)
        row_0 = edges[0, 0] + w0y * y + w0x * in_x
        row_1 = edges[1, 0] + w1y * y + w1x * in_x
        for x in range(first_x, last_x + 1):
            in_y = within_cell(x, samples)
            w0, w1 = row_0 + w0x * x + w0y * in_y, row_1 + w1x * x + w1y * in_y
            if w0 >= EDGE and w1 >= EDGE and w0 + w1 <= 1.0 - EDGE:
                near = np.float32(far + w0 * by_0 + w1 * by_1)
                if near > depth[y, x]:
                    depth[y, x] = near
                    owner[y, x] = number


@compiled
def draw(corners, step_u, step_v, samples, depth, owner):
    """Fill one z-buffer: `depth` (rows, columns) [px] and `owner`, the triangle in front."""
    edges = np.empty((4, 3))
    for triangle in range(len(corners)):
        draw_triangle(corners[triangle], step_u, step_v, samples, triangle, edges, depth, owner)


@compiled
def settle(corners, samples, needed, depth, owner, out):
    """Fill `out` (h, w) with the disparity, at the pixel's centre, of the surface that it shows.

    That is the nearest surface which, with what is in front of it, covers `needed` of the pixel's
    samples.
    """
    edges, values = np.empty((4, 3)), np.empty(samples * samples, np.float32)
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            top, left = row * samples, column * samples
            for k in range(samples * samples):
                values[k] = -depth[top + k // samples, left + k % samples]
            values.sort()
            chosen = -values[needed - 1]
            triangle = -1
            for k in range(samples * samples):
                y, x = top + k // samples, left + k % samples
                if depth[y, x] == chosen:
                    triangle = owner[y, x]
            if triangle < 0:
                out[row, column] = NOTHING
                continue
            corner = corners[triangle]
            barycentric(corner, 0.0, 0.0, 1.0, edges)
            w0 = edges[0, 0] + edges[0, 1] * (column + 0.5) + edges[0, 2] * (row + 0.5)
            w1 = edges[1, 0] + edges[1, 1] * (column + 0.5) + edges[1, 2] * (row + 0.5)
            far, by_0, by_1 = corner[2, 2], corner[0, 2] - corner[2, 2], corner[1, 2] - corner[2, 2]
            # a triangle that is seen from its side has no bounds beyond its edge
            here = far + w0 * by_0 + w1 * by_1
            out[row, column] = min(max(here, -values[-1]), -values[0])


@inlined
def apply(projection, points, out):
    """Map points (n, 3) by an affine projection (3, 4)."""
    for index in range(len(points)):
        for axis in range(3):
            out[index, axis] = (
                projection[axis, 0] * points[index, 0]
                + projection[axis, 1] * points[index, 1]
                + projection[axis, 2] * points[index, 2]
                + projection[axis, 3]
            )


@compiled
def draw_map(positions, projection, shadow_map):
    """Draw triangles (t, 3, 3) in space into the shadow map of a light, (size, size)."""
    shadow_map[:] = NOTHING
    owner = np.empty(shadow_map.shape, np.int32)
    edges, corner = np.empty((4, 3)), np.empty((3, 3))
    for triangle in range(len(positions)):
        apply(projection, positions[triangle], corner)
        draw_triangle(corner, 0.0, 0.0, 1, triangle, edges, shadow_map, owner)


@compiled
def add_light(points, normals, shadow_map, projection, direction, out):
    """Add one light of the sky to `out`, (n,), at the points that it reaches."""
    size = shadow_map.shape[0]
    for index in range(len(points)):
        facing = 0.0
        for axis in range(3):
            facing += normals[index, axis] * direction[axis]
        if facing <= 0.0:
            continue
        x, y, near = projection[0, 3], projection[1, 3], projection[2, 3]
        for axis in range(3):
            x += projection[0, axis] * points[index, axis]
            y += projection[1, axis] * points[index, axis]
            near += projection[2, axis] * points[index, axis]
        column, row = int(np.floor(x)), int(np.floor(y))
        inside = 0 <= column < size and 0 <= row < size
        if not inside or shadow_map[row, column] <= near:
            out[index] += facing


@compiled
def sort_points(disparity, step_u, step_v, starts, order):
    """Sort the reference view's points by the pixel of a view in which they lie: a counting sort.

    `starts` (h * w + 1) takes where each pixel's points begin in `order`. Points outside the frame
    are left out.
    """
    height, width = disparity.shape
    starts[:] = 0
    for turn in range(2):
        for row in range(height):
            for column in range(width):
                y = int(np.floor(row - disparity[row, column] * step_u + 0.5))
                x = int(np.floor(column - disparity[row, column] * step_v + 0.5))
                if 0 <= y < height and 0 <= x < width:
                    cell = y * width + x
                    if turn == 0:
                        starts[cell + 1] += 1
                    else:
                        order[starts[cell]] = row * width + column
                        starts[cell] += 1
        if turn == 0:
            for cell in range(height * width):
                starts[cell + 1] += starts[cell]
    for cell in range(height * width, 0, -1):
        starts[cell] = starts[cell - 1]
    starts[0] = 0


@compiled
def hide(corners, disparity, step_u, step_v, tolerance, starts, order, seen):
    """Clear `seen` (h, w) for every point with a triangle in front of it in this view."""
    height, width = disparity.shape
    edges = np.empty((4, 3))
    for triangle in range(len(corners)):
        corner = corners[triangle]
        if not barycentric(corner, step_u, step_v, 1.0, edges):
            continue
        first_x, last_x = max(int(edges[2, 0]) - 1, 0), min(int(edges[2, 1]) + 1, width - 1)
        first_y, last_y = max(int(edges[3, 0]) - 1, 0), min(int(edges[3, 1]) + 1, height - 1)
        if first_x > last_x:
            continue
        far, by_0, by_1 = corner[2, 2], corner[0, 2] - corner[2, 2], corner[1, 2] - corner[2, 2]
        for row in range(first_y, last_y + 1):
            first, last = starts[row * width + first_x], starts[row * width + last_x + 1]
            for place in range(first, last):
                y, x = order[place] // width, order[place] % width
                own = disparity[y, x]
                in_y, in_x = y - own * step_u + 0.5, x - own * step_v + 0.5
                w0 = edges[0, 0] + edges[0, 1] * in_x + edges[0, 2] * in_y
                w1 = edges[1, 0] + edges[1, 1] * in_x + edges[1, 2] * in_y
                inside = w0 >= 0.0 and w1 >= 0.0 and w0 + w1 <= 1.0
                if inside and far + w0 * by_0 + w1 * by_1 > own + tolerance:
                    seen[y, x] = False


@compiled
def find_visible(corners, disparity, step_u, step_v, tolerance, seen):
    """Fill `seen` (h, w): whether each point of the reference view is in front in a view."""
    height, width = disparity.shape
    starts = np.empty(height * width + 1, np.int64)
    order = np.empty(height * width, np.int64)
    sort_points(disparity, step_u, step_v, starts, order)
    for row in range(height):
        for column in range(width):
            y = row - disparity[row, column] * step_u
            x = column - disparity[row, column] * step_v
            seen[row, column] = (0 <= y <= height - 1) and (0 <= x <= width - 1)
    hide(corners, disparity, step_u, step_v, tolerance, starts, order, seen)
