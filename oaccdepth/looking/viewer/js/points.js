// The points of the cloud: every pixel of the centre view, and what only other views see.
import { NOT_KNOWN } from "./scene.js";
import { edgeStep, toCentre } from "./space.js";

const MOST_POINTS = 1_200_000; // of larger pictures only some pixels become points
const HIDDEN = { confidence: 128, steepness: 12 }; // of points that the centre view does not see

/** Points under construction: lists that grow. */
class PointList {
  constructor(scene, space) {
    Object.assign(this, { scene, space, places: [], paints: [], steeps: [], pixels: [] });
  }

  /** `pixel` is the pixel that a click on the point inspects. */
  add(x, y, d, [red, green, blue], confidence, steep, pixel) {
    const { width, height } = this.scene;
    this.places.push(x - (width - 1) / 2, (height - 1) / 2 - y, d);
    this.paints.push(red, green, blue, confidence);
    this.steeps.push(steep);
    this.pixels.push(pixel);
  }

  finish() {
    return {
      places: Float32Array.from(this.places),
      paints: Uint8Array.from(this.paints),
      steeps: Float32Array.from(this.steeps),
      pixels: Uint32Array.from(this.pixels),
    };
  }
}

/** All points. `photo`: the centre view, RGBA; `readView(u, v)`: the same of another view. */
export function makePoints(scene, space, photo, readView, reach) {
  const list = new PointList(scene, space);
  const step = Math.ceil(Math.sqrt((scene.width * scene.height) / MOST_POINTS));
  addVisible(list, photo, step);
  if (photo && step === 1) addHidden(list, photo, readView, reach);
  return { ...list.finish(), step };
}

const colourAt = (pixels, i) => (pixels ? pixels.subarray(4 * i, 4 * i + 3) : [128, 128, 128]);

function addVisible(list, photo, step) {
  const { width, height, solid, confidence, extent } = list.scene;
  const { isPlaced, slope, pitch, median } = list.space;
  const edge = edgeStep(extent);
  for (let y = 0; y < height; y += step)
    for (let x = 0; x < width; x += step) {
      const i = y * width + x;
      if (!isPlaced(solid[i])) continue;
      let change = 0; // to the neighbours on the same surface
      for (const j of [x ? i - 1 : i, x + 1 < width ? i + 1 : i, y ? i - width : i, y + 1 < height ? i + width : i]) {
        const difference = Math.abs(solid[j] - solid[i]);
        if (difference < edge && difference > change) change = difference;
      }
      const depth = 1 / (1 + slope * (solid[i] - median));
      list.add(x, y, solid[i], colourAt(photo, i), confidence[i], (slope * depth * change) / pitch, i);
    }
}

/**
 * A second layer behind the first: surfaces that the centre view does not see, painted by the outer
 * views, which do; beyond what those saw, continued from beside it.
 */
function addHidden(list, photo, readView, reach) {
  const { scene } = list;
  const { width, height } = scene;
  const layer = {
    disparity: new Float32Array(width * height).fill(2 * NOT_KNOWN),
    colours: new Uint8Array(4 * width * height),
  };
  for (const [u, v] of outerViews(scene)) {
    const view = readView(u, v);
    if (view) collectHidden(scene, layer, [u, v], view);
  }
  continueHidden(scene, layer, photo, reach);
  layer.disparity.forEach((d, i) => {
    if (list.space.isPlaced(d))
      list.add(i % width, Math.floor(i / width), d, colourAt(layer.colours, i), HIDDEN.confidence, HIDDEN.steepness, i);
  });
}

/** Corners and middles of the edges of the grid, as far as there are views. */
function outerViews({ grid, meta }) {
  const { rows, columns, middle } = grid;
  const has = new Set((meta.views?.places ?? []).map(([u, v]) => u * columns + v));
  const wanted = [0, middle.u, rows - 1].flatMap((u) => [0, middle.v, columns - 1].map((v) => [u, v]));
  return wanted.filter(([u, v]) => has.has(u * columns + v) && (u !== middle.u || v !== middle.v));
}

/** What one view sees and the centre view does not: into the layer, at its place in the centre view. */
function collectHidden(scene, layer, [u, v], view) {
  const { width, height, solid, extent } = scene;
  const camera = { x: v - scene.grid.middle.v, y: u - scene.grid.middle.u };
  const edge = edgeStep(extent);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const place = toCentre(scene, { x: x + 0.5, y: y + 0.5 }, camera);
      const [column, row] = [Math.floor(place.x), Math.floor(place.y)];
      if (!place.isHidden || column < 0 || row < 0 || column >= width || row >= height) continue;
      const at = row * width + column;
      // Known already, or too close to an edge to say.
      if (layer.disparity[at] > NOT_KNOWN || solid[at] < place.d + 2 * edge) continue;
      const vx = Math.min(Math.floor(((x + 0.5) * view.width) / width), view.width - 1);
      const vy = Math.min(Math.floor(((y + 0.5) * view.height) / height), view.height - 1);
      layer.disparity[at] = place.d;
      layer.colours.set(colourAt(view.pixels, vy * view.width + vx), 4 * at);
    }
}

/** Continue the surfaces behind by `reach` pixels, from the visible and the collected ones. */
function continueHidden(scene, layer, photo, reach) {
  const { width, height } = scene;
  const isInner = (i) => {
    const [x, y] = [i % width, Math.floor(i / width)];
    return x > 0 && y > 0 && x < width - 1 && y < height - 1;
  };
  let border = new Set(Array.from({ length: width * height }, (_, i) => i).filter(isInner));
  for (let pass = 0; pass < reach && border.size; pass++) {
    const found = [];
    for (const i of border) {
      const surface = layer.disparity[i] > NOT_KNOWN ? null : farthestBeside(scene, layer, photo, i);
      if (surface) found.push([i, surface]);
    }
    border = new Set();
    for (const [i, { d, colour }] of found) {
      layer.disparity[i] = d;
      layer.colours.set(colour, 4 * i);
      for (const j of [i - 1, i + 1, i - width, i + width]) if (isInner(j)) border.add(j);
    }
  }
}

/** The farthest surface beside a pixel that lies behind what is seen there; null if there is none. */
function farthestBeside({ width, solid, extent }, { disparity, colours }, photo, i) {
  const behind = solid[i] - 2 * edgeStep(extent);
  let best = null;
  for (const j of [i - 1, i + 1, i - width, i + width]) {
    const isCollected = disparity[j] > NOT_KNOWN;
    const d = isCollected ? disparity[j] : solid[j];
    if (d > NOT_KNOWN && d < behind && !(best && d >= best.d))
      best = { d, colour: colourAt(isCollected ? colours : photo, j) };
  }
  return best && { d: best.d, colour: [...best.colour] };
}
