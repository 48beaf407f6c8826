// Mouse, pen and touch on the stage: hover, click, pan, pinch, wheel, and the handle of the wipe.
import { panBy, pick, covered, zoomAt } from "./frame.js";

const CLICK_SLOP = 5; // css px that the pointer may move during a click

export class StagePointer {
  /** `actions`: hover(place), leave(), click(place), look(part), zoom(zoom), split(part). */
  constructor(viewport, handle, stage, actions) {
    Object.assign(this, { viewport, handle, stage, actions, pointers: new Map(), pinch: null });
    const listen = (element, name, call, options) =>
      element.addEventListener(name, (event) => call.call(this, event), options);
    listen(viewport, "pointerdown", this.down);
    listen(viewport, "pointermove", this.move);
    listen(viewport, "pointerup", this.up);
    listen(viewport, "pointercancel", this.cancel);
    listen(viewport, "pointerleave", this.leave);
    listen(viewport, "wheel", this.wheel, { passive: false });
    listen(viewport, "dblclick", this.unzoom);
    listen(handle, "pointerdown", this.grip);
    listen(handle, "pointermove", this.drag);
    listen(handle, "keydown", this.nudge);
  }

  point(event) {
    const box = this.viewport.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  isOurs(event) {
    const { tool, isCover } = this.stage.state.values;
    if (tool === "cloud" || isCover) return false;
    return event.target === this.viewport || event.target.tagName === "CANVAS";
  }

  down(event) {
    if (!this.isOurs(event) || event.button > 0) return;
    const point = this.point(event);
    this.pointers.set(event.pointerId, point);
    this.viewport.setPointerCapture(event.pointerId);
    if (this.pointers.size === 1) this.begin = { point, isClick: true };
    else this.begin.isClick = false;
    this.pinch = this.pointers.size === 2 ? this.spread() : null;
  }

  spread() {
    const [a, b] = [...this.pointers.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, length: Math.hypot(a.x - b.x, a.y - b.y) };
  }

  move(event) {
    const point = this.point(event);
    const last = this.pointers.get(event.pointerId);
    if (last) {
      this.pointers.set(event.pointerId, point);
      if (this.pinch) return this.movePinch();
      const { x, y } = this.begin.point;
      if (Math.hypot(point.x - x, point.y - y) > CLICK_SLOP) this.begin.isClick = false;
      if (!this.begin.isClick) this.pan(point, last);
    }
    if (this.isOurs(event)) this.follow(point, event.pointerType === "mouse" || Boolean(last));
    else this.actions.hover(null);
  }

  pan(point, last) {
    const { state, picture } = this.stage;
    if (state.get("tool") === "move" || state.get("zoom").factor <= 1) return;
    const [dx, dy] = [point.x - last.x, point.y - last.y];
    this.actions.zoom(panBy(state.values, this.stage.panes, dx, dy, picture));
  }

  /** Hover: read the pixel; in the Move tool, also move the camera. */
  follow(point, mayLook) {
    this.actions.hover(pick(this.stage.panes, point, this.stage.picture));
    if (this.stage.state.get("tool") !== "move" || !mayLook) return;
    const { rect } = this.stage.panes.find(({ clip }) => point.x < clip.right) ?? this.stage.panes[0];
    // The pointer reaches the outermost views a little before the edge.
    const part = (place, from, to) => 0.5 + ((place - from) / (to - from) - 0.5) / 0.92;
    this.actions.look({
      x: part(point.x, rect.left, rect.right),
      y: part(point.y, rect.top, rect.bottom),
    });
  }

  movePinch() {
    const { state, panes, picture } = this.stage;
    const now = this.spread();
    const [dx, dy] = [now.x - this.pinch.x, now.y - this.pinch.y];
    this.actions.zoom(panBy(state.values, panes, dx, dy, picture));
    const factor = now.length / Math.max(this.pinch.length, 1);
    this.actions.zoom(zoomAt(state.values, panes, now, factor, picture));
    this.pinch = now;
  }

  up(event) {
    const point = this.pointers.get(event.pointerId);
    this.cancel(event);
    if (!point || this.pointers.size || !this.begin.isClick) return;
    const place = pick(this.stage.panes, point, this.stage.picture);
    if (!place) return;
    if (event.pointerType !== "mouse") this.actions.hover(place); // a finger cannot hover
    this.actions.click(place);
  }

  cancel(event) {
    this.pointers.delete(event.pointerId);
    this.pinch = null;
    if (this.pointers.size) this.begin.point = [...this.pointers.values()][0];
  }

  leave(event) {
    if (event.pointerType === "mouse") this.actions.leave();
  }

  wheel(event) {
    if (!this.isOurs(event)) return;
    event.preventDefault();
    const { state, panes, picture } = this.stage;
    const pixels = event.deltaY * (event.deltaMode === 1 ? 30 : 1);
    const factor = Math.exp(-Math.min(Math.max(pixels, -200), 200) / 300);
    this.actions.zoom(zoomAt(state.values, panes, this.point(event), factor, picture));
  }

  unzoom(event) {
    if (this.isOurs(event)) this.actions.zoom({ factor: 1, x: 0, y: 0 });
  }

  grip(event) {
    event.preventDefault();
    this.handle.focus({ preventScroll: true });
    this.handle.setPointerCapture(event.pointerId);
  }

  drag(event) {
    if (!this.handle.hasPointerCapture(event.pointerId)) return;
    const pane = this.stage.panes[0];
    const { left, right } = covered(pane, this.stage.picture);
    this.actions.split((this.point(event).x - left) / (right - left));
  }

  nudge(event) {
    const step = { ArrowLeft: -0.02, ArrowRight: 0.02, Home: -1, End: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.actions.split(this.stage.state.get("split") + step);
  }
}
