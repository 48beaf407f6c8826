// What the page shows right now: one object that tells all parts which of its values change.
import { findSubject, findTellingPixel } from "./places.js";
import { valueAt } from "./scene.js";

export const TOOLS = ["inspect", "move", "focus", "cloud"]; // what the pointer does
export const LAYOUTS = ["wipe", "pair", "single"];
export const REST = { right: 0, up: 0, distance: 1, x: 0, y: 0 }; // the cloud from the centre camera

export class State {
  constructor(initial) {
    this.values = initial;
    this.listeners = [];
  }

  get(name) {
    return this.values[name];
  }

  /** Change some values; listeners get the names of those that really differ. */
  set(changes) {
    const names = Object.keys(changes).filter((name) => this.values[name] !== changes[name]);
    if (!names.length) return;
    Object.assign(this.values, changes);
    for (const listener of this.listeners) listener(new Set(names));
  }

  on(listener) {
    this.listeners.push(listener);
  }
}

/** The state of a newly opened page, without the cover. */
export function firstState(scene, pairs) {
  const [, left, right] = pairs[0];
  const subject = findSubject(scene);
  const { rows, columns, middle } = scene.grid;
  return {
    isCover: false,
    tool: "inspect",
    layout: "wipe",
    isLayoutChosen: false, // until then, every tool chooses its own layout
    left,
    right,
    split: 0.5,
    camera: { x: 0, y: 0 }, // view steps right and down of the centre
    maskView: { x: -middle.v, y: 0 }, // of the view whose mask is shown
    focus: valueAt(scene, scene.disparity, subject.x, subject.y) ?? 0,
    aperture: Math.hypot(rows >> 1, columns >> 1),
    isSeeThrough: false,
    map: 0,
    range: scene.extent.usual,
    errorRange: 0.2,
    zoom: { factor: 1, x: 0, y: 0 },
    hover: null, // { x, y } in the centre view, and the position in the picture on the stage
    subject,
    pixel: findTellingPixel(scene),
    isDark: document.documentElement.dataset.theme === "dark",
    motion: null, // automatic motion: cover, travel, pull or sway
    isRecording: false,
    notice: "", // what was just done; shown in place of the hint
    orbit: REST,
    isPointChosen: false, // by a click in 3D: the mark may be behind something else
    cloud: {
      colour: scene.centre ? "view" : "disparity",
      size: 1,
      confidence: 0,
      stretch: 1,
      isFree: false, // orbit without a limit
    },
  };
}
