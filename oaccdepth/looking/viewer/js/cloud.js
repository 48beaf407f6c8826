// The point cloud: made when it is first shown, then drawn from the position of the orbit.
import { clamp } from "./elements.js";
import { Points } from "./gl.js";
import { makePoints } from "./points.js";
import { makeSpace } from "./space.js";

const [NEAR, FAR] = [0.02, 100];
const MOST_PARALLAX = 0.05; // of the larger side, between near and far; limits how far one can turn
const MOST_TURN = 0.5; // rad

export class Cloud {
  constructor(renderer, scene, photo) {
    Object.assign(this, { renderer, scene, space: makeSpace(scene) });
    const { grid } = scene;
    const reach = Math.max(grid.middle.u, grid.middle.v);
    const captured = Math.atan(this.space.step * reach); // rad: angle of the captured views
    const [low, high] = scene.extent.usual;
    const shift = MOST_PARALLAX * Math.max(scene.width, scene.height); // px
    const angle = Math.atan((this.space.step * shift) / (high - low));
    this.limit = Math.min(Math.max(angle, captured), MOST_TURN);
    const read = (u, v) => renderer.readView(u, v);
    this.data = makePoints(scene, this.space, photo, read, Math.ceil(shift));
    const { places, paints, steeps, shares, opaque } = this.data;
    const attributes = [
      { array: places, size: 3 },
      { array: paints, size: 4, isNormalised: true },
      { array: steeps, size: 1 },
      { array: shares, size: 1 },
    ];
    this.points = new Points(renderer.gl, attributes, opaque);
  }

  /** An orbit without its overshoot: within the limit, unless the orbit is free. */
  limited(orbit, isFree) {
    if (isFree) return orbit;
    const { right, up } = orbit;
    return { ...orbit, right: clamp(right, -this.limit, this.limit), up: clamp(up, -this.limit, this.limit) };
  }

  /** Turn by angles [rad]. Beyond the limit it resists, and turns back when released. */
  turned(orbit, right, up, isFree) {
    const most = isFree ? Infinity : this.limit;
    const turn = (angle, by) => {
      const weight = Math.abs(angle) > most && angle * by > 0 ? 0.25 : 1;
      return isFree ? angle + by : clamp(angle + by * weight, -1.6 * most, 1.6 * most);
    };
    return { ...orbit, right: turn(orbit.right, right), up: clamp(turn(orbit.up, up), -1.5, 1.5) };
  }

  /** Where the camera stands, and its axes: right, up, backwards. */
  stand({ right, up, distance, x, y }) {
    const [sr, cr, su, cu] = [Math.sin(right), Math.cos(right), Math.sin(up), Math.cos(up)];
    const back = [sr * cu, su, cr * cu];
    const side = [cr, 0, -sr];
    const top = [-sr * su, cu, -cr * su];
    const target = [0, 1, 2].map((i) => side[i] * x + top[i] * y - (i === 2 ? 1 : 0));
    return { eye: back.map((value, i) => target[i] + value * distance), side, top, back };
  }

  /** Half the height that the stage shows at distance 1, so that the whole picture fits. */
  halfHeight(size) {
    const { width, height } = this.scene;
    return (this.space.pitch / 2) * Math.max(height, (width * size.height) / size.width);
  }

  /** Matrix from world to clip space, in column order. */
  matrix(orbit, size) {
    const { eye, side, top, back } = this.stand(orbit);
    const tall = 1 / this.halfHeight(size);
    const wide = (tall * size.height) / size.width;
    const dot = (axis) => axis.reduce((sum, value, i) => sum + value * eye[i], 0);
    const [a, b] = [(FAR + NEAR) / (NEAR - FAR), (2 * FAR * NEAR) / (NEAR - FAR)];
    const column = (i) => [wide * side[i], tall * top[i], a * back[i], -back[i]];
    const last = [-wide * dot(side), -tall * dot(top), -a * dot(back) + b, dot(back)];
    return new Float32Array([...column(0), ...column(1), ...column(2), ...last]);
  }

  draw(look, size) {
    const { pitch, slope, median } = this.space;
    const { orbit, cloud } = look;
    const values = {
      uMatrix: this.matrix(orbit, size),
      uPitch: pitch,
      uSlope: slope,
      uMedian: median,
      uStretch: cloud.stretch,
      uSize: cloud.size * this.data.step,
      uTilt: Math.sin(Math.min(Math.hypot(orbit.right, orbit.up), Math.PI / 2)),
      uHeight: this.renderer.canvas.height / (2 * this.halfHeight(size)),
      uLeastConfidence: cloud.confidence,
      uIsMapped: cloud.colour === "disparity",
    };
    this.renderer.drawPoints(this.points, values, look);
  }

  /** Where a point of the cloud (px right, px up, disparity) appears: [x, y, distance], css px. */
  project(place, matrix, size, stretch) {
    const { pitch, slope, median } = this.space;
    const plain = 1 / (1 + slope * (place[2] - median));
    const depth = Math.max(1 + (plain - 1) * stretch, NEAR);
    const [x, y, z] = [place[0] * pitch * depth, place[1] * pitch * depth, -depth];
    const at = (i) => matrix[i] * x + matrix[4 + i] * y + matrix[8 + i] * z + matrix[12 + i];
    const w = at(3);
    return [(1 + at(0) / w) * 0.5 * size.width, (1 - at(1) / w) * 0.5 * size.height, w];
  }

  /** The pixel of the nearest point at a position on the stage, or null. */
  pick(point, look, size) {
    const matrix = this.matrix(look.orbit, size);
    const { places, paints, pixels } = this.data;
    let [best, found] = [Infinity, null];
    for (let n = 0; n < pixels.length; n++) {
      if (paints[4 * n + 3] < 255 * look.cloud.confidence) continue;
      const place = places.subarray(3 * n, 3 * n + 3);
      const [x, y, distance] = this.project(place, matrix, size, look.cloud.stretch);
      const off = Math.hypot(x - point.x, y - point.y);
      if (off > 6 || distance < NEAR) continue;
      const cost = distance + 0.01 * off;
      if (cost < best) [best, found] = [cost, pixels[n]];
    }
    const { width } = this.scene;
    return found === null ? null : { x: found % width, y: Math.floor(found / width) };
  }
}
