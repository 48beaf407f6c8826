// The colour card: colour map, range, and a histogram with handles to set the range.
import { sized } from "./elements.js";
import { NOT_KNOWN, signed } from "./scene.js";

const BINS = 128;

/** Counts of the disparities over the full extent. */
function countValues(scene) {
  const [low, high] = scene.extent.full;
  const counts = new Float64Array(BINS);
  for (const value of scene.disparity) {
    if (value <= NOT_KNOWN) continue;
    const bin = Math.floor(((value - low) / (high - low)) * BINS);
    counts[Math.min(Math.max(bin, 0), BINS - 1)]++;
  }
  const largest = Math.max(...counts, 1);
  return counts.map((count) => Math.sqrt(count / largest)); // small bins stay visible
}

/** A colour of a map as css text. */
export function cssColour(scene, map, part) {
  const at = (map * 256 + Math.round(Math.min(Math.max(part, 0), 1) * 255)) * 3;
  return `rgb(${scene.colours[at]} ${scene.colours[at + 1]} ${scene.colours[at + 2]})`;
}

export class Histogram {
  constructor(canvas, scene, state) {
    Object.assign(this, { canvas, scene, state, counts: countValues(scene), dragged: null });
    const [low, high] = scene.extent.full;
    const margin = (high - low) * 0.06;
    this.span = [low - margin, high + margin];
    canvas.addEventListener("pointerdown", (event) => this.start(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"])
      canvas.addEventListener(end, () => (this.dragged = null));
  }

  toX(value) {
    return ((value - this.span[0]) / (this.span[1] - this.span[0])) * this.canvas.clientWidth;
  }

  fromEvent(event) {
    const part = event.offsetX / this.canvas.clientWidth;
    return this.span[0] + part * (this.span[1] - this.span[0]);
  }

  /** Grab the nearer end of the range, or the whole range between the two. */
  start(event) {
    const [low, high] = this.state.get("range").map((value) => this.toX(value));
    const x = event.offsetX;
    const inside = x > low + 14 && x < high - 14;
    this.dragged = inside ? "both" : Math.abs(x - low) < Math.abs(x - high) ? 0 : 1;
    this.grip = { value: this.fromEvent(event), range: this.state.get("range") };
    this.canvas.setPointerCapture(event.pointerId);
    this.move(event);
  }

  move(event) {
    if (this.dragged === null) return;
    const value = this.fromEvent(event);
    const smallest = (this.span[1] - this.span[0]) / 200;
    let [low, high] = this.state.get("range");
    if (this.dragged === "both") {
      const [first, last] = this.grip.range;
      [low, high] = [first + value - this.grip.value, last + value - this.grip.value];
    } else if (this.dragged === 0) low = Math.min(value, high - smallest);
    else high = Math.max(value, low + smallest);
    this.state.set({ range: [low, high] });
  }

  draw() {
    const { canvas, scene } = this;
    const { context, width, height } = sized(canvas);
    if (!width) return;
    const [low, high] = this.state.get("range");
    const map = this.state.get("map");
    const [first, last] = scene.extent.full;
    const bar = (this.toX(last) - this.toX(first)) / BINS;
    this.counts.forEach((count, bin) => {
      const value = first + ((bin + 0.5) / BINS) * (last - first);
      const part = (value - low) / (high - low);
      context.globalAlpha = part < 0 || part > 1 ? 0.35 : 1;
      context.fillStyle = cssColour(scene, map, part);
      const top = Math.max(1, count * (height - 22));
      context.fillRect(this.toX(first) + bin * bar, height - 12 - top, bar + 0.5, top);
    });
    context.globalAlpha = 1;
    const ramp = context.createLinearGradient(this.toX(low), 0, this.toX(high), 0);
    for (let i = 0; i <= 16; i++) ramp.addColorStop(i / 16, cssColour(scene, map, i / 16));
    context.fillStyle = ramp;
    context.beginPath();
    context.roundRect(0, height - 10, width, 8, 4);
    context.fill();
    this.drawHandles(context, height, [low, high]);
  }

  drawHandles(context, height, range) {
    const style = getComputedStyle(this.canvas);
    for (const value of range) {
      const x = Math.min(Math.max(this.toX(value), 3), this.canvas.clientWidth - 3);
      context.fillStyle = style.color;
      context.fillRect(x - 0.75, 2, 1.5, height - 4);
      context.beginPath();
      context.roundRect(x - 3, height / 2 - 16, 6, 20, 3);
      context.fill();
    }
  }
}

export const describeRange = ([low, high]) => `${signed(low, 2)} to ${signed(high, 2)} px`;

/** A colour map from left to right, as css. */
export function cssRamp(scene, map) {
  const colours = Array.from({ length: 13 }, (_, i) => cssColour(scene, map, i / 12));
  return `linear-gradient(to right, ${colours})`;
}
