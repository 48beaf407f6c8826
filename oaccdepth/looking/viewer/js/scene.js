// The scene of this page: its arrays, and questions about single pixels. No pictures on the screen.
import { takeFloats, takeInflated, takePicture } from "./blocks.js";

export const NOT_KNOWN = -1e29; // any disparity below it means "unknown"

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

/** Grid positions of all masks, for `loadPictures`. */
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
  const step = Math.ceil(values.length / 300_000); // a sample is enough for percentiles
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

/** Value of a map at a pixel, or null if it is unknown there. */
export function valueAt(scene, map, x, y) {
  if (!map || x < 0 || y < 0 || x >= scene.width || y >= scene.height) return null;
  const value = map[y * scene.width + x];
  return value > NOT_KNOWN ? value : null;
}

/** The matching evidence at a pixel over `levels`, or null if none was kept. */
export function evidenceAt(scene, x, y) {
  if (!scene.evidence) return null;
  const { values, size, step, levels, largest } = scene.evidence;
  const place = Math.floor(y / step) * size[0] + Math.floor(x / step);
  const area = size[0] * size[1];
  return { levels, step, shares: levels.map((_, d) => values[d * area + place] / largest) };
}

/** A number with a typographic minus sign; zero has no sign. */
export function signed(value, digits = 3) {
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}

