// From pixels to 3D: depth, the rays of the centre camera, and what a moved camera sees.
import { NOT_KNOWN } from "./scene.js";

// If the camera is unknown, as in point_cloud.py: the field of view of the larger side, and how
// much nearer one pixel of disparity is, in units of the larger side.
const ANGLE = 0.6;
const RELIEF = 1 / 16;

/** Depth [mm] of a disparity [px]: null without a camera, Infinity beyond infinity. */
export function depthOf(scene, disparity) {
  const camera = scene.meta.camera;
  if (!camera || disparity === null) return null;
  const beta = camera.baseline * camera.focal * Math.max(scene.width, scene.height);
  const offset = camera.focus === 0 ? 0 : beta / camera.focus;
  const denominator = disparity * camera.sensor + offset;
  return denominator > 0 ? beta / denominator : Infinity;
}

/**
 * The space of the cloud. Its unit is the depth of the median disparity; the centre camera is at
 * the origin and looks along -z. A pixel of disparity d has the depth 1 / (1 + slope * (d -
 * median)) and lies on its own ray: `pitch` is the width of a pixel at depth 1. `step` is the
 * distance from one view to the next.
 */
export function makeSpace(scene) {
  const { width, height, meta } = scene;
  const larger = Math.max(width, height);
  const isPlaced = (d) => d > NOT_KNOWN && (!meta.camera || Number.isFinite(depthOf(scene, d)));
  const known = scene.disparity.filter(isPlaced).sort();
  const median = known.length ? known[known.length >> 1] : 0;
  if (!meta.camera) {
    const pitch = (2 * Math.tan(ANGLE / 2)) / larger;
    // The farthest point is at most five times as far away as the median.
    const steepest = known.length && median > known[0] ? 0.8 / (median - known[0]) : Infinity;
    const slope = Math.min(RELIEF * pitch * larger, steepest);
    return { pitch, slope, median, step: pitch / slope, isPlaced };
  }
  const { sensor, focal, baseline } = meta.camera;
  const depth = depthOf(scene, median);
  const pitch = sensor / larger / focal;
  const slope = (pitch * depth) / baseline;
  return { pitch, slope, median, step: baseline / depth, isPlaced };
}

/**
 * Disparities without flying points between two surfaces: a pixel with a much nearer and a much
 * farther neighbour moves to the closer of the two. Such rims come from pixels that mix two
 * surfaces; a moved camera would see them floating in the gap.
 */
export function snapEdges(scene) {
  const { width, height, extent } = scene;
  const step = edgeStep(extent);
  let map = scene.disparity;
  for (let pass = 0; pass < 3; pass++) {
    const next = map.slice();
    for (let y = 1; y < height - 1; y++)
      for (let i = y * width + 1; i < (y + 1) * width - 1; i++) {
        const [a, b, c, d, own] = [map[i - 1], map[i + 1], map[i - width], map[i + width], map[i]];
        const [near, far] = [Math.max(a, b, c, d), Math.min(a, b, c, d)];
        if (near - own > step && own - far > step && far > NOT_KNOWN)
          next[i] = near - own < own - far ? near : far;
      }
    map = next;
  }
  return joinSpecks(scene, map, step);
}

/** An isolated pixel takes the disparity of its most similar neighbour. */
function joinSpecks({ width, height }, map, step) {
  const joined = map.slice();
  for (let y = 1; y < height - 1; y++)
    for (let i = y * width + 1; i < (y + 1) * width - 1; i++) {
      let [friends, closest] = [0, Infinity];
      for (let row = i - width; row <= i + width; row += width)
        for (let j = row - 1; j <= row + 1; j++) {
          if (j === i || map[j] <= NOT_KNOWN) continue;
          friends += Math.abs(map[j] - map[i]) < step;
          if (Math.abs(map[j] - map[i]) < Math.abs(closest - map[i])) closest = map[j];
        }
      if (friends < 2 && closest < Infinity && map[i] > NOT_KNOWN) joined[i] = closest;
    }
  return joined;
}

/** From this difference [px] on, neighbours belong to two surfaces. */
export const edgeStep = ({ usual }) => Math.max(0.025 * (usual[1] - usual[0]), 0.02);

/**
 * What a moved camera sees at (px, py): [x, y, d, isHidden] into `seen`, x and y in the centre view.
 * The first surface from near to far, in steps of two thirds of a pixel, with disparity d at
 * p + d * camera. If the centre view does not see it, the surface next to it. The shader does the
 * same.
 */
export function march(scene, px, py, right, down, seen) {
  const { solid, width, height } = scene;
  const [low, high] = scene.extent.full;
  const length = Math.hypot(right, down);
  const steps = Math.min(Math.max(Math.ceil(1.5 * length * (high - low)), 1), 96);
  const stride = (high - low) / steps;
  let [x, y, d, earlierX, earlierY, earlierD] = [px, py, Infinity, px, py, Infinity];
  for (let i = 0; i <= steps && length; i++) {
    const level = high - stride * i;
    const [qx, qy] = [px + level * right, py + level * down];
    const column = Math.min(Math.max(Math.floor(qx), 0), width - 1);
    const row = Math.min(Math.max(Math.floor(qy), 0), height - 1);
    const own = solid[row * width + column];
    if (own <= NOT_KNOWN) continue;
    if (own < level - 0.5 * stride) {
      [earlierX, earlierY, earlierD] = [x, y, d];
      [x, y, d] = [qx, qy, own];
    } else if (d === Infinity || own <= level + 2.5 * stride) {
      [seen[0], seen[1], seen[2], seen[3]] = [px + own * right, py + own * down, own, 0];
      return;
    } else break;
  }
  if (earlierD < d) [x, y, d] = [earlierX, earlierY, earlierD];
  [seen[0], seen[1], seen[2], seen[3]] = [x, y, d === Infinity ? 0 : d, d === Infinity ? 0 : 1];
}

/** The same for one position: where it is in the centre view. */
export function toCentre(scene, point, camera) {
  const seen = [0, 0, 0, 0];
  march(scene, point.x, point.y, camera.x, camera.y, seen);
  return { x: seen[0], y: seen[1] };
}

/** A length in a suitable unit. */
export function formatDepth(mm) {
  if (mm === null) return "–";
  if (!Number.isFinite(mm)) return "∞";
  return mm >= 1000 ? `${(mm / 1000).toFixed(mm >= 1e5 ? 0 : 2)} m` : `${mm.toFixed(1)} mm`;
}
