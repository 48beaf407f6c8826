// Object rims: which of two surfaces a pixel at an edge belongs to, and in which proportion.
import { NOT_KNOWN } from "./scene.js";
import { edgeStep } from "./space.js";

const ROUNDS = 3; // px that an object may be wider or narrower than estimated
const FAINT = 30; // colour difference (sum of RGB) below which colours do not tell surfaces apart
const PURE = 0.2; // share of a second surface from which on a pixel is mixed

/**
 * { disparity, share, behind, colours } of the centre view's pixels. An estimated edge is often off
 * by a pixel, and pixels there mix both surfaces; in a turned cloud they would show as an outline.
 * The colour decides whether a pixel goes to the nearer surface, to the farther one, or to both:
 * then the nearer one covers a `share` of it in its own colour, and `behind` is a pixel of the
 * farther one.
 */
export function splitRims({ width, height, extent }, solid, photo) {
  const area = width * height;
  const rims = {
    disparity: solid.slice(),
    share: new Float32Array(area).fill(1),
    behind: new Int32Array(area).fill(-1),
    colours: photo.slice(),
  };
  const frame = { width, height, edge: edgeStep(extent), photo };
  for (let round = 0; round < ROUNDS; round++) splitOnce(frame, rims, rims.disparity.slice());
  return rims;
}

/** Move the edges of `map` by up to a pixel, and stop at mixed pixels. */
function splitOnce(frame, rims, map) {
  const { width, height, edge } = frame;
  const steps = [-1, 1, -width, width];
  for (let y = 3; y < height - 3; y++)
    for (let i = y * width + 3; i < (y + 1) * width - 3; i++) {
      if (map[i] <= NOT_KNOWN || rims.share[i] < 1) continue;
      let best = null;
      for (const step of steps) {
        const isFarSide = map[i + step] - map[i] > edge;
        if (!isFarSide && map[i] - map[i - step] <= edge) continue;
        const found = mixture(frame, rims, map, i, step, isFarSide);
        if (found && (!best || found.contrast > best.contrast)) best = found;
      }
      if (best) settle(frame, rims, map, i, best);
    }
}

/**
 * How much of pixel `i` is covered by the nearer surface in the direction of `step`, judged by the
 * colours of both surfaces a little away from the edge. Null if the colours do not tell.
 */
function mixture({ photo, edge }, rims, map, i, step, isFarSide) {
  const [near, far] = isFarSide ? [i + step, i] : [i, i - step];
  if (rims.share[near] < 1 || map[far] <= NOT_KNOWN) return null; // already decided
  const inside = pure(map, near, step, edge);
  const outside = pure(map, far, -step, edge);
  if (inside === i || outside === i) return null;
  let [along, length, contrast] = [0, 0, 0];
  for (let c = 0; c < 3; c++) {
    const apart = photo[4 * inside + c] - photo[4 * outside + c];
    along += (photo[4 * i + c] - photo[4 * outside + c]) * apart;
    length += apart * apart;
    contrast += Math.abs(apart);
  }
  return contrast < FAINT ? null : { share: along / length, contrast, near, outside };
}

/** The pixel up to two steps from `i` that is still on the same surface. */
function pure(map, i, step, edge) {
  if (Math.abs(map[i + step] - map[i]) > edge) return i;
  return Math.abs(map[i + 2 * step] - map[i + step]) > edge ? i + step : i + 2 * step;
}

/** Give a pixel to one surface, or to both. */
function settle({ photo }, rims, map, i, { share, near, outside }) {
  if (share < PURE) return;
  rims.disparity[i] = map[near];
  if (share > 1 - PURE) return;
  rims.share[i] = share;
  rims.behind[i] = outside;
  for (let c = 0; c < 3; c++) {
    const beyond = photo[4 * outside + c];
    rims.colours[4 * i + c] = Math.min(Math.max(beyond + (photo[4 * i + c] - beyond) / share, 0), 255);
  }
}
