// The stage: panes with their layers, the menus in their corners, the handle, the marks.
import { arrange, wipeSpan } from "./frame.js";
import { valueAt } from "./scene.js";

const part = (id) => document.getElementById(id);
const CROSS = [
  [1, 0],
  [-1, 0],
  [0, 1],
  [0, -1],
];
const FIXED = ["refocused", "mask"]; // layers that the camera's place does not move

export const isFixed = (layer) => FIXED.includes(layer.id);

export class Stage {
  constructor(scene, state, layers, renderer) {
    Object.assign(this, { scene, state, layers, renderer, panes: [] });
    this.picture = { width: scene.width, height: scene.height };
  }

  draw() {
    const canvas = part("picture");
    const viewport = part("viewport");
    const size = { width: viewport.clientWidth, height: viewport.clientHeight };
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const { values } = this.state;
    const shown = values.layout === "single" ? [values.left] : [values.left, values.right];
    const layers = shown.map((name) => this.layers.find(({ id }) => id === name));
    this.panes = arrange(values, layers, size, this.picture);
    this.renderer.draw(this.panes, values);
    this.placeOverlays(values);
    this.drawMarks(values);
  }

  /** The menus in the corners of their panes, and the handle of the wipe. */
  placeOverlays({ layout, split }) {
    const first = this.panes[0];
    const last = this.panes.at(-1);
    const [from, to] = wipeSpan(first.x, first.scale, first.rect, this.picture);
    const right = part("right");
    const place = (menu, pane, x) => {
      const y = Math.max(pane.rect.top, pane.y) + 10;
      menu.style.setProperty("transform", `translate(${x}px, ${y}px)`);
    };
    const isWipe = layout === "wipe";
    const isNarrow = isWipe && to - from < 2 * right.offsetWidth + 30; // the menus go beside it
    place(part("left"), first, (isNarrow ? first.rect.left : from) + 10);
    const end = (isNarrow ? last.rect.right : to) - right.offsetWidth - 10;
    place(right, last, isWipe ? end : Math.max(last.rect.left, last.x) + 10);
    const handle = part("handle");
    handle.style.setProperty("transform", `translateX(${from + split * (to - from)}px)`);
    handle.setAttribute("aria-valuenow", Math.round(split * 100));
  }

  /** The chosen pixel on every pane, and the hovered one on the panes where the pointer is not. */
  drawMarks({ pixel, hover, layout, camera }) {
    const canvas = part("marks");
    const picture = part("picture");
    if (canvas.width !== picture.width || canvas.height !== picture.height)
      Object.assign(canvas, { width: picture.width, height: picture.height });
    const context = canvas.getContext("2d");
    const ratio = canvas.width / Math.max(1, canvas.clientWidth);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    const d = valueAt(this.scene, this.scene.disparity, pixel.x, pixel.y) ?? 0;
    for (const pane of this.panes) {
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

  /** White on black, to be seen on every picture. */
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
