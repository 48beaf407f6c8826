// The stage: panes with their layers or the cloud, menus and legends in their corners, the marks.
import { Clip } from "./clip.js";
import { Cloud } from "./cloud.js";
import { cssRamp } from "./colour.js";
import { find } from "./elements.js";
import { arrange, covered } from "./frame.js";
import { signed, valueAt } from "./scene.js";

const CROSS = [
  [1, 0],
  [-1, 0],
  [0, 1],
  [0, -1],
];
const FIXED = ["refocused", "mask"]; // layers that do not move with the camera
const place = (element, x, y) => element.style.setProperty("transform", `translate(${x}px, ${y}px)`);

export const isFixed = (layer) => FIXED.includes(layer.id);

export class Stage {
  constructor(scene, state, layers, renderer) {
    Object.assign(this, { scene, state, layers, renderer, panes: [], cloud: null, clip: null });
    this.picture = { width: scene.width, height: scene.height };
    find("viewport").style.setProperty("--aspect", scene.width / scene.height); // for phones
  }

  /** Size of the stage [css px]. */
  size() {
    const { clientWidth: width, clientHeight: height } = find("viewport");
    return { width, height };
  }

  makeCloud(isAnew = false) {
    if (isAnew || !this.cloud) this.cloud = new Cloud(this.renderer, this.scene, this.readPhoto());
  }

  /** A blurred backdrop for the parts of the stage that the cover or the cloud leaves free. */
  paintBackdrop() {
    const { width, height } = find("backdrop");
    if (this.scene.centre)
      find("backdrop").getContext("2d").drawImage(this.scene.centre, 0, 0, width, height);
  }

  /** The centre view's pixels, RGBA, or null. */
  readPhoto() {
    if (!this.scene.centre) return null;
    const canvas = new OffscreenCanvas(this.scene.width, this.scene.height);
    const context = canvas.getContext("2d");
    context.drawImage(this.scene.centre, 0, 0);
    return context.getImageData(0, 0, canvas.width, canvas.height).data;
  }

  draw() {
    const canvas = find("picture");
    const size = this.size();
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const { values } = this.state;
    const isCloud = values.tool === "cloud";
    const shown = values.layout === "single" || isCloud ? [values.left] : [values.left, values.right];
    const layers = shown.map((name) => this.layers.find(({ id }) => id === name));
    this.panes = arrange(isCloud ? { ...values, layout: "single" } : values, layers, size, this.picture);
    if (isCloud) this.cloud.draw(values, size);
    else this.renderer.draw(this.panes, values);
    this.clip?.take();
    this.placeOverlays(values);
    this.placeLegends(values);
    this.drawMarks(values);
  }

  /** Record the stage for a while; gives the video and its file extension. */
  async film(duration) {
    const canvas = find("picture");
    const ratio = canvas.width / Math.max(1, canvas.clientWidth);
    const isOne = this.panes.length === 1 || this.state.get("layout") === "wipe";
    const all = { left: 0, top: 0, right: canvas.clientWidth, bottom: canvas.clientHeight };
    const { left, top, right, bottom } = isOne ? covered(this.panes[0], this.picture) : all;
    const crop = { x: left * ratio, y: top * ratio, width: (right - left) * ratio, height: (bottom - top) * ratio };
    this.clip = new Clip(canvas, crop);
    await this.clip.roll(duration);
    const { clip } = this;
    this.clip = null;
    return { blob: await clip.finish(), ending: clip.ending };
  }

  /** The menus in the corners of their panes, and the handle of the wipe. */
  placeOverlays({ layout, split }) {
    const [first, last] = [this.panes[0], this.panes.at(-1)];
    const { left: from, right: to, top, bottom } = covered(first, this.picture);
    const right = find("right");
    const isWipe = layout === "wipe";
    const isNarrow = isWipe && to - from < 2 * right.offsetWidth + 30; // put menus beside it
    place(find("left"), (isNarrow ? first.rect.left : from) + 10, top + 10);
    const end = (isNarrow ? last.rect.right : to) - right.offsetWidth - 10;
    const other = covered(last, this.picture);
    place(right, isWipe ? end : other.left + 10, other.top + 10);
    const handle = find("handle");
    place(handle, from + split * (to - from), top);
    handle.style.setProperty("height", `${bottom - top}px`);
    handle.setAttribute("aria-valuenow", Math.round(split * 100));
  }

  /** The colour legends, with numbers; photos have none. */
  placeLegends(values) {
    ["left", "right"].forEach((side, index) => {
      const legend = find(`legend-${side}`);
      const pane = values.tool === "cloud" || values.isCover ? null : this.panes[index];
      legend.hidden = !pane?.layer.scale;
      if (legend.hidden) return;
      this.writeLegend(legend, pane.layer, values);
      const { left, right, bottom } = covered(pane, this.picture);
      const isRight = index === 1 && values.layout === "wipe";
      const x = isRight ? right - legend.offsetWidth - 10 : left + 10;
      place(legend, x, bottom - legend.offsetHeight - 10);
    });
  }

  writeLegend(legend, layer, values) {
    const [bar, low, middle, high] = legend.children;
    const { unit, digits, ends } = layer.scale;
    const range = layer.range(values);
    const text = (value) => signed(value, digits) + (unit && ` ${unit}`);
    bar.style.setProperty("background", cssRamp(this.scene, layer.map(values)));
    low.textContent = [text(range[0]), ends[0]].filter(Boolean).join("\n");
    middle.textContent = layer.kind === "DIFFERENCE" ? "0" : "";
    high.textContent = [text(range[1]), ends[1]].filter(Boolean).join("\n");
  }

  /** Mark the chosen pixel on every pane, and the hovered one on the other panes. */
  drawMarks(values) {
    const canvas = find("marks");
    const { width, height } = find("picture");
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    const ratio = canvas.width / Math.max(1, canvas.clientWidth);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    if (values.isCover || values.isRecording || values.tool === "move") return;
    if (values.tool === "cloud") return this.markPoint(context, values);
    for (const pane of this.panes) this.markPane(context, pane, values);
  }

  markPane(context, pane, { pixel, hover, layout, camera }) {
    const d = valueAt(this.scene, this.scene.disparity, pixel.x, pixel.y) ?? 0;
    const { left, top, right, bottom } = pane.clip;
    context.save();
    context.beginPath();
    context.rect(left, top, right - left, bottom - top);
    context.clip();
    const shift = isFixed(pane.layer) ? { x: 0, y: 0 } : { x: d * camera.x, y: d * camera.y };
    const x = pane.x + (pixel.x + 0.5 - shift.x) * pane.scale;
    const y = pane.y + (pixel.y + 0.5 - shift.y) * pane.scale;
    this.drawCross(context, x, y, Math.max(7, pane.scale / 2 + 3));
    if (hover && layout === "pair" && hover.pane !== pane.layer.id)
      this.drawRing(context, pane.x + hover.at.x * pane.scale, pane.y + hover.at.y * pane.scale);
    context.restore();
  }

  markPoint(context, { pixel, orbit, cloud, isPointChosen }) {
    const d = this.scene.solid[pixel.y * this.scene.width + pixel.x];
    if (!isPointChosen || !this.cloud.space.isPlaced(d)) return;
    const size = this.size();
    const from = [pixel.x - (this.scene.width - 1) / 2, (this.scene.height - 1) / 2 - pixel.y, d];
    const [x, y] = this.cloud.project(from, this.cloud.matrix(orbit, size), size, cloud.stretch);
    this.drawCross(context, x, y, 7);
  }

  drawCross(context, x, y, gap) {
    this.outline(context, () => {
      for (const [dx, dy] of CROSS) {
        context.moveTo(x + dx * gap, y + dy * gap);
        context.lineTo(x + dx * (gap + 9), y + dy * (gap + 9));
      }
    });
  }

  drawRing(context, x, y) {
    this.outline(context, () => context.arc(x, y, 6, 0, 2 * Math.PI));
  }

  /** White on black, visible on every picture. */
  outline(context, trace) {
    for (const [colour, width] of [
      ["rgb(0 0 0 / 60%)", 3.5],
      ["#fff", 1.5],
    ]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      trace();
      context.stroke();
    }
  }
}
