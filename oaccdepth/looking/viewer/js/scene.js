// The scene of this page: its arrays, and questions about single pixels. No pictures on the screen.
import { takeFloats, takeInflated, takePicture } from "./blocks.js";

export const NOT_KNOWN = -1e29; // every disparity below it stands for "no number here"

/** Read everything that the first picture needs; views, masks and evidence follow later. */
export async function loadScene(meta) {
  const [width, height] = meta.size;
  const scene = { meta, width, height, passes: [], evidence: null };
  const passNames = meta.passes.filter((name) => name !== "disparity");
  const [disparity, confidence, truth, colours, centre, ...passes] = await Promise.all([
    takeFloats("disparity", width, height),
    takeInflated("confidence"),
    takeFloats("truth", width, height),
    takeInflated("colours"),
    takePicture("centre"),
    ...passNames.map((name) => takeFloats(name, width, height)),
  ]);
  Object.assign(scene, { disparity, confidence, truth, colours, centre });
  scene.passes = meta.passes.map((name) =>
    name === "disparity" ? disparity : passes[passNames.indexOf(name)],
  );
  const [rows, columns] = meta.grid ?? [1, 1];
  scene.grid = { rows, columns, middle: { u: rows >> 1, v: columns >> 1 } };
  scene.extent = findExtent(disparity);
  return scene;
}

/** Read the evidence, if the page has it. */
export async function loadEvidence(scene) {
  const values = await takeInflated("evidence");
  if (values) scene.evidence = { ...scene.meta.evidence, values };
}

/** Places of all masks, as `loadPictures` wants them. */
export function maskPlaces({ meta }) {
  const [rows, columns] = meta.masks?.grid ?? [0, 0];
  return Array.from({ length: rows * columns }, (_, k) => [Math.floor(k / columns), k % columns]);
}

/** Read "view" or "mask" pictures from the centre outwards; call `use(bitmap, u, v)` for each. */
export async function loadPictures(scene, kind, unordered, use) {
  const { u: cu, v: cv } = scene.grid.middle;
  const distance = ([u, v]) => Math.hypot(u - cu, v - cv);
  const places = [...unordered].sort((a, b) => distance(a) - distance(b));
  for (let start = 0; start < places.length; start += 9) {
    await Promise.all(
      places.slice(start, start + 9).map(async ([u, v]) => {
        const bitmap = await takePicture(`${kind}-${u}-${v}`);
        use(bitmap, u, v);
        bitmap.close();
      }),
    );
  }
}

/** Smallest and largest disparity, and the range without the outermost half percent at each end. */
function findExtent(values) {
  const step = Math.ceil(values.length / 300_000); // some values tell the shares of all
  const known = values.filter((value, i) => value > NOT_KNOWN && i % step === 0).sort();
  if (!known.length) return { full: [0, 1], usual: [0, 1], known: false };
  for (const value of values) {
    if (value > NOT_KNOWN && value < known[0]) known[0] = value;
    if (value > known[known.length - 1]) known[known.length - 1] = value;
  }
  const at = (part) => known[Math.round(part * (known.length - 1))];
  const apart = ([low, high]) => (high - low > 1e-3 ? [low, high] : [low - 0.5, high + 0.5]);
  return { full: apart([at(0), at(1)]), usual: apart([at(0.005), at(0.995)]), known: true };
}

/** Value of a map at a pixel, or null if it is not known there. */
export function valueAt(scene, map, x, y) {
  if (!map || x < 0 || y < 0 || x >= scene.width || y >= scene.height) return null;
  const value = map[y * scene.width + x];
  return value > NOT_KNOWN ? value : null;
}

/**
 * A pixel worth a first look: beside an edge, on the surface behind it, where some views are
 * occluded. The middle of the picture if nothing stands out.
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
 * Where a point seen at (x, y) from a moved camera lies in the centre view: q = p + d * steps, with
 * the largest d that is the disparity at q, for what is nearer hides what is behind it. Tried from
 * near to far, in steps of two thirds of a pixel; where the centre view sees no such point, what
 * fits best. The shader does the same.
 */
export function toCentre(scene, point, camera) {
  const length = Math.hypot(camera.x, camera.y);
  if (!length) return { x: point.x, y: point.y };
  const [low, high] = scene.extent.full;
  const steps = Math.min(Math.max(Math.ceil(1.5 * length * (high - low)), 1), 96);
  const stride = (high - low) / steps;
  const inside = (value, size) => Math.min(Math.max(Math.floor(value), 0), size - 1);
  let [best, found] = [Infinity, 0];
  for (let i = 0; i <= steps && best > 0.75 * stride; i++) {
    const level = high - stride * i;
    const column = inside(point.x + level * camera.x, scene.width);
    const row = inside(point.y + level * camera.y, scene.height);
    const d = valueAt(scene, scene.disparity, column, row);
    if (d !== null && Math.abs(d - level) < best) [best, found] = [Math.abs(d - level), d];
  }
  return { x: point.x + found * camera.x, y: point.y + found * camera.y };
}

/** The matching evidence at a pixel over `levels`, or null if none was kept. */
export function evidenceAt(scene, x, y) {
  if (!scene.evidence) return null;
  const { values, size, step, levels, largest } = scene.evidence;
  const place = Math.floor(y / step) * size[0] + Math.floor(x / step);
  const area = size[0] * size[1];
  return { levels, step, shares: levels.map((_, d) => values[d * area + place] / largest) };
}

/** A number with a true minus; zero has no sign. */
export function signed(value, digits = 3) {
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}

/** A length in the unit that suits it. */
export function formatDepth(mm) {
  if (mm === null) return "–";
  if (!Number.isFinite(mm)) return "∞";
  return mm >= 1000 ? `${(mm / 1000).toFixed(mm >= 1e5 ? 0 : 2)} m` : `${mm.toFixed(1)} mm`;
}
