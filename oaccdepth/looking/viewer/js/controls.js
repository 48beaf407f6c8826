// The bars and cards: every control sets the state, and follows it.
import { Histogram, cssColour, describeRange, sized } from "./colour.js";
import { depthOf, formatDepth, signed } from "./scene.js";

const find = (id) => document.getElementById(id);
const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** An option of a menu; its name is text, whatever it holds. */
function option(value, name) {
  const element = document.createElement("option");
  element.value = value;
  element.textContent = name;
  return element;
}

export class Controls {
  constructor(scene, state, layers, actions) {
    Object.assign(this, { scene, state, layers, actions });
    this.histogram = new Histogram(find("histogram"), scene, state);
    this.fillMenus();
    this.bindBars();
    this.bindColour();
    this.bindCamera();
    this.bindCloud();
    this.paintErrorKey();
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
    const choose = (id, name, call) =>
      find(id).addEventListener("click", (event) => {
        const value = event.target.closest("button")?.dataset[name];
        if (value) call(value);
      });
    choose("tools", "tool", this.actions.tool);
    choose("layouts", "layout", this.actions.layout);
    for (const id of ["help", "theme", "save", "play"])
      find(id).addEventListener("click", () => this.actions[id]());
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
    find("usual").addEventListener("click", this.actions.resetRange);
    find("full").addEventListener("click", () => state.set({ range: this.scene.extent.full }));
    find("error").addEventListener("change", (event) => {
      const value = event.target.valueAsNumber;
      if (value > 0) state.set({ errorRange: value });
      else this.sync(new Set(["errorRange"]));
    });
  }

  /** What the colours of errors and changes mean. */
  paintErrorKey() {
    const last = this.scene.meta.colours.length - 1;
    const colours = [0, 1, 2, 3, 4, 5, 6].map((i) => cssColour(this.scene, last, i / 6));
    const key = find("error-key").querySelector("i");
    key.style.setProperty("background", `linear-gradient(to right, ${colours})`);
  }

  bindCamera() {
    const { state, scene, actions } = this;
    const { rows, columns } = scene.grid;
    const [low, high] = scene.extent.full;
    Object.assign(find("focus"), { min: low, max: high });
    find("aperture").max = Math.hypot(rows >> 1, columns >> 1).toFixed(1);
    const slide = (id) =>
      find(id).addEventListener("input", (event) => {
        actions.showFocus();
        state.set({ [id]: event.target.valueAsNumber });
      });
    slide("focus");
    slide("aperture");
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
      actions.showView();
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
    find("cloud-edges").addEventListener("change", (event) =>
      set({ hideEdges: event.target.checked }),
    );
    find("cloud-reset").addEventListener("click", this.actions.resetCloud);
  }

  hideWhatIsMissing() {
    const { meta, truth } = this.scene;
    find("camera-card").hidden = !meta.views;
    for (const tool of ["look", "focus"])
      document.querySelector(`[data-tool=${tool}]`).hidden = !meta.views;
    for (const id of ["error-field", "error-key"])
      find(id).hidden = !truth && meta.passes.length < 2;
    find("truth-legend").hidden = !truth;
    find("pixel-card").querySelector(".legend").hidden = !meta.views && !meta.evidence;
    if (!this.scene.centre) find("cloud-colour").querySelector("[value=view]").remove();
  }

  /** Follow the state; `changed` names what is new. */
  sync(changed) {
    const { values } = this.state;
    const has = (...names) => names.some((name) => changed.has(name));
    if (has("tool", "layout")) this.syncBars(values);
    if (has("left", "right")) for (const side of ["left", "right"]) find(side).value = values[side];
    if (has("range", "map", "errorRange", "isDark")) this.syncColour(values);
    if (has("maskView")) this.nameMask(values.maskView);
    if (has("focus", "aperture")) this.syncFocus(values);
    if (has("camera", "isDark", "layout")) this.drawPad(values.camera);
    if (has("cloud")) this.syncCloud(values.cloud);
    if (has("isPlaying")) {
      find("play").querySelector("use").setAttribute("href", values.isPlaying ? "#icon-stop" : "#icon-play");
      find("play").querySelector("span").textContent = values.isPlaying ? "Stop" : "Travel";
    }
  }

  syncBars({ tool, layout }) {
    for (const button of find("tools").children) {
      button.setAttribute("aria-pressed", button.dataset.tool === tool && layout !== "cloud");
      button.disabled = false;
    }
    for (const button of find("layouts").children)
      button.setAttribute("aria-pressed", button.dataset.layout === layout);
    const isCloud = layout === "cloud";
    find("viewport").dataset.tool = tool;
    find("stage").dataset.layout = layout;
    find("cloud").hidden = !isCloud;
    find("cloud-card").hidden = !isCloud;
    find("camera-card").hidden = isCloud || !this.scene.meta.views;
    for (const id of ["picture", "marks", "left"]) find(id).hidden = isCloud;
    find("right").hidden = isCloud || layout === "single";
    find("handle").hidden = layout !== "wipe";
  }

  nameMask({ x, y }) {
    const { middle } = this.scene.grid;
    for (const item of document.querySelectorAll(".pill option[value=mask]"))
      item.textContent = `Mask of view ${y + middle.u}, ${x + middle.v}`;
  }

  syncColour({ range, map, errorRange }) {
    find("map").value = map;
    find("low").value = range[0].toFixed(2);
    find("high").value = range[1].toFixed(2);
    find("error").value = Number(errorRange.toFixed(3));
    find("range-text").textContent = describeRange(range);
    this.histogram.draw();
  }

  syncFocus({ focus, aperture }) {
    find("focus").value = focus;
    find("aperture").value = aperture;
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

  syncCloud({ size, confidence, stretch, colour, hideEdges }) {
    find("cloud-size").value = size;
    find("cloud-confidence").value = confidence;
    find("cloud-stretch").value = stretch;
    find("cloud-colour").value = colour;
    find("cloud-edges").checked = hideEdges;
    find("cloud-confidence-text").textContent = confidence.toFixed(2);
    find("cloud-stretch-text").textContent = `× ${stretch.toFixed(1)}`;
    find("cloud-text").textContent = this.scene.meta.camera ? "to scale" : "depth not to scale";
  }

  /** The grid of cameras, a dot for every view that has come in, and where the camera is. */
  drawPad(camera) {
    const { scene } = this;
    if (!scene.meta.views) return;
    const { context, width, height } = sized(find("pad"));
    if (!width) return;
    const { rows, columns, middle } = scene.grid;
    const place = (index, count, side) => side * (0.08 + (0.84 * index) / Math.max(count - 1, 1));
    const style = getComputedStyle(document.documentElement);
    context.fillStyle = style.getPropertyValue("--soft");
    for (const [u, v] of scene.meta.views.places) {
      context.beginPath();
      context.arc(place(v, columns, width), place(u, rows, height), 1.6, 0, 2 * Math.PI);
      context.fill();
    }
    const x = place(camera.x + middle.v, columns, width);
    const y = place(camera.y + middle.u, rows, height);
    context.fillStyle = style.getPropertyValue("--mark");
    context.strokeStyle = style.getPropertyValue("--card");
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

/** The read-out below the stage: the numbers of a pixel, or what can be done here. */
export function writeReadout(scene, facts, look) {
  find("hint").hidden = Boolean(facts);
  find("numbers").hidden = !facts;
  if (!facts) return;
  const swatch = document.createElement("i");
  const part = (facts.disparity - look.range[0]) / (look.range[1] - look.range[0]);
  if (facts.disparity !== null)
    swatch.style.setProperty("background", cssColour(scene, look.map, part));
  const parts = [
    ["x", facts.x, "3ch"],
    ["y", facts.y, "3ch"],
    ["disparity", facts.disparity === null ? "not known" : `${signed(facts.disparity)} px`, "8ch"],
    ["confidence", facts.confidence.toFixed(2), "4ch"],
  ];
  if (scene.meta.camera) parts.push(["depth", formatDepth(facts.depth), "7ch"]);
  if (facts.error !== null) parts.push(["error", `${signed(facts.error)} px`, "8ch"]);
  const items = parts.map(([name, value, room]) => {
    const [item, number] = [document.createElement("span"), document.createElement("b")];
    number.textContent = value;
    number.dataset.name = name;
    number.style.setProperty("--room", room);
    item.append(`${name} `, number);
    return item;
  });
  find("numbers").replaceChildren(swatch, ...items);
}

/** Head of the page and the card about it; all as text. */
export function writeAbout(meta) {
  const [width, height] = meta.size;
  const grid = meta.grid ? `${meta.grid[0]} × ${meta.grid[1]} views` : null;
  const { seconds } = meta.made;
  const total = seconds.total ?? Object.values(seconds).reduce((sum, value) => sum + value, 0);
  const time = total > 0 ? `${total.toFixed(total < 10 ? 1 : 0)} s` : null;
  const weights = meta.made.weights || null;
  find("scene").textContent = meta.scene;
  const size = `${width} × ${height} px`;
  find("facts").textContent = [grid, size, weights && `weights ${weights}`, time]
    .filter(Boolean)
    .join(" · ");
  const { camera } = meta;
  const rows = [
    ["Light field", [grid, size].filter(Boolean).join(", ")],
    ["Weights", weights],
    ["Device", meta.made.device || null],
    ["Time", time],
    ["Searched", meta.searched && describeRange(meta.searched)],
    ["Camera", camera && `${camera.focal} mm lens, ${camera.baseline} mm between views`],
    ["Made with", meta.made.version && `oaccdepth ${meta.made.version}`],
  ].filter(([, value]) => value);
  find("about-facts").replaceChildren(
    ...rows.flatMap(([name, value]) => {
      const [term, detail] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = name;
      detail.textContent = value;
      return [term, detail];
    }),
  );
  find("about-notes").replaceChildren(
    ...[...meta.notes, ...meta.remarks].map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    }),
  );
}
