// What the user can do: every action changes the state; nothing is drawn here.
import { clamp, download, find, prefersStillness } from "./elements.js";
import { zoomAt } from "./frame.js";
import { LOOP_SECONDS } from "./motion.js";
import { valueAt } from "./scene.js";
import { toCentre } from "./space.js";
import { isFixed } from "./stage.js";
import { REST } from "./state.js";

const MOTIONS = { inspect: "travel", move: "travel", focus: "pull", cloud: "sway" };

export class Actions {
  constructor(scene, state, layers, stage, motion, address) {
    Object.assign(this, { scene, state, layers, stage, motion, address });
    const { left, right, layout, split } = state.values;
    this.front = { left, right, layout, split }; // what the cover hides
  }

  // Tools and layouts ----------------------------------------------------------------------------

  chooseTool(tool) {
    if (["move", "focus"].includes(tool) && !this.scene.meta.views) return;
    this.leaveCover();
    this.stopMotion();
    this.state.set({ tool, hover: null, isPointChosen: false });
    if (!this.state.get("isLayoutChosen"))
      this.state.set({ layout: tool === "inspect" ? "wipe" : "single" });
    if (tool === "cloud") return this.showCloud();
    if (tool === "focus") this.showFocus();
    else this.showPhoto("view", tool === "move");
    if (tool !== "move") this.moveCamera({ x: 0, y: 0 }, true);
  }

  /** The first time, focus on the subject. */
  showFocus() {
    this.showPhoto("refocused");
    const { subject } = this.state.values;
    if (subject) this.state.set({ pixel: subject, subject: null });
  }

  chooseLayout(layout) {
    this.leaveCover();
    this.stopMotion();
    this.state.set({ layout, isLayoutChosen: true, hover: null });
    if (this.state.get("tool") === "cloud") this.state.set({ tool: "inspect" });
  }

  compare(left, right) {
    if (this.state.get("layout") === "single" || this.state.get("tool") === "cloud")
      this.chooseLayout("wipe");
    this.leaveCover();
    this.state.set({ left, right });
  }

  swap() {
    this.state.set({ left: this.state.get("right"), right: this.state.get("left") });
  }

  /** The cover: only the picture, moving; or still, if the user prefers reduced motion. */
  showCover() {
    this.state.set({ isCover: true, layout: "single", tool: "move", left: "view" });
    if (!prefersStillness.matches) this.motion.start("cover");
  }

  leaveCover() {
    if (!this.state.get("isCover")) return;
    this.motion.stop();
    const { focus, aperture } = this.motion.home;
    this.state.set({ ...this.front, isCover: false, focus, aperture, camera: { x: 0, y: 0 } });
  }

  /**
   * Show the photo, plain or refocused: in the pane that shows the other of the two, or else, if
   * required, on the left.
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

  // Pixels ---------------------------------------------------------------------------------------

  hover(place) {
    this.state.set({ hover: place && this.toPixel(place) });
  }

  leave() {
    this.state.set({ hover: null });
    if (this.state.get("tool") === "move" && !this.state.get("motion"))
      this.moveCamera({ x: 0, y: 0 }, true);
  }

  /** A position in the picture on the stage -> a pixel of the centre view. */
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

  click(place) {
    const { x, y } = this.toPixel(place);
    if (this.state.get("tool") === "focus") this.focusOn(valueAt(this.scene, this.scene.disparity, x, y));
    this.state.set({ pixel: { x, y } });
  }

  /** A click on a square of the pixel card: go to that view, or show its whole mask. */
  chooseCell(grid, place) {
    if (this.state.get("tool") === "cloud") this.chooseTool("inspect");
    if (grid === "patch") {
      this.showPhoto("view");
      return this.moveCamera(place, true);
    }
    const { left, layout } = this.state.values;
    const side = layout === "single" || left === "mask" ? "left" : "right";
    this.state.set({ maskView: place, [side]: "mask" });
  }

  // Camera and focus -----------------------------------------------------------------------------

  look(part) {
    const { rows, columns, middle } = this.scene.grid;
    const x = clamp(part.x, 0, 1) * (columns - 1) - middle.v;
    const y = clamp(part.y, 0, 1) * (rows - 1) - middle.u;
    this.moveCamera({ x, y }, false);
  }

  moveCamera(to, isSlow) {
    this.stopMotion();
    const { rows, columns, middle } = this.scene.grid;
    const limited = {
      x: clamp(to.x, -middle.v, columns - 1 - middle.v),
      y: clamp(to.y, -middle.u, rows - 1 - middle.u),
    };
    const from = this.state.get("camera");
    this.motion.cancel("camera");
    if (from.x === limited.x && from.y === limited.y) return;
    this.motion.animate("camera", isSlow ? 260 : 0, (part) => {
      const along = (axis) => from[axis] + (limited[axis] - from[axis]) * part;
      this.state.set({ camera: part === 1 ? limited : { x: along("x"), y: along("y") } });
    });
  }

  focusOn(focus) {
    if (focus === null) return;
    this.stopMotion();
    const from = this.state.get("focus");
    this.motion.animate("focus", 320, (part) => this.state.set({ focus: from + (focus - from) * part }));
  }

  /** Hide what is in front of the focus, or show it again. */
  seeThrough(isOn = !this.state.get("isSeeThrough")) {
    if (!this.scene.meta.views) return;
    if (this.state.get("tool") !== "focus") this.chooseTool("focus");
    this.state.set({ isSeeThrough: isOn });
  }

  // Motion, clip, link ---------------------------------------------------------------------------

  play() {
    if (this.state.get("motion")) return this.stopMotion();
    this.leaveCover();
    const { tool } = this.state.values;
    if (tool !== "cloud" && !this.scene.meta.views) return;
    if (tool === "focus") this.showPhoto("refocused");
    else if (tool !== "cloud") this.showPhoto("view");
    this.motion.start(MOTIONS[tool]);
  }

  stopMotion() {
    if (this.state.get("motion")) this.motion.stop();
    if (this.state.get("notice")) this.state.set({ notice: "" });
  }

  /** Copy a link to what is shown; it is in the address bar, too. */
  async link() {
    history.replaceState(null, "", this.address.write(this.state.values));
    this.state.set({ notice: "The link is in the address bar." });
    try {
      await navigator.clipboard.writeText(location.href);
      this.state.set({ notice: "Link copied." });
    } catch {
      // Copying is not allowed here, but the link is in the address bar.
    }
  }

  /** Follow a link: whatever it does not mention stays as it is. */
  follow(hash) {
    const changes = this.address.read(hash, this.state.values);
    if (!changes) return false;
    this.chooseTool(changes.tool ?? this.state.get("tool"));
    this.motion.cancel("camera"); // the tool may move it back to the centre
    this.stopMotion();
    const isLayoutChosen = this.state.get("isLayoutChosen") || "layout" in changes;
    const subject = "pixel" in changes || "focus" in changes ? null : this.state.get("subject");
    this.state.set({ ...changes, isLayoutChosen, subject });
    return true;
  }

  /** Record one round of the tool's motion. */
  async record() {
    if (this.state.get("isRecording")) return;
    const wasMoving = this.state.get("motion");
    if (!wasMoving || wasMoving === "cover") this.play();
    if (wasMoving === "cover") this.play();
    const { motion } = this.state.values;
    if (!motion) return;
    try {
      this.state.set({ isRecording: true, notice: "Recording ..." });
      const { blob, ending } = await this.stage.film(LOOP_SECONDS[motion] * 1000);
      download(blob, this.fileName(ending));
      this.state.set({ notice: "Clip saved." });
    } catch (error) {
      this.state.set({ notice: error.message });
    } finally {
      this.state.set({ isRecording: false });
      if (!wasMoving) this.motion.stop();
    }
  }

  fileName(ending) {
    return `${this.scene.meta.scene.replace(/[^\w.-]+/g, "_")}.${ending}`;
  }

  save() {
    this.stage.draw(); // a drawing can be read only until the next frame
    find("picture").toBlob((blob) => download(blob, this.fileName("png")));
  }

  // Cloud ----------------------------------------------------------------------------------------

  showCloud() {
    this.stage.makeCloud();
    this.motion.swing = Math.min(this.stage.cloud.limit, 0.2);
    if (!prefersStillness.matches && this.state.get("orbit") === REST) this.motion.start("sway");
  }

  turn(right, up) {
    const { orbit, cloud } = this.state.values;
    this.motion.cancel("orbit");
    this.state.set({ orbit: this.stage.cloud.turned(orbit, right, up, cloud.isFree) });
  }

  /** On release, turn back a cloud that was turned too far. */
  release() {
    const { orbit: from, cloud } = this.state.values;
    const to = this.stage.cloud.limited(from, cloud.isFree);
    if (to.right === from.right && to.up === from.up) return;
    this.motion.animate("orbit", 420, (part) => {
      const along = (name) => from[name] + (to[name] - from[name]) * part;
      this.state.set({ orbit: { ...from, right: along("right"), up: along("up") } });
    });
  }

  slide(x, y) {
    this.stopMotion();
    const { orbit } = this.state.values;
    const reach = 2 * this.stage.cloud.halfHeight(this.stage.size()) * orbit.distance;
    this.state.set({
      orbit: { ...orbit, x: clamp(orbit.x + x * reach, -3, 3), y: clamp(orbit.y + y * reach, -3, 3) },
    });
  }

  approach(factor) {
    this.stopMotion();
    const { orbit } = this.state.values;
    this.state.set({ orbit: { ...orbit, distance: clamp(orbit.distance / factor, 0.1, 6) } });
  }

  resetCloud() {
    this.stopMotion();
    this.motion.cancel("orbit");
    this.state.set({ orbit: REST });
  }

  pickPoint(point) {
    const pixel = this.stage.cloud.pick(point, this.state.values, this.stage.size());
    if (pixel) this.state.set({ pixel, isPointChosen: true });
  }

  // Keys and settings ----------------------------------------------------------------------------

  arrow(x, y) {
    if (this.state.get("isCover")) this.chooseTool("move");
    const { tool, pixel, camera, focus } = this.state.values;
    if (tool === "cloud") {
      this.stopMotion();
      this.turn(x * 0.05, -y * 0.05);
      return this.state.set({ orbit: this.stage.cloud.limited(this.state.get("orbit"), this.state.get("cloud").isFree) });
    }
    if (tool === "move" || document.activeElement === find("pad")) {
      this.showPhoto("view");
      const whole = { x: Math.round(camera.x + Math.sign(x)), y: Math.round(camera.y + Math.sign(y)) };
      return this.moveCamera(whole, true);
    }
    if (tool === "focus") {
      const [low, high] = this.scene.extent.full;
      return this.state.set({ focus: clamp(focus + ((x - y) * (high - low)) / 100, low, high) });
    }
    const { width, height } = this.scene;
    this.state.set({ pixel: { x: clamp(pixel.x + x, 0, width - 1), y: clamp(pixel.y + y, 0, height - 1) } });
  }

  zoom(zoom) {
    this.state.set({ zoom });
  }

  /** Zoom about the middle of the stage; 0 shows the whole picture. */
  zoomBy(factor) {
    this.leaveCover();
    if (this.state.get("tool") === "cloud") return factor ? this.approach(factor) : this.resetCloud();
    if (!factor) return this.zoom({ factor: 1, x: 0, y: 0 });
    const { panes, picture } = this.stage;
    const { rect } = panes[0];
    const middle = { x: (rect.left + rect.right) / 2, y: (rect.top + rect.bottom) / 2 };
    this.zoom(zoomAt(this.state.values, panes, middle, factor, picture));
  }

  split(part) {
    this.state.set({ split: clamp(part, 0, 1) });
  }

  nextMap(step) {
    const count = this.scene.meta.colours.length - 1;
    this.state.set({ map: (this.state.get("map") + step + count) % count });
  }

  resetRange() {
    this.state.set({ range: this.scene.extent.usual });
  }

  theme(isDark = !this.state.get("isDark")) {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    this.state.set({ isDark });
  }

  help() {
    find("keys").showModal();
  }
}
