// The points of the cloud: every pixel of the centre view, and surfaces that only other views see.
// Loops over all pixels: plain numbers in typed arrays, no objects.
import { makeHidden } from "./hidden.js";
import { splitRims } from "./rims.js";
import { edgeStep } from "./space.js";

const MOST_POINTS = 1_200_000; // in larger pictures, only some pixels become points
const HIDDEN = { confidence: 128, steepness: 7 }; // of points that the centre view does not see

/** Points under construction. */
class PointList {
  constructor({ width, height }, most) {
    Object.assign(this, { width, height, count: 0 });
    this.places = new Float32Array(3 * most); // px right, px up, disparity
    this.paints = new Uint8Array(4 * most); // colour, confidence
    this.steeps = new Float32Array(most);
    this.shares = new Float32Array(most).fill(1); // opacity
    this.pixels = new Uint32Array(most); // the pixel that a click on the point inspects
  }

  /** Add a point at pixel `i`, with the colour of `colours` at `from`. */
  add(i, d, colours, confidence, steepness, from = i) {
    const n = this.count++;
    this.places[3 * n] = (i % this.width) - (this.width - 1) / 2;
    this.places[3 * n + 1] = (this.height - 1) / 2 - Math.floor(i / this.width);
    this.places[3 * n + 2] = d;
    for (let c = 0; c < 3; c++) this.paints[4 * n + c] = colours ? colours[4 * from + c] : 128;
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
      shares: this.shares.subarray(0, count),
      pixels: this.pixels.subarray(0, count),
    };
  }
}

/**
 * All points; the first `opaque` ones are opaque. `photo`: the centre view, RGBA; `readView(u, v)`:
 * another view; `reach`: how far [px] hidden surfaces may be extrapolated.
 */
export function makePoints(scene, space, photo, readView, reach) {
  const area = scene.width * scene.height;
  const step = Math.ceil(Math.sqrt(area / MOST_POINTS));
  const list = new PointList(scene, (photo ? 4 : 1) * area);
  if (!photo || step > 1) {
    addVisible(list, scene, space, scene.solid, photo, step);
    return { ...list.finish(), step, opaque: list.count };
  }
  const rims = splitRims(scene, scene.solid, photo);
  const isMixed = (i) => rims.share[i] < 1;
  addVisible(list, scene, space, rims.disparity, photo, 1, isMixed);
  const settled = Object.create(scene, { solid: { value: rims.disparity } });
  for (const { disparity, colours } of makeHidden(settled, photo, readView, reach))
    for (let i = 0; i < area; i++)
      if (space.isPlaced(disparity[i]))
        list.add(i, disparity[i], colours, HIDDEN.confidence, HIDDEN.steepness);
  const opaque = addRims(list, scene, space, rims, photo);
  return { ...list.finish(), step, opaque };
}

function addVisible(list, { width, height, extent, confidence }, space, map, photo, step, isLeftOut = () => false) {
  const { isPlaced, slope, pitch, median } = space;
  const edge = edgeStep(extent);
  for (let y = 0; y < height; y += step)
    for (let x = 0; x < width; x += step) {
      const i = y * width + x;
      const own = map[i];
      if (!isPlaced(own) || isLeftOut(i)) continue;
      let change = 0; // to the neighbours on the same surface
      for (let side = 0; side < 4; side++) {
        const [nx, ny] = [x + (side === 0) - (side === 1), y + (side === 2) - (side === 3)];
        if (nx < 0 || ny < 0 || nx >= width || ny >= height) continue;
        const difference = Math.abs(map[ny * width + nx] - own);
        if (difference < edge && difference > change) change = difference;
      }
      const depth = 1 / (1 + slope * (own - median));
      list.add(i, own, photo, confidence[i], (slope * depth * change) / pitch);
    }
}

/** Mixed pixels: behind each, a point of the farther surface; at the end, the rims themselves. */
function addRims(list, { confidence }, { isPlaced }, { disparity, share, behind, colours }, photo) {
  const mixed = [];
  for (let i = 0; i < share.length; i++) if (share[i] < 1 && isPlaced(disparity[i])) mixed.push(i);
  for (const i of mixed)
    if (isPlaced(disparity[behind[i]]))
      list.add(i, disparity[behind[i]], photo, confidence[i], 0, behind[i]);
  const opaque = list.count;
  for (const i of mixed) {
    list.shares[list.count] = share[i];
    list.add(i, disparity[i], colours, confidence[i], 0);
  }
  return opaque;
}
