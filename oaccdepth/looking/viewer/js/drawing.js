// Draws after a change: the stage, the cards and the line below, once per frame.
import { find, hasTouch } from "./elements.js";
import { factsAt } from "./inspector.js";
import { writeReadout } from "./readout.js";

const HINTS = {
  inspect: "Hover to read values, click to inspect a pixel, scroll to zoom.",
  move: "Move over the picture to move through the views.",
  focus: "Click to focus.",
  cloud: "Drag to orbit, scroll to zoom, click a point to inspect it.",
};
const TOUCH_HINTS = {
  inspect: "Tap a pixel to inspect it, pinch to zoom.",
  move: "Drag over the picture to move through the views.",
  focus: "Tap to focus.",
  cloud: "Drag to orbit, pinch to zoom, tap a point to inspect it.",
};
// Changes after which only the marks are redrawn, not the pictures.
const MARKS_ONLY = new Set(["hover", "pixel", "details", "notice", "isPointChosen"]);

export class Drawing {
  constructor(scene, state, stage, controls, inspector) {
    Object.assign(this, { scene, state, stage, controls, inspector });
    Object.assign(this, { stale: new Set(), isComplete: false });
    state.on((changed) => this.refresh(changed));
    new ResizeObserver(() => this.resize()).observe(find("viewport"));
  }

  /** Something changed: draw once, at the next frame. */
  refresh(changed) {
    if (!this.stale.size) requestAnimationFrame(() => this.stale.size && this.draw());
    for (const name of changed) this.stale.add(name);
  }

  refreshAll() {
    this.refresh(new Set([...Object.keys(this.state.values), "size"]));
  }

  /** The stage was resized. The first call only reports the size, so there is nothing to do. */
  resize() {
    const { width, height } = this.stage.size();
    const size = `${width} ${height}`;
    if (this.known !== undefined && this.known !== size) this.refresh(new Set(["size"]));
    this.known = size;
  }

  draw() {
    const changed = this.stale;
    this.stale = new Set();
    const has = (...names) => names.some((name) => changed.has(name));
    const { values } = this.state;
    this.controls.sync(changed);
    if ([...changed].every((name) => MARKS_ONLY.has(name))) this.stage.drawMarks(values);
    else this.stage.draw();
    this.writeLine(values);
    if (has("size")) this.controls.sync(new Set(["range", "camera"]));
    if (has("pixel", "isDark", "size", "details", "isCover"))
      this.inspector.show(values.pixel.x, values.pixel.y, this.isComplete);
  }

  writeLine({ hover, tool, notice, map, range }) {
    find("hint").textContent = notice || (hasTouch.matches ? TOUCH_HINTS : HINTS)[tool];
    const facts = hover && !notice && factsAt(this.scene, hover.x, hover.y);
    writeReadout(this.scene, facts, { map, range });
  }
}
