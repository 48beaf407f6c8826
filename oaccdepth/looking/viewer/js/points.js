// The points of the cloud: every pixel of the centre view, and what only other views see.
// Loops over all pixels: plain numbers in typed arrays, no objects.
import { NOT_KNOWN } from "./scene.js";
import { edgeStep, march } from "./space.js";

const MOST_POINTS = 1_200_000; // of larger pictures only some pixels become points
const SKIN = { passes: 60, gain: 1.7 }; // successive over-relaxation
const RIM = 2; // px that a thing may be wider than its estimate
const HIDDEN = { confidence: 128, steepness: 7 }; // of points that the centre view does not see

/** Points under construction. */
class PointList {
  constructor(scene, most) {
    Object.assign(this, { scene, count: 0 });
    this.places = new Float32Array(3 * most); // px right, px up, disparity
    this.paints = new Uint8Array(4 * most); // colour, confidence
    this.steeps = new Float32Array(most);
    this.pixels = new Uint32Array(most); // the pixel that a click on the point inspects
  }

  /** A point at pixel `i`, in the colour of `source` there. */
  add(i, d, source, confidence, steepness) {
    const { width, height } = this.scene;
    const n = this.count++;
    this.places[3 * n] = (i % width) - (width - 1) / 2;
    this.places[3 * n + 1] = (height - 1) / 2 - Math.floor(i / width);
    this.places[3 * n + 2] = d;
    for (let c = 0; c < 3; c++) this.paints[4 * n + c] = source ? source[4 * i + c] : 128;
    this.paints[4 * n + 3] = confidence;
    this.steeps[n] = steepness;
    this.pixels[n] = i;
  }

  finish() {
    const { count } = this;
    return {
      places: this.places.subarray(0, 3 * count),
      paints: this.paints.subarray(0, 4 * count),
      steeps: this.steeps.subarray(0, count),
      pixels: this.pixels.subarray(0, count),
    };
  }
}

/**
 * All points. `photo`: the centre view, RGBA; `readView(u, v)`: another view; `reach`: how far [px]
 * what is hidden may be continued.
 */
export function makePoints(scene, space, photo, readView, reach) {
  const area = scene.width * scene.height;
  const step = Math.ceil(Math.sqrt(area / MOST_POINTS));
  const isFull = photo && step === 1;
  let { solid } = scene;
  for (let round = 0; isFull && round < RIM; round++) solid = claimRims(scene, solid, photo);
  const list = new PointList(Object.create(scene, { solid: { value: solid } }), isFull ? 3 * area : area);
  addVisible(list, space, photo, step);
  if (isFull) addHidden(list, space, photo, readView, reach);
  return { ...list.finish(), step };
}

/**
 * The edge of an estimate often lies a pixel inside of the thing. A pixel beside a nearer surface that
 * looks more like it than like the one behind belongs to it; else it would stay behind as an outline.
 */
function claimRims({ width, height, extent }, solid, photo) {
  const edge = edgeStep(extent);
  const claimed = solid.slice();
  const unlike = (i, j) => {
    let sum = 0;
    for (let c = 0; c < 3; c++) sum += Math.abs(photo[4 * i + c] - photo[4 * j + c]);
    return sum;
  };
  for (let y = 1; y < height - 1; y++)
    for (let i = y * width + 1; i < (y + 1) * width - 1; i++) {
      if (solid[i] <= NOT_KNOWN) continue;
      for (const step of [-1, 1, -width, width]) {
        const [near, far] = [i + step, i - step];
        if (solid[near] - solid[i] < edge || Math.abs(solid[far] - solid[i]) > edge) continue;
        if (unlike(i, near) < unlike(i, far)) claimed[i] = Math.max(claimed[i], solid[near]);
      }
    }
  return claimed;
}

function addVisible(list, { isPlaced, slope, pitch, median }, photo, step) {
  const { width, height, solid, confidence, extent } = list.scene;
  const edge = edgeStep(extent);
  for (let y = 0; y < height; y += step)
    for (let x = 0; x < width; x += step) {
      const i = y * width + x;
      const own = solid[i];
      if (!isPlaced(own)) continue;
      let change = 0; // to the neighbours on the same surface
      for (let side = 0; side < 4; side++) {
        const [nx, ny] = [x + (side === 0) - (side === 1), y + (side === 2) - (side === 3)];
        if (nx < 0 || ny < 0 || nx >= width || ny >= height) continue;
        const difference = Math.abs(solid[ny * width + nx] - own);
        if (difference < edge && difference > change) change = difference;
      }
      const depth = 1 / (1 + slope * (own - median));
      list.add(i, own, photo, confidence[i], (slope * depth * change) / pitch);
    }
}

/**
 * Two layers behind the first: surfaces that the centre view does not see, painted by the outer
 * views, which do; and behind all of these, what lies farthest beside them, continued.
 */
function addHidden(list, space, photo, readView, reach) {
  const { scene } = list;
  const area = scene.width * scene.height;
  const [collected, continued] = [emptyLayer(area), emptyLayer(area)];
  for (const [u, v] of outerViews(scene)) {
    const view = readView(u, v);
    if (view) collectHidden(scene, collected, [u, v], view);
  }
  const visible = { disparity: scene.solid, colours: photo };
  dropSpecks(scene, collected, visible);
  continueHidden(scene, [continued, collected, visible], reach);
  smoothContinued(scene, [continued, collected, visible]);
  for (const { disparity, colours } of [collected, continued])
    for (let i = 0; i < area; i++)
      if (space.isPlaced(disparity[i]))
        list.add(i, disparity[i], colours, HIDDEN.confidence, HIDDEN.steepness);
}

const emptyLayer = (area) => ({
  disparity: new Float32Array(area).fill(2 * NOT_KNOWN),
  colours: new Uint8Array(4 * area),
});

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
  const [right, down] = [v - scene.grid.middle.v, u - scene.grid.middle.u];
  const edge = 2 * edgeStep(extent);
  const seen = new Float64Array(4);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      march(scene, x + 0.5, y + 0.5, right, down, seen);
      if (!seen[3]) continue;
      const column = Math.floor(x + 0.5 + seen[2] * right);
      const row = Math.floor(y + 0.5 + seen[2] * down);
      if (column < 0 || row < 0 || column >= width || row >= height) continue;
      const at = row * width + column;
      // Known already, or too close to an edge to say.
      if (layer.disparity[at] > NOT_KNOWN || solid[at] < seen[2] + edge) continue;
      const vx = Math.min(Math.floor(((x + 0.5) * view.width) / width), view.width - 1);
      const vy = Math.min(Math.floor(((y + 0.5) * view.height) / height), view.height - 1);
      paintLayer(layer, at, seen[2], view.pixels, vy * view.width + vx);
    }
}

/** Leave out points that stand alone: they come from edges where the estimate wavers. */
function dropSpecks({ width, height, extent }, layer, visible) {
  const edge = edgeStep(extent);
  const known = layer.disparity.slice();
  for (let y = 1; y < height - 1; y++)
    for (let i = y * width + 1; i < (y + 1) * width - 1; i++) {
      const own = known[i];
      if (own <= NOT_KNOWN) continue;
      let friends = -1; // it is its own neighbour below
      for (let row = i - width; row <= i + width; row += width)
        for (let j = row - 1; j <= row + 1; j++)
          friends += Math.min(Math.abs(known[j] - own), Math.abs(visible.disparity[j] - own)) < edge;
      if (friends < 3) layer.disparity[i] = 2 * NOT_KNOWN;
    }
}

function paintLayer(layer, at, d, source, from) {
  layer.disparity[at] = d;
  for (let c = 0; c < 3; c++) layer.colours[4 * at + c] = source[4 * from + c];
}

/**
 * Continue the farthest surfaces by `reach` pixels into the first of the layers, behind all others:
 * what is farther takes the place of what came first. The layers are ordered from far to near; the
 * last one is what the centre view sees.
 */
function continueHidden(scene, layers, reach) {
  const { width, height } = scene;
  const [continued] = layers;
  let border = [];
  for (let y = 1; y < height - 1; y++)
    for (let x = 1; x < width - 1; x++) border.push(y * width + x);
  for (let pass = 0; pass < reach && border.length; pass++) {
    const from = border.map((i) => farthestBeside(scene, layers, i));
    const sources = from.map((j) => (j < 0 ? null : farthestLayer(layers, j))); // before this pass
    const next = new Set();
    border.forEach((i, n) => {
      const [j, source] = [from[n], sources[n]];
      if (!source) return;
      paintLayer(continued, i, source.disparity[j], source.colours, j);
      for (const k of [i - 1, i + 1, i - width, i + width]) {
        const [x, y] = [k % width, Math.floor(k / width)];
        if (x > 0 && y > 0 && x < width - 1 && y < height - 1) next.add(k);
      }
    });
    border = [...next];
  }
}

/** The first layer that has something at a pixel; null if none has. */
function farthestLayer(layers, i) {
  for (const layer of layers) if (layer.disparity[i] > NOT_KNOWN) return layer;
  return null;
}

/** The neighbour with the farthest surface behind all that is known at a pixel; -1: there is none. */
function farthestBeside({ width, extent }, layers, i) {
  const own = farthestLayer(layers, i);
  if (!own) return -1;
  const front = layers.at(-1).disparity;
  const edge = edgeStep(extent);
  let [best, farthest] = [-1, own.disparity[i] - edge];
  for (let side = 0; side < 4; side++) {
    const j = i + (side === 0 ? -1 : side === 1 ? 1 : side === 2 ? -width : width);
    // What is hidden behind one thing ends at its edge, but not at a single wrong pixel.
    if (front[j] > edge + Math.max(front[i], front[2 * i - j], front[3 * i - 2 * j])) continue;
    const d = farthestLayer(layers, j)?.disparity[j] ?? Infinity;
    if (d < farthest) [best, farthest] = [j, d];
  }
  return best;
}

/**
 * Stretch what was continued like a skin between the surfaces around it, in depth and colour, so
 * that no cracks and streaks are left where two of them meet behind something.
 */
function smoothContinued(scene, layers) {
  const [continued, ...seen] = layers;
  const places = [];
  continued.disparity.forEach((d, i) => d > NOT_KNOWN && places.push(i));
  const values = new Float32Array(4 * continued.disparity.length); // disparity and colour
  continued.disparity.forEach((_, i) => {
    const layer = farthestLayer(layers, i);
    if (layer) values.set([layer.disparity[i], ...layer.colours.subarray(4 * i, 4 * i + 3)], 4 * i);
  });
  const sources = findSources(scene, continued, seen, places);
  const fronts = places.map((i) => farthestLayer(seen, i).disparity[i] - edgeStep(scene.extent));
  for (let pass = 0; pass < SKIN.passes; pass++) relax(places, sources, fronts, values);
  for (const i of places) {
    continued.disparity[i] = values[4 * i];
    for (let c = 0; c < 3; c++) continued.colours[4 * i + c] = values[4 * i + 1 + c];
  }
}

/** Four pixels for every place, -1 for none: those beside it, as far as they lie behind what hides it. */
function findSources({ width, extent }, continued, seen, places) {
  const edge = edgeStep(extent);
  const isContinued = (i) => continued.disparity[i] > NOT_KNOWN;
  const farthest = (i) => farthestLayer(seen, i)?.disparity[i] ?? Infinity;
  const sources = new Int32Array(4 * places.length).fill(-1);
  places.forEach((i, n) => {
    const front = farthest(i) - edge;
    [-1, 1, -width, width].forEach((step, side) => {
      const [j, beyond] = [i + step, i + 2 * step];
      if (isContinued(j)) sources[4 * n + side] = j;
      else if (farthest(j) < front) {
        // The pixel at the edge mixes two surfaces; the next one does not.
        const isPure = !isContinued(beyond) && Math.abs(farthest(beyond) - farthest(j)) < edge;
        sources[4 * n + side] = isPure ? beyond : j;
      }
    });
  });
  return sources;
}

/** One round: every place towards the mean of its sources, but never before what hides it. */
function relax(places, sources, fronts, values) {
  for (let n = 0; n < places.length; n++) {
    const at = 4 * places[n];
    for (let c = 0; c < 4; c++) {
      let [sum, count] = [0, 0];
      for (let k = 4 * n; k < 4 * n + 4; k++) {
        if (sources[k] < 0) continue;
        sum += values[4 * sources[k] + c];
        count++;
      }
      if (count) values[at + c] += SKIN.gain * (sum / count - values[at + c]);
    }
    values[at] = Math.min(values[at], fronts[n]);
    for (let c = 1; c < 4; c++) values[at + c] = Math.min(Math.max(values[at + c], 0), 255);
  }
}
