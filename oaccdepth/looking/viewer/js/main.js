// Starts the page: reads the scene, puts the parts together, draws when something changed.
import { Cloud } from "./cloud.js";
import { Controls, writeAbout, writeReadout } from "./controls.js";
import { showWithoutGraphics } from "./fallback.js";
import { zoomAt } from "./frame.js";
import { GraphicsError } from "./gl.js";
import { Inspector, factsAt } from "./inspector.js";
import { keyTable, listenToKeys, writeKeys } from "./keys.js";
import { findLayers, findPairs } from "./layers.js";
import { StagePointer } from "./pointer.js";
import { Renderer } from "./renderer.js";
import {
  findTellingPixel,
  loadEvidence,
  loadPictures,
  loadScene,
  maskPlaces,
  toCentre,
  valueAt,
} from "./scene.js";
import { Stage, isFixed } from "./stage.js";
import { State } from "./state.js";

const HINTS = {
  inspect: "Hover to read values, click to inspect a pixel, scroll to zoom.",
  look: "Move over the picture to move through the views.",
  focus: "Click what shall be sharp.",
  cloud: "Drag to orbit, scroll to come nearer.",
};
const TOUCH_HINTS = {
  inspect: "Tap a pixel to inspect it, pinch to zoom.",
  look: "Drag over the picture to move through the views.",
  focus: "Tap what shall be sharp.",
  cloud: "Drag to orbit, pinch to come nearer.",
};
const hasTouch = window.matchMedia("(hover: none)");
const MARKS_ONLY = new Set(["hover", "pixel", "details", "cloud"]); // these leave the pictures alone
const element = (id) => document.getElementById(id);
const prefersStillness = window.matchMedia("(prefers-reduced-motion: reduce)");
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

class Page {
  constructor(scene) {
    Object.assign(this, { scene, stale: new Set(), animations: new Map(), isComplete: false });
    this.layers = findLayers(scene);
    this.pairs = findPairs(this.layers);
    this.state = new State(this.firstState());
    this.renderer = new Renderer(element("picture"), scene);
    this.stage = new Stage(scene, this.state, this.layers, this.renderer);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.inspector = new Inspector(scene, this.renderer, () => ({
      accent: colour("--accent"),
      mark: colour("--mark"),
      text: colour("--soft"),
      faint: colour("--line"),
    }));
    this.actions = this.makeActions();
    this.inspector.onCell = (grid, place) => this.chooseCell(grid, place);
    this.controls = new Controls(scene, this.state, this.layers, this.actions);
    this.pointer = new StagePointer(element("viewport"), element("handle"), this.stage, this.actions);
    const table = keyTable(this.actions, this.pairs);
    writeKeys(table, element("key-list"));
    listenToKeys(table, { ...this.actions, zoom: (factor) => this.zoomBy(factor) });
    this.state.on((changed) => this.refresh(changed));
    new ResizeObserver(() => this.resize()).observe(element("viewport"));
    this.watchGraphics();
  }

  firstState() {
    const { scene } = this;
    const [, left, right] = this.pairs[0];
    const pixel = findTellingPixel(scene);
    const { rows, columns } = scene.grid;
    return {
      tool: "inspect", // what the pointer does: inspect, look, focus
      layout: "wipe", // wipe, pair, single, cloud
      left,
      right,
      split: 0.5,
      camera: { x: 0, y: 0 }, // view steps right and down of the centre
      maskView: { x: -scene.grid.middle.v, y: 0 }, // of the view whose mask is shown
      focus: valueAt(scene, scene.disparity, pixel.x, pixel.y) ?? 0,
      aperture: Math.hypot(rows >> 1, columns >> 1),
      map: 0,
      range: scene.extent.usual,
      errorRange: 0.2,
      zoom: { factor: 1, x: 0, y: 0 },
      hover: null, // { x, y } in the centre view, and the place on the stage's picture
      pixel,
      isDark: document.documentElement.dataset.theme === "dark",
      isPlaying: false,
      cloud: {
        colour: scene.centre ? "view" : "disparity",
        size: 1.8,
        confidence: 0,
        stretch: 1,
        hideEdges: true,
      },
    };
  }

  makeActions() {
    const { state } = this;
    return {
      tool: (tool) => this.chooseTool(tool),
      layout: (layout) => this.chooseLayout(layout),
      exchange: () => state.set({ left: state.get("right"), right: state.get("left") }),
      compare: (left, right) => {
        const layout = ["wipe", "pair"].includes(state.get("layout")) ? {} : { layout: "wipe" };
        state.set({ left, right, ...layout });
      },
      hover: (place) => state.set({ hover: place && this.toPixel(place) }),
      leave: () => this.leave(),
      click: (place) => this.click(this.toPixel(place)),
      look: (part) => this.look(part),
      zoom: (zoom) => state.set({ zoom }),
      split: (part) => state.set({ split: clamp(part, 0, 1) }),
      moveCamera: (camera, isSlow) => this.moveCamera(camera, isSlow),
      showFocus: () => this.showPhoto("refocused"),
      showView: () => this.showPhoto("view"),
      play: () => this.play(!state.get("isPlaying")),
      nextMap: (step) => {
        const count = this.scene.meta.colours.length - 1;
        state.set({ map: (state.get("map") + step + count) % count });
      },
      resetRange: () => state.set({ range: this.scene.extent.usual }),
      resetCloud: () => this.cloud?.reset(),
      theme: () => this.useTheme(!state.get("isDark")),
      save: () => this.save(),
      help: () => element("keys").showModal(),
      arrow: (x, y) => this.arrow(x, y),
    };
  }

  // What the user does ---------------------------------------------------------------------------

  chooseTool(tool) {
    if (tool !== "inspect" && !this.scene.meta.views) return;
    this.play(false);
    if (this.state.get("layout") === "cloud") this.state.set({ layout: "wipe" });
    this.state.set({ tool, hover: null });
    if (tool === "focus") this.showPhoto("refocused");
    else this.showPhoto("view", tool === "look");
    if (tool !== "look") this.moveCamera({ x: 0, y: 0 }, true);
  }

  chooseLayout(layout) {
    this.play(false);
    this.state.set({ layout, hover: null });
    if (layout === "cloud") this.showCloud();
    else this.cloud?.hide();
  }

  /**
   * Show the photo, plain or refocused: where the other of the two is shown; else, if it must be, on
   * the left.
   */
  showPhoto(wanted, isMust = true) {
    if (!this.layers.some(({ id }) => id === wanted)) return;
    const { values } = this.state;
    const sides = values.layout === "single" ? ["left"] : ["left", "right"];
    if (sides.some((side) => values[side] === wanted)) return;
    const other = wanted === "view" ? "refocused" : "view";
    const place = sides.find((side) => values[side] === other);
    if (place || isMust) this.state.set({ [place ?? "left"]: wanted });
  }

  /** A place of the stage's picture as a pixel of the centre view. */
  toPixel({ x, y, pane }) {
    const { camera } = this.state.values;
    const centre = isFixed(pane.layer) ? { x, y } : toCentre(this.scene, { x, y }, camera);
    return {
      x: clamp(Math.floor(centre.x), 0, this.scene.width - 1),
      y: clamp(Math.floor(centre.y), 0, this.scene.height - 1),
      pane: pane.layer.id,
      at: { x, y },
    };
  }

  click({ x, y }) {
    if (this.state.get("tool") === "focus") {
      const focus = valueAt(this.scene, this.scene.disparity, x, y);
      if (focus === null) return;
      const from = this.state.get("focus");
      this.animate("focus", 320, (part) => this.state.set({ focus: from + (focus - from) * part }));
    }
    this.state.set({ pixel: { x, y } });
  }

  look(part) {
    const { rows, columns, middle } = this.scene.grid;
    const x = clamp(part.x, 0, 1) * (columns - 1) - middle.v;
    const y = clamp(part.y, 0, 1) * (rows - 1) - middle.u;
    this.moveCamera({ x, y }, false);
  }

  /** A square of the pixel card: go to the view, or show its whole mask. */
  chooseCell(grid, place) {
    if (this.state.get("layout") === "cloud") this.chooseLayout("wipe");
    if (grid === "patch") {
      this.showPhoto("view");
      return this.moveCamera(place, true);
    }
    const { left, layout } = this.state.values;
    const side = layout === "single" || left === "mask" ? "left" : "right";
    this.state.set({ maskView: place, [side]: "mask" });
  }

  leave() {
    this.state.set({ hover: null });
    if (this.state.get("tool") === "look" && !this.state.get("isPlaying"))
      this.moveCamera({ x: 0, y: 0 }, true);
  }

  moveCamera(to, isSlow) {
    this.play(false);
    const { rows, columns, middle } = this.scene.grid;
    const limited = {
      x: clamp(to.x, -middle.v, columns - 1 - middle.v),
      y: clamp(to.y, -middle.u, rows - 1 - middle.u),
    };
    const from = this.state.get("camera");
    if (from.x === limited.x && from.y === limited.y) return;
    this.animate("camera", isSlow ? 260 : 0, (part) => {
      const along = (axis) => from[axis] + (limited[axis] - from[axis]) * part;
      this.state.set({ camera: part === 1 ? limited : { x: along("x"), y: along("y") } });
    });
  }

  /** Travel on a circle through the views, or stop. */
  play(isPlaying) {
    if (isPlaying === this.state.get("isPlaying")) return;
    this.state.set({ isPlaying });
    this.animations.delete("camera");
    if (!isPlaying) return;
    this.showPhoto("view");
    if (this.state.get("layout") === "cloud") this.chooseLayout("wipe");
    this.state.set({ isPlaying });
    const { middle } = this.scene.grid;
    const began = performance.now();
    const step = (now) => {
      if (!this.state.get("isPlaying")) return;
      const time = (now - began) / 1000;
      const reach = Math.min(time / 1.2, 1) * 0.9;
      const angle = time * 1.3;
      const camera = { x: middle.v * reach * Math.sin(angle), y: middle.u * reach * Math.cos(angle) };
      this.state.set({ camera });
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  arrow(x, y) {
    const { tool, layout, pixel, camera, focus } = this.state.values;
    if (layout === "cloud") return this.cloud?.turn(x * 0.05, -y * 0.05);
    if (tool === "look" || document.activeElement === element("pad")) {
      const whole = { x: Math.round(camera.x + Math.sign(x)), y: Math.round(camera.y + Math.sign(y)) };
      this.showPhoto("view");
      return this.moveCamera(whole, true);
    }
    if (tool === "focus") {
      const [low, high] = this.scene.extent.full;
      const step = (high - low) / 100;
      return this.state.set({ focus: clamp(focus + (x - y) * step, low, high) });
    }
    this.state.set({
      pixel: {
        x: clamp(pixel.x + x, 0, this.scene.width - 1),
        y: clamp(pixel.y + y, 0, this.scene.height - 1),
      },
    });
  }

  /** Zoom about the middle of the stage; 0 shows the whole picture. */
  zoomBy(factor) {
    if (this.state.get("layout") === "cloud")
      return factor ? this.cloud?.zoom(factor) : this.cloud?.reset();
    if (!factor) return this.state.set({ zoom: { factor: 1, x: 0, y: 0 } });
    const { panes, picture } = this.stage;
    const { rect } = panes[0];
    const middle = { x: (rect.left + rect.right) / 2, y: (rect.top + rect.bottom) / 2 };
    this.state.set({ zoom: zoomAt(this.state.values, panes, middle, factor, picture) });
  }

  useTheme(isDark) {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    this.state.set({ isDark });
  }

  save() {
    const isCloud = this.state.get("layout") === "cloud";
    if (isCloud) this.cloud.draw();
    else this.stage.draw(); // what was drawn is only there until the next frame
    const canvas = isCloud ? this.cloud.renderer.domElement : element("picture");
    canvas.toBlob((blob) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = `${this.scene.meta.scene.replace(/[^\w.-]+/g, "_")}.png`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    });
  }

  // Drawing --------------------------------------------------------------------------------------

  /** Run something over time, eased; a later one of the same name takes its place. */
  animate(name, duration, apply) {
    const began = performance.now();
    const token = {};
    this.animations.set(name, token);
    if (!duration || prefersStillness.matches) return apply(1);
    const step = (now) => {
      if (this.animations.get(name) !== token) return;
      const part = clamp((now - began) / duration, 0, 1);
      apply(part === 1 ? 1 : 1 - (1 - part) ** 3);
      if (part < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  /** Something changed: draw at the next frame, once. */
  refresh(changed) {
    if (!this.stale.size) requestAnimationFrame(() => this.stale.size && this.draw());
    for (const name of changed) this.stale.add(name);
  }

  /** The stage has another size: nothing to do the first time, when it only says what it is. */
  resize() {
    const { clientWidth, clientHeight } = element("viewport");
    const size = `${clientWidth} ${clientHeight}`;
    if (this.size !== undefined && this.size !== size) this.refresh(new Set(["size"]));
    this.size = size;
  }

  draw() {
    const changed = this.stale;
    this.stale = new Set();
    const has = (...names) => names.some((name) => changed.has(name));
    const { values } = this.state;
    this.controls.sync(changed);
    element("hint").textContent = (hasTouch.matches ? TOUCH_HINTS : HINTS)[values.layout === "cloud" ? "cloud" : values.tool];
    if (values.layout === "cloud") this.drawCloud(has);
    else if ([...changed].every((name) => MARKS_ONLY.has(name))) this.stage.drawMarks(values);
    else this.stage.draw();
    writeReadout(this.scene, values.hover && factsAt(this.scene, values.hover.x, values.hover.y), values);
    if (has("size")) this.controls.sync(new Set(["range", "camera"]));
    if (has("pixel", "isDark", "size", "details"))
      this.inspector.show(values.pixel.x, values.pixel.y, this.isComplete);
  }

  showCloud() {
    if (!this.cloud) {
      element("cloud").hidden = false;
      this.cloud = new Cloud(element("cloud"), this.scene, this.readPhoto());
      this.refresh(new Set(["cloud"]));
    }
    // The stage becomes visible with the next drawing; only then has the cloud a size.
    requestAnimationFrame(() => this.cloud.show());
  }

  /** The centre view's pixels, RGBA, or null. */
  readPhoto() {
    if (!this.scene.centre) return null;
    const canvas = new OffscreenCanvas(this.scene.width, this.scene.height);
    const context = canvas.getContext("2d");
    context.drawImage(this.scene.centre, 0, 0);
    return context.getImageData(0, 0, canvas.width, canvas.height).data;
  }

  drawCloud(has) {
    if (!this.cloud) return;
    const { values } = this.state;
    if (has("size", "layout")) this.cloud.resize();
    const isMapped = values.cloud.colour === "disparity" && has("map", "range");
    if (!has("cloud") && !isMapped) return;
    const [low, high] = values.range;
    this.cloud.update(values.cloud, (d) => {
      const part = clamp((d - low) / (high - low), 0, 1);
      return [this.scene.colours, (values.map * 256 + Math.round(part * 255)) * 3];
    });
  }

  watchGraphics() {
    element("picture").addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      showWithoutGraphics(this.scene, "The graphics card was reset. Reload this page.");
    });
  }

  /** Let the rest of the data come in. */
  async complete() {
    const { scene, renderer } = this;
    renderer.makeRoom();
    const places = scene.meta.views?.places ?? [];
    await loadPictures(scene, "view", places, (...view) => renderer.addView(...view));
    await loadEvidence(scene);
    await loadPictures(scene, "mask", maskPlaces(scene), (...mask) => renderer.addMask(...mask));
    this.isComplete = true;
    this.refresh(new Set(["details"]));
  }
}

async function start() {
  const follow = () =>
    (document.documentElement.dataset.theme = prefersDark.matches ? "dark" : "light");
  follow();
  const meta = JSON.parse(element("meta").textContent);
  writeAbout(meta);
  const scene = await loadScene(meta);
  const { dataset } = document.documentElement;
  try {
    const page = new Page(scene);
    prefersDark.addEventListener("change", () => page.useTheme(prefersDark.matches));
    page.refresh(new Set([...Object.keys(page.state.values), "size"]));
    page.draw();
    dataset.state = "ready";
    dataset.readyMs = Math.round(performance.now());
    await page.complete();
    page.draw();
    dataset.state = "complete";
    dataset.completeMs = Math.round(performance.now());
  } catch (error) {
    if (!(error instanceof GraphicsError)) throw error;
    showWithoutGraphics(scene, error.message);
  }
}

start();
