// Pixels worth a first look.
import { valueAt } from "./scene.js";

const SUBJECT_BINS = 48;

/**
 * A pixel next to an edge, on the surface behind it, where some views are occluded. The middle of
 * the picture if there is no such edge.
 */
export function findTellingPixel(scene) {
  const { width, height, disparity, extent } = scene;
  const reach = Math.max(2, Math.round(Math.max(width, height) / 128));
  let best = { x: width >> 1, y: height >> 1, score: (extent.usual[1] - extent.usual[0]) / 8 };
  for (let y = Math.round(height * 0.2); y < height * 0.8; y += reach)
    for (let x = Math.round(width * 0.1); x < width * 0.9; x += reach) {
      if (Math.abs(x - width / 2) < width * 0.08) continue; // under the handle of the wipe
      const around = [-reach, reach].map((dx) => valueAt(scene, disparity, x + dx, y));
      const own = valueAt(scene, disparity, x, y);
      if (own === null || around.includes(null)) continue;
      const flat = Math.min(...around.map((value) => Math.abs(value - own)));
      const score = (Math.max(...around) - own - 4 * flat) * (scene.confidence[y * width + x] / 255) ** 2;
      if (score > best.score) best = { x, y, score };
    }
  return { x: best.x, y: best.y };
}

/**
 * A pixel of the subject: near, large and close to the middle. Finds the disparity with the largest
 * weight, where nearer and more central pixels weigh more, and then its most central pixel.
 */
export function findSubject(scene) {
  const { width, height, extent } = scene;
  const [low, high] = extent.usual;
  const weights = new Float64Array(SUBJECT_BINS);
  const nearest = Array.from({ length: SUBJECT_BINS }, () => ({ distance: Infinity }));
  const step = Math.max(1, Math.round(Math.max(width, height) / 256));
  for (let y = 0; y < height; y += step)
    for (let x = 0; x < width; x += step) {
      const d = valueAt(scene, scene.disparity, x, y);
      if (d === null) continue;
      const part = Math.min(Math.max((d - low) / (high - low), 0), 1);
      const bin = Math.min(Math.floor(part * SUBJECT_BINS), SUBJECT_BINS - 1);
      const distance = Math.hypot(x / width - 0.5, y / height - 0.5) / 0.5;
      const sure = scene.confidence[y * width + x] / 255;
      weights[bin] += (0.03 + part ** 1.5) * Math.exp(-3 * distance * distance) * (0.1 + sure);
      if (distance < nearest[bin].distance) nearest[bin] = { x, y, distance };
    }
  const smooth = weights.map((own, i) => (weights[i - 1] ?? 0) + 2 * own + (weights[i + 1] ?? 0));
  const { x, y } = nearest[smooth.indexOf(Math.max(...smooth))];
  return x === undefined ? { x: width >> 1, y: height >> 1 } : { x, y };
}
