"""Slow, literal versions of the paper's formulas and of its authors' program.

Written from the paper and from docs/method.md with plain loops; shares no code with the package.
Arrays: view (u, v), position (y, x), feature channel last where there is one.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
from torch.nn import functional as F

LEVELS = range(-4, 5)


def pixel(view, y, x):
    """Value at an integer position; zero outside the frame."""
    inside = 0 <= y < view.shape[0] and 0 <= x < view.shape[1]
    return view[y, x] if inside else np.zeros_like(view[0, 0])


def bilinear(view, y, x):
    """Value at a position between pixels; zero outside the frame."""
    top, left = int(np.floor(y)), int(np.floor(x))
    low, right = y - top, x - left
    return (
        (1 - low) * (1 - right) * pixel(view, top, left)
        + (1 - low) * right * pixel(view, top, left + 1)
        + low * (1 - right) * pixel(view, top + 1, left)
        + low * right * pixel(view, top + 1, left + 1)
    )


def angular_patch(views, y, x, d):
    """Eq. 1: the samples (u, v) of all views for one pixel and one integer disparity."""
    num_u, num_v = views.shape[:2]
    patch = np.zeros((num_u, num_v, *views.shape[4:]))
    for u, v in itertools.product(range(num_u), range(num_v)):
        patch[u, v] = pixel(views[u, v], y + (num_u // 2 - u) * d, x + (num_v // 2 - v) * d)
    return patch


def shift_and_concat(features, d):
    """Eq. 2 and 3: features (u, v, h, w, c) shifted by view and concatenated: (h, w, u, v, c)."""
    num_u, num_v, h, w, c = features.shape
    shifted = np.zeros((h, w, num_u, num_v, c))
    for u, v in itertools.product(range(num_u), range(num_v)):
        for y, x in itertools.product(range(h), range(w)):
            source_y, source_x = y + (num_u // 2 - u) * d, x + (num_v // 2 - v) * d
            shifted[y, x, u, v] = pixel(features[u, v], source_y, source_x)
    return shifted


def modulated_convolution(patch, weights, modulation):
    """Eq. 5, with the mean of the modulation as the denominator, as in the authors' program."""
    above = 0.0
    for weight, sample, scalar in zip(
        weights.ravel(), patch.ravel(), modulation.ravel(), strict=True
    ):
        above += weight * sample * scalar
    return above / modulation.mean()


def occlusion_masks(views, disparity, q):
    """Eq. 6 to 8 for views (u, v, h, w); a sample outside the frame has mask 0."""
    num_u, num_v, h, w = views.shape
    centre = views[num_u // 2, num_v // 2]
    masks = np.zeros(views.shape)
    for u, v, y, x in itertools.product(range(num_u), range(num_v), range(h), range(w)):
        source_y = y + (num_u // 2 - u) * disparity[y, x]
        source_x = x + (num_v // 2 - v) * disparity[y, x]
        if 0 <= source_y <= h - 1 and 0 <= source_x <= w - 1:
            residual = abs(bilinear(views[u, v], source_y, source_x) - centre[y, x])
            masks[u, v, y, x] = abs(1 - residual) ** q
    return masks


def regression(scores):
    """Eq. 9: scores (d, h, w) to the expected disparity (h, w)."""
    disparity = np.zeros(scores.shape[1:])
    for y, x in np.ndindex(*disparity.shape):
        weights = [np.exp(score - scores[:, y, x].max()) for score in scores[:, y, x]]
        for level, weight in zip(LEVELS, weights, strict=True):
            disparity[y, x] += level * weight / sum(weights)
    return disparity


# The authors' program, on the tensors of their checkpoint.


def authors_shapes():
    """Every name in their checkpoint and its shape."""
    shapes = {}

    def conv(name, *shape, bias=False):
        shapes[f"{name}.weight"] = shape
        if bias:
            shapes[f"{name}.bias"] = (shape[0],)

    def norm(name, channels):
        for kind in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{name}.{kind}"] = (channels,)
        shapes[f"{name}.num_batches_tracked"] = ()

    conv("init_feature.0", 16, 1, 1, 3, 3)
    norm("init_feature.1", 16)
    for number in range(2, 10):
        for step in (0, 3):
            conv(f"init_feature.{number}.conv.{step}", 16, 16, 1, 3, 3, bias=True)
            norm(f"init_feature.{number}.conv.{step + 1}", 16)
    conv("init_feature.10", 16, 16, 1, 3, 3)
    norm("init_feature.11", 16)
    conv("init_feature.13", 8, 16, 1, 3, 3)
    norm("init_feature.14", 8)
    conv("lastconv", 8, 8, 1, 3, 3)
    conv("build_cost.oacc.fuse", 512, 81, 1, 1)
    conv("aggregate.sq.0", 160, 512, 1, 1, 1)
    norm("aggregate.sq.1", 160)
    bodies = ("Conv1.0", "Conv2.0", "Resb1.body.0", "Resb1.body.3", "Resb2.body.0", "Resb2.body.3")
    for body in (*bodies, "Conv3.0"):
        conv(f"aggregate.{body}", 160, 160, 3, 3, 3)
        norm(f"aggregate.{body[:-1]}{int(body[-1]) + 1}", 160)
    for block in ("Resb1", "Resb2"):
        conv(f"aggregate.{block}.calayer.conv_du.0", 10, 160, 1, 1, 1, bias=True)
        norm(f"aggregate.{block}.calayer.conv_du.1", 10)
        conv(f"aggregate.{block}.calayer.conv_du.3", 160, 10, 1, 1, 1, bias=True)
        norm(f"aggregate.{block}.calayer.conv_du.4", 160)
    conv("aggregate.Conv4", 1, 160, 3, 3, 3)
    return shapes


def random_authors_state(seed=0):
    """Random weights in their layout, as large as those from which their training starts."""
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape in authors_shapes().items():
        values = torch.rand(shape, generator=generator)
        if name.endswith("num_batches_tracked"):
            state[name] = torch.tensor(7)
        elif len(shape) > 1:
            state[name] = (2 * values - 1) / np.sqrt(np.prod(shape[1:]))
        elif name.endswith(("running_mean", "bias")):
            state[name] = values - 0.5
        else:  # scale of a norm, running variance
            state[name] = values + 0.5
    return state


def batch_norm(state, name, x):
    """Over everything but the channels, with the statistics of the batch itself."""
    axes = [0, *range(2, x.ndim)]
    shape = (1, -1, *([1] * (x.ndim - 2)))
    mean = x.mean(axes).view(shape)
    variance = ((x - mean) ** 2).mean(axes).view(shape)
    normal = (x - mean) / torch.sqrt(variance + 1e-5)
    return normal * state[f"{name}.weight"].view(shape) + state[f"{name}.bias"].view(shape)


def convolve(state, name, x):
    weight = state[f"{name}.weight"]
    padding = [size // 2 for size in weight.shape[2:]]
    return F.conv3d(x, weight, state.get(f"{name}.bias"), padding=padding)


def steps(state, stem, number, x):
    """Convolution `number` of a sequence and the norm after it."""
    return batch_norm(state, f"{stem}.{number + 1}", convolve(state, f"{stem}.{number}", x))


def leaky(x):
    return torch.where(x > 0, x, 0.1 * x)


def authors_features(state, views):
    """(b, 81, h, w) to (b, 8, 81, h, w)."""
    x = steps(state, "init_feature", 0, views[:, None])
    for number in range(2, 10):
        stem = f"init_feature.{number}.conv"
        x = x + steps(state, stem, 3, leaky(steps(state, stem, 0, x)))
    x = leaky(steps(state, "init_feature", 10, x))
    x = leaky(steps(state, "init_feature", 13, x))
    return convolve(state, "lastconv", x)


def authors_cost(state, features, mask):
    """Features (b, 8, 81, h, w) and masks (b, 81, h, w) to (b, 512, 9, h, w)."""
    b, channels, _, h, w = features.shape
    kernel = state["build_cost.oacc.fuse.weight"].view(channels, 64, 81)
    padded = F.pad(features, (16, 16, 16, 16))
    volume = []
    for d in LEVELS:
        cost = torch.zeros(b, channels, 64, h, w)
        for k in range(81):
            top, left = 16 - (k // 9 - 4) * d, 16 - (k % 9 - 4) * d
            sample = padded[:, :, k, top : top + h, left : left + w] * mask[:, k, None]
            cost += sample[:, :, None] * kernel[:, :, k, None, None]
        volume.append(cost.reshape(b, -1, h, w) / mask.mean(1, keepdim=True))
    return torch.stack(volume, 2)


def authors_scores(state, volume):
    """(b, 512, 9, h, w) to (b, 9, h, w)."""
    x = leaky(steps(state, "aggregate.sq", 0, volume))
    x = leaky(steps(state, "aggregate.Conv1", 0, x))
    x = leaky(steps(state, "aggregate.Conv2", 0, x))
    for block in ("Resb1", "Resb2"):
        stem = f"aggregate.{block}"
        y = steps(state, f"{stem}.body", 3, leaky(steps(state, f"{stem}.body", 0, x)))
        gate = y.mean((3, 4), keepdim=True)
        gate = leaky(steps(state, f"{stem}.calayer.conv_du", 0, gate))
        gate = 1 / (1 + torch.exp(-steps(state, f"{stem}.calayer.conv_du", 3, gate)))
        x = x + y * gate
    x = leaky(steps(state, "aggregate.Conv3", 0, x))
    return convolve(state, "aggregate.Conv4", x)[:, 0]


def authors_masks(views, disparity):
    """Views (b, 81, h, w), disparity (b, h, w): their warp, pixel by pixel, zeros outside."""
    masks = torch.ones_like(views)
    _, _, h, w = views.shape
    pictures, shifts = views.double().numpy(), disparity.double().numpy()
    for b, k, y, x in np.ndindex(*views.shape):
        if k == 40:
            continue
        source_y = y * h / (h - 1) - 0.5 - (k // 9 - 4) * shifts[b, y, x]
        source_x = x * w / (w - 1) - 0.5 - (k % 9 - 4) * shifts[b, y, x]
        residual = abs(bilinear(pictures[b, k], source_y, source_x) - pictures[b, 40, y, x])
        masks[b, k, y, x] = (1 - residual) ** 2
    return masks


def authors_network(state, views):
    """Tiles (b, 81, h, w) to disparities (b, h, w), in two passes."""
    features = authors_features(state, views)
    mask = torch.ones_like(views)
    for number in range(2):
        scores = authors_scores(state, authors_cost(state, features, mask))
        levels = torch.tensor(LEVELS)[:, None, None]
        disparity = (torch.softmax(scores, 1) * levels).sum(1)
        if number == 0:
            mask = authors_masks(views, disparity)
    return disparity


@torch.no_grad()
def authors_program(state, grey, tile=128):
    """Grey views (9, 9, h, w) to the disparity (h, w) that their program writes."""
    h, w = grey.shape[2:]
    kept, border = tile // 2, tile // 4
    extent = (border, border + kept - 1)  # the mirror repeats the last pixel
    mirrored = np.pad(grey.reshape(81, h, w), ((0, 0), extent, extent), mode="symmetric")
    corners = list(
        itertools.product(
            range(0, mirrored.shape[1] - tile + 1, kept),
            range(0, mirrored.shape[2] - tile + 1, kept),
        )
    )
    result = np.zeros((h + kept, w + kept), np.float32)
    for first in range(0, len(corners), 4):
        group = corners[first : first + 4]
        tiles = np.stack([mirrored[:, y : y + tile, x : x + tile] for y, x in group])
        disparities = authors_network(state, torch.from_numpy(tiles))
        for (y, x), disparity in zip(group, disparities.numpy(), strict=True):
            middle = disparity[border : border + kept, border : border + kept]
            result[y : y + kept, x : x + kept] = middle
    return result[:h, :w]


# The evidence of the fast network: sectors, votes, masks, aggregation (docs/method.md).

ABSENT = 1e6


def sector(step):
    """Number of the sector of 22.5 degrees of a camera that sees a point `step` pixels away."""
    # the camera is opposite; sector 0 is around the camera row to the left, then clockwise
    up, left = step
    angle = np.degrees(np.arctan2(up, left)) % 360
    return int(np.floor((angle + 11.25 + 0.01) / 22.5)) % 16


def difference(picture, reference, y, x, margin, step, disparity):
    """Summed colour difference of one sample to a reference pixel; None if there is no sample."""
    source_y, source_x = y + margin + step[0] * disparity, x + margin + step[1] * disparity
    height, width = picture.shape[1:]
    if reference[0, y, x] > 1:
        return None
    if not (-1e-3 <= source_y <= height - 1 + 1e-3 and -1e-3 <= source_x <= width - 1 + 1e-3):
        return None
    total = 0.0
    for c in range(len(picture)):
        top, left = np.floor(source_y + 1e-3), np.floor(source_x + 1e-3)
        low, right = max(source_y - top, 0.0), max(source_x - left, 0.0)
        low, right = (0.0 if part < 2e-3 else part for part in (low, right))
        value = 0.0
        for dy, dx in itertools.product((0, 1), (0, 1)):
            weight = (low if dy else 1 - low) * (right if dx else 1 - right)
            if weight:
                value += weight * picture[c, int(top) + dy, int(left) + dx]
        total += abs(value - reference[c, y, x])
    return total if total < 4 else None


def means(votes, sectors, least):
    """Mean of (vote, weight) pairs: over all views, the least of a half-plane, of an axis.

    A half-plane is eight sectors in a row, an axis two opposite ones.
    """

    def mean(chosen, enough):
        count = sum(w for _, w in chosen)
        return sum(v * w for v, w in chosen) / count if count >= enough else None

    def within(belongs):
        return [pair for pair, number in zip(votes, sectors, strict=True) if belongs(number)]

    full = mean(votes, 1e-3) or 0.0
    halves = [mean(within(lambda n, z=z: (n - z) % 16 < 8), least) for z in range(16)]
    axes = [mean(within(lambda n, z=z: (n - z) % 8 == 0), least) for z in range(8)]
    half, axis = (
        min((m for m in found if m is not None), default=full) for found in (halves, axes)
    )
    return full, half, axis


def evidence_at(pictures, reference, steps, margin, y, x, disparity, gain, weights=None):
    """The three means of the votes of one pixel at one disparity and gain."""
    channels = len(reference)
    votes = []
    for k, (picture, step) in enumerate(zip(pictures, steps, strict=True)):
        found = difference(picture, reference, y, x, margin, step, disparity)
        weight = 1.0 if weights is None else weights[k]
        votes.append((0.0, 0.0) if found is None else (min(1.0, found * gain / channels), weight))
    least = max(1.0, 0.1 * len(pictures))
    return means(votes, [sector(step) for step in steps], least)


def masks_at(pictures, reference, steps, margin, y, x, disparity, q):
    """Eq. 8 of every view at one pixel, and how many samples exist."""
    found = [
        difference(picture, reference, y, x, margin, step, disparity)
        for picture, step in zip(pictures, steps, strict=True)
    ]
    masks = [0.0 if r is None else max(0.0, 1 - r / len(reference)) ** q for r in found]
    there = sum(r is not None for r in found)
    return masks, there


def sees(disparity, step, y, x):
    """Whether a view sees a point, by the map (h, w) alone: no nearer pixel lands where it does.

    Within 2 px of the point, and beyond, as far as its own disparity carries it.
    """
    height, width = disparity.shape
    length = float(np.hypot(*step))
    for distance in range(1, height + width):
        other_y = y + int(np.floor(0.5 - distance * step[0] / length))
        other_x = x + int(np.floor(0.5 - distance * step[1] / length))
        if not (0 <= other_y < height and 0 <= other_x < width):
            return True
        nearer = disparity[other_y, other_x] - disparity[y, x]
        if nearer >= 0.1 and nearer * length >= distance - 2:
            return False
    return True


def seen_by(disparity, steps, y, x):
    """Which views see a point; all, if the map says that none does."""
    found = [sees(disparity, step, y, x) for step in steps]
    return found if any(found) else [True] * len(found)


def lead_at(pictures, reference, steps, margin, y, x, disparity):
    """How much less the views are against a disparity at one pixel than against one beside it."""

    def against(tried):
        found = [
            difference(picture, reference, y, x, margin, step, tried)
            for picture, step in zip(pictures, steps, strict=True)
        ]
        there = [one / len(reference) for one in found if one is not None]
        return sum(one / (one + 0.01) for one in there) / len(there) if there else 1.0

    return min(against(disparity + away) for away in (-1, -0.5, 0.5, 1)) - against(disparity)


def best_paths(cost, jump_between, step, dy, dx):
    """Dynamic programming along one direction: (h, w, l), each pixel from the previous one."""
    height, width, levels = cost.shape
    path = np.zeros(cost.shape, np.int64)
    rows = range(height) if dy >= 0 else range(height - 1, -1, -1)
    columns = range(width) if dx >= 0 else range(width - 1, -1, -1)
    for y, x in itertools.product(rows, columns):
        before = (y - dy, x - dx)
        if not (0 <= before[0] < height and 0 <= before[1] < width):
            path[y, x] = cost[y, x]
            continue
        last, jump = path[before], jump_between((y, x), before)
        for level in range(levels):
            ways = [last[level], last.min() + jump]
            ways += [last[n] + step for n in (level - 1, level + 1) if 0 <= n < levels]
            path[y, x, level] = cost[y, x, level] + min(ways) - last.min()
    return path


def semi_global(cost, reference, step=8, jump=127, edge=30.0):
    """Sum over eight directions, minus its minimum over the levels, divided by eight."""

    def jump_between(one, other):
        pixels = [reference[:, place[0], place[1]] for place in (one, other)]
        contrast = min(1.0, np.abs(pixels[0] - pixels[1]).max())
        return int(step + (jump - step) / (1 + edge * contrast) + 0.5)

    total = np.zeros(cost.shape, np.int64)
    for dy, dx in itertools.product((-1, 0, 1), (-1, 0, 1)):
        if (dy, dx) != (0, 0):
            total += best_paths(cost.astype(np.int64), jump_between, step, dy, dx)
    above = total - total.min(-1, keepdims=True)
    return np.minimum(above // 8, 255).astype(np.uint8)


def surfaces_at(disparity, views, far, near, y, x):
    """What is known about the two surfaces near one pixel (see `evidence.surfaces`).

    `views` are pictures, reference, steps and margin.
    """
    pictures, picture, steps, margin = views
    height, width = disparity.shape
    known = {0: [], 1: []}  # far and near: (weight, disparity, colour) of each neighbour
    for i, j in itertools.product(range(y - 4, y + 5), range(x - 4, x + 5)):
        if (i, j) == (y, x) or not (0 <= i < height and 0 <= j < width):
            continue
        around = disparity[max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2]
        pure = 1 / (1 + ((around.max() - around.min()) / 0.1) ** 2)
        position = min(max((disparity[i, j] - far) / (near - far), 0), 1)
        weight = np.exp(-np.hypot(i - y, j - x) / 1.5) * pure
        for side, belongs in ((0, 1 - position), (1, position)):
            known[side].append((weight * belongs**4, disparity[i, j], picture[:, i, j]))
    weights, places, colours, lights, variations = [], [], [], [], []
    for side in (0, 1):
        share, values, tones = map(np.array, zip(*known[side], strict=True))
        weights.append(share.sum() + 1e-6)
        places.append((share * values).sum() / share.sum())
        mean = (share[:, None] * tones).sum(0) / share.sum()
        colours.append(mean)
        lights.append((share[:, None] * tones**2).sum(0) / share.sum())
        spread = (share[:, None] * (tones - mean) ** 2).sum() / share.sum()
        variations.append(np.sqrt(spread / len(picture)))

    def covered(own, behind, front):
        apart = front - behind
        return np.clip(((own - behind) @ apart) / (apart @ apart), -0.5, 1.5)

    def mean_colour(place):
        seen = []
        for view, step in zip(pictures, steps, strict=True):
            source_y, source_x = y + margin + step[0] * place, x + margin + step[1] * place
            if 0 <= source_y <= view.shape[1] - 1 and 0 <= source_x <= view.shape[2] - 1:
                seen.append([bilinear(channel, source_y, source_x) for channel in view])
        return np.mean([colour for colour in seen if max(colour) < 4], 0)

    own = picture[:, y, x]
    shares = [covered(own, *colours), covered(own**2, *lights)]
    shares += [covered(mean_colour(place), *colours) for place in reversed(places)]
    apart = colours[1] - colours[0]
    rest = own - colours[0] - np.clip(shares[0], 0, 1) * apart
    contrast, misfit = (np.sqrt(np.mean(x**2)) for x in (apart, rest))
    signs = [share - 0.5 for share in shares]
    unsure = [min(one / contrast, 2) for one in (misfit, *variations)]
    return [*places, *signs, contrast, *unsure, min(weights)]


def shared_texture(one, other, y, x):
    """How alike the slopes of two pictures (c, h, w) are around a pixel, as `reach.textured`."""
    height, width = one.shape[1:]

    def slopes(picture, i, j):
        up, down, left, right = (
            max(i - 1, 0),
            min(i + 1, height - 1),
            max(j - 1, 0),
            min(j + 1, width - 1),
        )
        across = [float(c[i, right] - c[i, left]) / 2 for c in picture]
        return across + [float(c[down, j] - c[up, j]) / 2 for c in picture]

    around = [
        (slopes(one, i, j), slopes(other, i, j))
        for i in range(max(y - 6, 0), min(y + 7, height))
        for j in range(max(x - 6, 0), min(x + 7, width))
    ]
    both = sum(a * b for p, q in around for a, b in zip(p, q, strict=True)) / len(around)
    first = sum(a * a for p, _ in around for a in p) / len(around)
    second = sum(b * b for _, q in around for b in q) / len(around)
    alike = both / max((first * second) ** 0.5, 1e-12)
    least = 0.00013 / 20
    return max(0.0, min(alike / 0.17 - 1, both / least - 1, 1.0))


def edge_signs_at(maps, normals, y, x):
    """What is told of one pixel on an edge (see `evidence.edges`), after the signs of its own.

    From maps of trust, position and trusted share, and the direction (down, right) across each
    pixel's edge.
    """
    height, width = maps.shape[1:]

    def look(along, across):
        down, right = normals[:, y, x]
        at_y = min(max(y + along * right + across * down, 0), height - 1)
        at_x = min(max(x - along * down + across * right, 0), width - 1)
        top, left = min(int(at_y), height - 2), min(int(at_x), width - 2)
        return bilinear(
            maps[:, top : top + 2, left : left + 2].transpose(1, 2, 0), at_y - top, at_x - left
        )

    signs = []
    for radius, across in ((1, 0), (3, 0), (6, 0), (2, -2), (2, -1), (2, 1), (2, 2)):
        weights = [math.comb(2 * radius, k) / 4**radius for k in range(2 * radius + 1)]
        places = range(-radius, radius + 1)
        trust, position, share = sum(
            weight * look(along, across) for weight, along in zip(weights, places, strict=True)
        )
        signs += [trust, position, share / (trust + 0.02)]
    return signs
