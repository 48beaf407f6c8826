// Surfaces hidden from the centre view: taken from outer views that see them, or extrapolated.
// Loops over all pixels: plain numbers in typed arrays, no objects.
import { NOT_KNOWN } from "./scene.js";
import { edgeStep, march } from "./space.js";

const DISPUTE = 90; // colour difference (sum of RGB) from which on two views see different things
const GRAIN = 4; // px: radius of the mean that is subtracted to get the texture
const SKIN = { passes: 60, gain: 1.7 }; // successive over-relaxation

/**
 * Two layers behind that of the centre view (`scene.solid`, `photo`): hidden surfaces with the
 * colours of outer views that see them; and, behind all of these, the farthest surfaces next to
 * them, extrapolated by up to `reach` pixels.
 */
export function makeHidden(scene, photo, readView, reach) {
  const area = scene.width * scene.height;
  const [collected, continued] = [emptyLayer(area), emptyLayer(area)];
  for (const [u, v] of outerViews(scene)) {
    const view = readView(u, v);
    if (view) collectHidden(scene, collected, [u, v], view);
  }
  const visible = { disparity: scene.solid, colours: photo };
  dropSpecks(scene, collected, visible);
  const layers = [continued, collected, visible];
  continueHidden(scene, layers, reach);
  smoothContinued(scene, layers);
  return [collected, continued];
}

const emptyLayer = (area) => ({
  disparity: new Float32Array(area).fill(2 * NOT_KNOWN),
  colours: new Uint8Array(4 * area),
  isDisputed: new Uint8Array(area), // two views disagree about the colour
});

/** Corners and edge centres of the grid, where there are views. */
function outerViews({ grid, meta }) {
  const { rows, columns, middle } = grid;
  const has = new Set((meta.views?.places ?? []).map(([u, v]) => u * columns + v));
  const wanted = [0, middle.u, rows - 1].flatMap((u) => [0, middle.v, columns - 1].map((v) => [u, v]));
  return wanted.filter(([u, v]) => has.has(u * columns + v) && (u !== middle.u || v !== middle.v));
}

/** Add to the layer what one view sees and the centre view does not, at centre-view positions. */
function collectHidden(scene, layer, [u, v], view) {
  const { width, height, solid, extent } = scene;
  const [right, down] = [v - scene.grid.middle.v, u - scene.grid.middle.u];
  const edge = 2 * edgeStep(extent);
  const { disparity, isHidden } = seenFrom(scene, right, down);
  for (let y = 1; y < height - 1; y++)
    for (let x = 1; x < width - 1; x++) {
      const i = y * width + x;
      const d = disparity[i];
      if (!isHidden[i] || isAtRim(disparity, i, width, edge)) continue;
      const column = Math.floor(x + 0.5 + d * right);
      const row = Math.floor(y + 0.5 + d * down);
      if (column < 0 || row < 0 || column >= width || row >= height) continue;
      const at = row * width + column;
      if (solid[at] < d + edge) continue; // too close to an edge to tell
      const vx = Math.min(Math.floor(((x + 0.5) * view.width) / width), view.width - 1);
      const vy = Math.min(Math.floor(((y + 0.5) * view.height) / height), view.height - 1);
      const from = vy * view.width + vx;
      if (layer.disparity[at] <= NOT_KNOWN) paintLayer(layer, at, d, view.pixels, from);
      else if (unlike(layer.colours, at, view.pixels, from) > DISPUTE) layer.isDisputed[at] = 1;
    }
}

/** Difference of two colours: sum over RGB. */
function unlike(a, i, b, j) {
  let sum = 0;
  for (let c = 0; c < 3; c++) sum += Math.abs(a[4 * i + c] - b[4 * j + c]);
  return sum;
}

/** The disparity at each pixel of a view, and whether the centre view sees that point, too. */
function seenFrom(scene, right, down) {
  const { width, height } = scene;
  const disparity = new Float32Array(width * height);
  const isHidden = new Uint8Array(width * height);
  const seen = new Float64Array(4);
  for (let i = 0; i < disparity.length; i++) {
    march(scene, (i % width) + 0.5, Math.floor(i / width) + 0.5, right, down, seen);
    [disparity[i], isHidden[i]] = [seen[2], seen[3]];
  }
  return { disparity, isHidden };
}

/** Whether something nearer is next to a pixel: then its colour may be mixed. */
function isAtRim(disparity, i, width, edge) {
  for (let row = i - width; row <= i + width; row += width)
    for (let j = row - 1; j <= row + 1; j++) if (disparity[j] > disparity[i] + edge) return true;
  return false;
}

/** Remove isolated or disputed points: they come from edges where the estimate is unreliable. */
function dropSpecks({ width, height, extent }, layer, visible) {
  const edge = edgeStep(extent);
  const known = layer.disparity.slice();
  for (let y = 1; y < height - 1; y++)
    for (let i = y * width + 1; i < (y + 1) * width - 1; i++) {
      const own = known[i];
      if (own <= NOT_KNOWN) continue;
      let friends = -1; // the loop below counts the point itself
      for (let row = i - width; row <= i + width; row += width)
        for (let j = row - 1; j <= row + 1; j++)
          friends += Math.min(Math.abs(known[j] - own), Math.abs(visible.disparity[j] - own)) < edge;
      if (friends < 3 || layer.isDisputed[i]) layer.disparity[i] = 2 * NOT_KNOWN;
    }
}

function paintLayer(layer, at, d, source, from) {
  layer.disparity[at] = d;
  for (let c = 0; c < 3; c++) layer.colours[4 * at + c] = source[4 * from + c];
}

/**
 * Extrapolate the farthest surfaces by `reach` pixels into the first layer, behind all others: a
 * farther surface replaces an earlier one. The layers are ordered from far to near; the last one is
 * what the centre view sees.
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

/** The first layer with a surface at a pixel; null if there is none. */
function farthestLayer(layers, i) {
  for (const layer of layers) if (layer.disparity[i] > NOT_KNOWN) return layer;
  return null;
}

/** The neighbour with the farthest surface behind all known ones at a pixel; -1 if none. */
function farthestBeside({ width, extent }, layers, i) {
  const own = farthestLayer(layers, i);
  if (!own) return -1;
  const front = layers.at(-1).disparity;
  const edge = edgeStep(extent);
  let [best, farthest] = [-1, own.disparity[i] - edge];
  for (let side = 0; side < 4; side++) {
    const j = i + (side === 0 ? -1 : side === 1 ? 1 : side === 2 ? -width : width);
    // A hidden surface ends at the edge of what hides it, but not at a single wrong pixel.
    if (front[j] > edge + Math.max(front[i], front[2 * i - j], front[3 * i - 2 * j])) continue;
    const d = farthestLayer(layers, j)?.disparity[j] ?? Infinity;
    if (d < farthest) [best, farthest] = [j, d];
  }
  return best;
}

/**
 * Stretch the extrapolated surface like a membrane between its surroundings, in depth and colour,
 * so that there are no cracks or streaks where two surfaces meet behind something.
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
  addGrain(scene, continued, places, values);
}

/** Four neighbours for every place, -1 for none: those that are behind what hides it. */
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

/** One round: move each place towards the mean of its sources, but not in front of its occluder. */
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

/**
 * Give the extrapolated surface its texture, mirrored at the edge: from as far outside as the pixel
 * is inside. `values`: the disparity and colour of the farthest layer.
 */
function addGrain({ width, height, extent }, continued, places, values) {
  const edge = edgeStep(extent);
  const isSeen = (i) => continued.disparity[i] <= NOT_KNOWN;
  for (const i of places) {
    const isClose = (j, k, most) => isSeen(j) && Math.abs(values[4 * j] - values[4 * k]) < most;
    const mirrored = mirror(i, width, height, isSeen, (j) => isClose(j, i, 4 * edge));
    if (mirrored < 0) continue;
    const means = meanAround(values, mirrored, width, (j) => isClose(j, mirrored, edge));
    for (let c = 1; c < 4; c++) {
      const grain = values[4 * mirrored + c] - means[c - 1];
      continued.colours[4 * i + c - 1] = Math.min(Math.max(values[4 * i + c] + grain, 0), 255);
    }
  }
}

/** Pixel `i` mirrored at the closest edge, or as far from it as the surface reaches; or -1. */
function mirror(i, width, height, isSeen, isFit) {
  const [x, y] = [i % width, Math.floor(i / width)];
  const steps = [-1, 1, -width, width];
  const rooms = [x, width - 1 - x, y, height - 1 - y].map((room) => room - GRAIN);
  if (Math.min(...rooms) < 0) return -1;
  const most = Math.max(...rooms);
  for (let away = 1; away <= most; away++)
    for (let side = 0; side < 4; side++) {
      if (away > rooms[side] || !isSeen(i + away * steps[side])) continue;
      for (let there = Math.min(2 * away - 1, rooms[side]); there >= away; there--) {
        const j = i + there * steps[side];
        if (isFit(j)) return j;
      }
      rooms[side] = 0; // look no further on this side
    }
  return -1;
}

/** Mean colour of the pixels around one that `belong` to it. */
function meanAround(values, i, width, belongs) {
  const means = [0, 0, 0];
  let count = 0;
  for (let row = i - GRAIN * width; row <= i + GRAIN * width; row += width)
    for (let j = row - GRAIN; j <= row + GRAIN; j++) {
      if (!belongs(j)) continue;
      for (let c = 0; c < 3; c++) means[c] += values[4 * j + 1 + c];
      count++;
    }
  return means.map((sum) => sum / count);
}
