// Mouse, pen and touch in 3D: drag to orbit, two fingers or the right button to move, wheel to zoom.
import { clamp } from "./elements.js";

const CLICK_SLOP_3D = 5; // css px that the pointer may move during a click

export class OrbitPointer {
  /** `actions`: turn(right, up), release(), slide(x, y), approach(factor), pickPoint(point). */
  constructor(viewport, state, actions) {
    Object.assign(this, { viewport, state, actions, pointers: new Map() });
    const listen = (name, call, options) =>
      viewport.addEventListener(
        name,
        (event) => {
          const isOurs = state.get("tool") === "cloud" && !state.get("isCover");
          if (isOurs && event.target.tagName === "CANVAS") call.call(this, event);
        },
        options,
      );
    listen("pointerdown", this.down);
    listen("pointermove", this.move);
    listen("pointerup", this.up);
    listen("pointercancel", this.cancel);
    listen("wheel", this.wheel, { passive: false });
    listen("dblclick", () => actions.resetCloud());
    listen("contextmenu", (event) => event.preventDefault());
  }

  place(event) {
    const box = this.viewport.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  down(event) {
    const point = this.place(event);
    this.actions.stopMotion();
    this.pointers.set(event.pointerId, point);
    event.target.setPointerCapture(event.pointerId);
    this.begin = { ...point, isClick: this.pointers.size === 1 && event.button === 0 };
    this.isSliding = event.button > 0 || event.shiftKey;
  }

  move(event) {
    const last = this.pointers.get(event.pointerId);
    if (!last) return;
    const point = this.place(event);
    const [dx, dy] = [point.x - last.x, point.y - last.y];
    if (this.pointers.size === 2) return this.pinch(event.pointerId, point);
    this.pointers.set(event.pointerId, point);
    const wandered = Math.hypot(point.x - this.begin.x, point.y - this.begin.y);
    if (wandered > CLICK_SLOP_3D) this.begin.isClick = false;
    if (this.begin.isClick) return;
    const unit = 1 / this.viewport.clientHeight;
    if (this.isSliding) this.actions.slide(-dx * unit, dy * unit);
    else this.actions.turn(-1.6 * dx * unit, 1.6 * dy * unit);
  }

  pinch(id, point) {
    const spread = () => {
      const [a, b] = [...this.pointers.values()];
      return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, length: Math.hypot(a.x - b.x, a.y - b.y) };
    };
    const before = spread();
    this.pointers.set(id, point);
    const after = spread();
    const unit = 1 / this.viewport.clientHeight;
    this.begin.isClick = false;
    this.actions.slide((before.x - after.x) * unit, (after.y - before.y) * unit);
    this.actions.approach(after.length / Math.max(before.length, 1));
  }

  up(event) {
    const isClick = this.pointers.size === 1 && this.begin.isClick;
    const point = this.place(event);
    this.cancel(event);
    if (isClick) this.actions.pickPoint(point);
  }

  cancel(event) {
    this.pointers.delete(event.pointerId);
    if (!this.pointers.size) this.actions.release();
  }

  wheel(event) {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 30 : 1);
    this.actions.approach(Math.exp(-clamp(pixels, -200, 200) / 400));
  }
}
