// The bars and cards: every control sets the state and follows it.
import { Histogram, describeRange } from "./colour.js";
import { find, make, sized, themeColour } from "./elements.js";
import { signed } from "./scene.js";
import { depthOf, formatDepth } from "./space.js";

const capital = (text) => text[0].toUpperCase() + text.slice(1);

const option = (value, name) => make("option", { value }, name);
const CARDS = { inspect: "pixel-card", move: "move-card", focus: "focus-card", cloud: "cloud-card" };

export class Controls {
  constructor(scene, state, layers, actions) {
    Object.assign(this, { scene, state, layers, actions });
    this.histogram = new Histogram(find("histogram"), scene, state);
    this.fillMenus();
    this.bindBars();
    this.bindColour();
    this.bindCamera();
    this.bindCloud();
    this.hideWhatIsMissing();
  }

  fillMenus() {
    for (const side of ["left", "right"]) {
      find(side).append(...this.layers.map(({ id, name }) => option(id, name)));
      find(side).addEventListener("change", (event) =>
        this.state.set({ [side]: event.target.value }),
      );
    }
    const maps = this.scene.meta.colours.slice(0, -1); // the last is for differences
    find("map").append(...maps.map((name, i) => option(i, capital(name))));
  }

  bindBars() {
    const { actions } = this;
    for (const button of document.querySelectorAll("[data-tool]"))
      if (button.tagName === "BUTTON")
        button.addEventListener("click", () => actions.chooseTool(button.dataset.tool));
    for (const button of document.querySelectorAll("button[data-layout]"))
      button.addEventListener("click", () => actions.chooseLayout(button.dataset.layout));
    for (const id of ["help", "theme", "save", "record", "link"])
      find(id).addEventListener("click", () => actions[id]());
    for (const button of document.querySelectorAll(".play"))
      button.addEventListener("click", () => actions.play());
    find("cover").addEventListener("pointerdown", (event) => {
      if (event.target === find("cover")) actions.chooseTool("move");
    });
  }

  bindColour() {
    const { state } = this;
    find("map").addEventListener("change", (event) => state.set({ map: Number(event.target.value) }));
    const setEnd = (index) => (event) => {
      const value = event.target.valueAsNumber;
      const range = [...state.get("range")];
      range[index] = value;
      if (Number.isFinite(value) && range[0] < range[1]) state.set({ range });
      else this.sync(new Set(["range"]));
    };
    find("low").addEventListener("change", setEnd(0));
    find("high").addEventListener("change", setEnd(1));
    find("auto").addEventListener("click", () => this.actions.resetRange());
    find("full").addEventListener("click", () => state.set({ range: this.scene.extent.full }));
    find("error").addEventListener("change", (event) => {
      const value = event.target.valueAsNumber;
      if (value > 0) state.set({ errorRange: value });
      else this.sync(new Set(["errorRange"]));
    });
  }

  bindCamera() {
    const { state, scene, actions } = this;
    const { rows, columns } = scene.grid;
    const [low, high] = scene.extent.full;
    Object.assign(find("focus"), { min: low, max: high });
    find("aperture").max = Math.hypot(rows >> 1, columns >> 1).toFixed(1);
    const slide = (id) =>
      find(id).addEventListener("input", (event) => {
        actions.stopMotion();
        actions.showPhoto("refocused");
        state.set({ [id]: event.target.valueAsNumber });
      });
    slide("focus");
    slide("aperture");
    find("through").addEventListener("change", (event) => actions.seeThrough(event.target.checked));
    find("centre").addEventListener("click", () => actions.moveCamera({ x: 0, y: 0 }, true));
    const pad = find("pad");
    const drag = (event) => {
      if (!pad.hasPointerCapture(event.pointerId)) return;
      const part = (offset, side) => (offset / side - 0.08) / 0.84;
      actions.look({
        x: part(event.offsetX, pad.clientWidth),
        y: part(event.offsetY, pad.clientHeight),
      });
    };
    pad.addEventListener("pointerdown", (event) => {
      pad.setPointerCapture(event.pointerId);
      actions.showPhoto("view");
      drag(event);
    });
    pad.addEventListener("pointermove", drag);
  }

  bindCloud() {
    const set = (changes) => this.state.set({ cloud: { ...this.state.get("cloud"), ...changes } });
    for (const name of ["size", "confidence", "stretch"])
      find(`cloud-${name}`).addEventListener("input", (event) =>
        set({ [name]: event.target.valueAsNumber }),
      );
    find("cloud-colour").addEventListener("change", (event) => set({ colour: event.target.value }));
    find("cloud-free").addEventListener("change", (event) => {
      set({ isFree: event.target.checked });
      this.actions.release();
    });
    find("cloud-reset").addEventListener("click", () => this.actions.resetCloud());
  }

  hideWhatIsMissing() {
    const { meta, truth } = this.scene;
    for (const tool of ["move", "focus"])
      for (const button of document.querySelectorAll(`[data-tool=${tool}]`)) button.hidden = !meta.views;
    find("truth-legend").hidden = !truth;
    find("pixel-card").querySelector(".legend").hidden = !meta.views && !meta.evidence;
    if (!this.scene.centre) find("cloud-colour").querySelector("[value=view]").remove();
  }

  /** Follow the state; `changed` names the values that are new. */
  sync(changed) {
    const { values } = this.state;
    const has = (...names) => names.some((name) => changed.has(name));
    if (has("tool", "layout", "isCover")) this.syncBars(values);
    if (has("left", "right")) for (const side of ["left", "right"]) find(side).value = values[side];
    if (has("left", "right", "layout", "tool")) this.syncErrorField(values);
    if (has("range", "map", "errorRange", "isDark", "isCover")) this.syncColour(values);
    if (has("maskView")) this.nameMask(values.maskView);
    if (has("focus", "aperture", "isSeeThrough")) this.syncFocus(values);
    if (has("camera", "isDark", "tool", "isCover")) this.drawPad(values.camera);
    if (has("cloud")) this.syncCloud(values.cloud);
    if (has("motion")) this.syncPlay(values.motion);
    if (has("isRecording")) find("record").setAttribute("aria-pressed", values.isRecording);
  }

  syncPlay(motion) {
    for (const button of document.querySelectorAll(".play")) {
      button.querySelector("use").setAttribute("href", motion ? "#icon-stop" : "#icon-play");
      button.querySelector("span").textContent = motion ? "Stop" : "Play";
    }
  }

  syncBars({ tool, layout, isCover }) {
    const isCloud = tool === "cloud";
    for (const button of document.querySelectorAll("#tools button"))
      button.setAttribute("aria-pressed", button.dataset.tool === tool);
    for (const button of document.querySelectorAll("#layouts button"))
      button.setAttribute("aria-pressed", button.dataset.layout === layout);
    find("layouts").hidden = isCloud;
    document.documentElement.toggleAttribute("data-cover", isCover);
    find("cover").hidden = !isCover;
    find("viewport").dataset.tool = tool;
    find("stage").dataset.layout = isCloud ? "single" : layout;
    find("left").hidden = isCloud || isCover;
    find("right").hidden = isCloud || isCover || layout === "single";
    find("handle").hidden = isCloud || isCover || layout !== "wipe";
    this.sortCards(tool);
  }

  /** The tool's card comes first; in 3D, the cards about pictures are hidden. */
  sortCards(tool) {
    const { views } = this.scene.meta;
    const isCloud = tool === "cloud";
    for (const id of ["move-card", "focus-card"]) find(id).hidden = isCloud || !views;
    find("cloud-card").hidden = !isCloud;
    const rest = ["colour-card", "move-card", "focus-card", "cloud-card", "pixel-card", "about"];
    const order = [CARDS[tool], ...rest.filter((id) => id !== CARDS[tool])];
    const now = [...find("cards").children].map(({ id }) => id);
    if (now.join() !== order.join()) find("cards").append(...order.map(find));
  }

  /** The colour range of errors and changes, while one is shown. */
  syncErrorField({ left, right, layout, tool }) {
    const shown = layout === "single" ? [left] : [left, right];
    const isShown = shown.some((id) => id === "error" || id === "change");
    find("error-field").hidden = tool === "cloud" || !isShown;
  }

  nameMask({ x, y }) {
    const { middle } = this.scene.grid;
    for (const item of document.querySelectorAll(".pill option[value=mask]"))
      item.textContent = `Mask: row ${y + middle.u}, column ${x + middle.v}`;
  }

  syncColour({ range, map, errorRange }) {
    find("map").value = map;
    find("low").value = range[0].toFixed(2);
    find("high").value = range[1].toFixed(2);
    find("error").value = Number(errorRange.toFixed(3));
    find("range-text").textContent = describeRange(range);
    this.histogram.draw();
  }

  syncFocus({ focus, aperture, isSeeThrough }) {
    find("focus").value = focus;
    find("aperture").value = aperture;
    find("through").checked = isSeeThrough;
    const depth = this.scene.meta.camera ? ` · ${formatDepth(depthOf(this.scene, focus))}` : "";
    find("focus-text").textContent = `${signed(focus, 2)} px${depth}`;
    const count = this.countViews(aperture);
    find("aperture-text").textContent = count === 1 ? "1 view" : `${count} views`;
  }

  countViews(aperture) {
    const { u: cu, v: cv } = this.scene.grid.middle;
    const places = this.scene.meta.views?.places ?? [];
    return places.filter(([u, v]) => Math.hypot(u - cu, v - cv) <= aperture + 1e-4).length;
  }

  syncCloud({ size, confidence, stretch, colour, isFree }) {
    find("cloud-size").value = size;
    find("cloud-confidence").value = confidence;
    find("cloud-stretch").value = stretch;
    find("cloud-colour").value = colour;
    find("cloud-free").checked = isFree;
    find("cloud-confidence-text").textContent = confidence.toFixed(2);
    find("cloud-stretch-text").textContent = `× ${stretch.toFixed(1)}`;
    find("cloud-text").textContent = this.scene.meta.camera ? "to scale" : "depth not to scale";
  }

  /** The grid of cameras: a dot for every loaded view, and the position of the camera. */
  drawPad(camera) {
    const { scene } = this;
    if (!scene.meta.views) return;
    const { context, width, height } = sized(find("pad"));
    if (!width) return;
    const { rows, columns, middle } = scene.grid;
    const place = (index, count, side) => side * (0.08 + (0.84 * index) / Math.max(count - 1, 1));
    context.fillStyle = themeColour("--soft");
    for (const [u, v] of scene.meta.views.places) {
      context.beginPath();
      context.arc(place(v, columns, width), place(u, rows, height), 1.6, 0, 2 * Math.PI);
      context.fill();
    }
    const x = place(camera.x + middle.v, columns, width);
    const y = place(camera.y + middle.u, rows, height);
    context.fillStyle = themeColour("--mark");
    context.strokeStyle = themeColour("--card");
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x, y, 7, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
    const text = (value, centre) => (value + centre).toFixed(1);
    find("camera-text").textContent =
      `row ${text(camera.y, middle.u)}, column ${text(camera.x, middle.v)}`;
  }
}
