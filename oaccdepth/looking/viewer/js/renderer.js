// Draws the stage: layers of the scene into panes of one canvas; and samples views for the inspector.
import { GraphicsError, Program, Target, Texture } from "./gl.js";
import { CLOUD_FRAGMENT, CLOUD_VERTEX, COVER, PROBE, REFOCUS, layerShader } from "./shaders.js";

// From this many canvas pixels per picture pixel on, pixels are drawn as squares: values, photos.
const SHARP_ABOVE = { values: 3, photos: 9 };
export const EPI_LENGTH = 81; // pixels of an EPI shown

export class Renderer {
  constructor(canvas, scene) {
    const gl = canvas.getContext("webgl2", { antialias: false });
    if (!gl) throw new GraphicsError("This browser does not support WebGL 2.");
    Object.assign(this, { canvas, gl, scene });
    const largest = gl.getParameter(gl.MAX_TEXTURE_SIZE);
    if (Math.max(scene.width, scene.height) > largest)
      throw new GraphicsError(`The picture is larger than this graphics card's ${largest} px.`);
    this.programs = new Map(); // made when first used
    this.makeTextures();
    this.views = this.masks = new Texture(gl, { width: 1, height: 1, layers: 1 }); // placeholder
    this.focused = null; // what the refocused picture shows
  }

  makeTextures() {
    const { gl, scene } = this;
    const { width, height } = scene;
    const { rows, columns } = scene.grid;
    const floats = (values) =>
      values && new Texture(gl, { width, height, format: "R32F" }).fill(values);
    this.disparity = floats(scene.disparity);
    this.solid = floats(scene.solid);
    this.truth = floats(scene.truth);
    this.passes = scene.passes.map((values) =>
      values === scene.disparity ? this.disparity : floats(values),
    );
    this.confidence = new Texture(gl, { width, height, format: "R8" }).fill(scene.confidence);
    const maps = scene.colours.length / 768;
    this.colours = new Texture(gl, { width: 256, height: maps, format: "RGB8" });
    this.colours.fill(scene.colours);
    this.centre = new Texture(gl, { width, height, smooth: true });
    if (scene.centre) this.centre.fill(scene.centre);
    this.present = new Texture(gl, { width: columns, height: rows, format: "R8" });
    this.isPresent = new Uint8Array(rows * columns);
    this.present.fill(this.isPresent);
    this.refocused = new Target(gl, width, height);
    this.probed = new Target(gl, Math.max(EPI_LENGTH, columns), 3 * rows + columns);
  }

  /** Allocate views and masks; they are large, so only after the first picture was drawn. */
  makeRoom() {
    const { gl, scene } = this;
    const { meta, grid } = scene;
    const layers = grid.rows * grid.columns;
    if (layers > gl.getParameter(gl.MAX_ARRAY_TEXTURE_LAYERS))
      throw new GraphicsError(`${layers} views are more than this graphics card takes.`);
    const stack = ([width, height], more) => new Texture(gl, { width, height, layers, ...more });
    if (meta.views) this.views = stack(meta.views.size, { smooth: true });
    if (meta.masks) this.masks = stack(meta.masks.size, { format: "R8" });
  }

  addView(bitmap, u, v) {
    const layer = u * this.scene.grid.columns + v;
    this.views.fill(bitmap, layer);
    this.isPresent[layer] = 255;
    this.present.fill(this.isPresent);
    this.focused = null;
  }

  /** One view as it was loaded: { pixels, width, height }, RGBA; null if it is not loaded yet. */
  readView(u, v) {
    const layer = u * this.scene.grid.columns + v;
    const { width, height } = this.views;
    return this.isPresent[layer] ? { pixels: this.views.read(layer), width, height } : null;
  }

  addMask(bitmap, u, v) {
    this.masks.fill(bitmap, u * this.scene.grid.columns + v);
  }

  /** Uniforms that every program needs. */
  common() {
    const { rows, columns } = this.scene.grid;
    return {
      uViews: this.views,
      uPresent: this.present,
      uCentre: this.centre,
      uSolid: this.solid,
      uExtent: this.scene.extent.full,
      uGrid: [columns, rows],
      uSize: [this.scene.width, this.scene.height],
    };
  }

  /** Bring the refocused picture up to date. */
  focusOn({ focus, aperture, isSeeThrough }) {
    const wanted = `${focus} ${aperture} ${isSeeThrough}`;
    if (this.focused === wanted) return;
    this.focused = wanted;
    const values = {
      ...this.common(),
      uFocus: focus,
      uAperture: aperture,
      uSeeThrough: isSeeThrough,
    };
    const program = this.program("refocus", () => REFOCUS);
    this.refocused.draw(program, values, this.scene.width, this.scene.height);
  }

  /**
   * Draw the panes. Each has a layer, the rectangle of the canvas that it may fill [css px], and
   * the picture's position: `scale` canvas px per picture px, `x`, `y` of the picture's corner.
   */
  draw(panes, look) {
    const { gl, canvas } = this;
    const ratio = canvas.width / Math.max(1, canvas.clientWidth);
    if (panes.some(({ layer }) => layer.kind === "REFOCUSED")) this.focusOn(look);
    this.clear();
    gl.enable(gl.SCISSOR_TEST);
    for (const pane of panes) {
      const [left, right] = [pane.clip.left, pane.clip.right].map((x) => Math.round(x * ratio));
      const [top, bottom] = [pane.clip.top, pane.clip.bottom].map((y) => Math.round(y * ratio));
      gl.scissor(left, canvas.height - bottom, Math.max(0, right - left), Math.max(0, bottom - top));
      const { kind, scale: isValue } = pane.layer;
      const isSmooth = pane.scale * ratio < SHARP_ABOVE[isValue ? "values" : "photos"];
      const program = this.program(`${kind} ${isSmooth}`, () => layerShader(kind, isSmooth));
      program.draw(this.layerValues(pane, look, ratio));
    }
  }

  clear() {
    const { gl, canvas } = this;
    gl.disable(gl.SCISSOR_TEST);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
  }

  /** Draw the points of the cloud; `values` hold the camera. */
  drawPoints(points, values, look) {
    this.clear();
    const colours = { uColours: this.colours, uMap: look.map, uRange: look.range };
    const program = this.program("cloud", () => CLOUD_FRAGMENT, CLOUD_VERTEX);
    program.draw({ ...values, ...colours }, points);
  }

  program(name, source, vertex = COVER) {
    if (!this.programs.has(name)) this.programs.set(name, new Program(this.gl, vertex, source()));
    return this.programs.get(name);
  }

  layerValues(pane, look, ratio) {
    const { layer, scale } = pane;
    const step = 1 / (scale * ratio);
    const isMoved = look.camera.x !== 0 || look.camera.y !== 0; // then no rims between surfaces
    return {
      ...this.common(),
      uRefocused: this.refocused.texture,
      uDisparity: this.disparity,
      uValue: isMoved && layer.value === "disparity" ? this.solid : this.named(layer.value),
      uOther: this.named(layer.other),
      uMasks: this.masks,
      uColours: this.colours,
      uMap: layer.map(look),
      uRange: layer.range(look),
      uCamera: [look.camera.x, look.camera.y],
      uMaskView: [look.maskView.x, look.maskView.y],
      uOrigin: [-pane.x / scale, this.canvas.height * step - pane.y / scale],
      uStep: step,
      uShades: look.isDark ? [0.16, 0.22] : [0.8, 0.88],
    };
  }

  named(name) {
    if (name?.startsWith("pass-")) return this.passes[Number(name.slice(5)) - 1];
    return this[name] ?? this.disparity;
  }

  /**
   * Samples of the views at a pixel: its angular patch (columns x rows), its row EPI (81 x columns)
   * and its column EPI (81 x rows), RGBA, alpha 0 where there is no sample; and stored masks, in R.
   */
  probe(x, y, slope) {
    const { rows, columns } = this.scene.grid;
    const half = EPI_LENGTH >> 1;
    const common = { ...this.common(), uPixel: [x + 0.5, y + 0.5], uSlope: slope, uMasks: this.masks };
    const parts = {
      patch: { what: 0, start: 0, width: columns, height: rows },
      row: { what: 1, start: x - half, width: EPI_LENGTH, height: columns },
      column: { what: 2, start: y - half, width: EPI_LENGTH, height: rows },
      masks: { what: 3, start: 0, width: columns, height: rows },
    };
    let base = 0;
    for (const part of Object.values(parts)) {
      const values = { ...common, uWhat: part.what, uStart: part.start, uBase: base };
      this.probed.draw(this.program("probe", () => PROBE), values, part.width, part.height, base);
      part.base = base;
      base += part.height;
    }
    const { pixels, width } = this.probed.read(); // once: every reading waits for the graphics card
    for (const part of Object.values(parts)) part.pixels = cutOut(pixels, width, part);
    return { ...parts, masks: this.scene.meta.masks ? parts.masks : null };
  }
}

/** A part of a picture, RGBA. */
function cutOut(pixels, stride, { base, width, height }) {
  const part = new Uint8ClampedArray(width * height * 4);
  for (let y = 0; y < height; y++) {
    const start = (base + y) * stride * 4;
    part.set(pixels.subarray(start, start + width * 4), y * width * 4);
  }
  return part;
}
