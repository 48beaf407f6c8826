// The pixel card: how the views agree at one pixel.
import { definitions, find, sized, themeColour } from "./elements.js";
import { EPI_LENGTH } from "./renderer.js";
import { evidenceAt, signed, valueAt } from "./scene.js";
import { depthOf, formatDepth } from "./space.js";

/** All that is known at a pixel: the numbers of the read-out and of the card. */
export function factsAt(scene, x, y) {
  const disparity = valueAt(scene, scene.disparity, x, y);
  const truth = valueAt(scene, scene.truth, x, y);
  return {
    x,
    y,
    disparity,
    confidence: scene.confidence[y * scene.width + x] / 255,
    depth: depthOf(scene, disparity),
    truth,
    error: disparity === null || truth === null ? null : disparity - truth,
    passes: scene.passes.map((map) => valueAt(scene, map, x, y)),
  };
}

export class Inspector {
  constructor(scene, renderer) {
    Object.assign(this, { scene, renderer });
    find("pixel-views").hidden = !scene.meta.views;
    find("pixel-evidence").hidden = !scene.meta.evidence;
    for (const id of ["patch", "masks"]) {
      find(id).addEventListener("pointermove", (event) => this.nameCell(event));
      find(id).addEventListener("pointerleave", () => (find("cell").textContent = this.hint));
      find(id).addEventListener("click", (event) => this.chooseCell(event));
    }
    this.hint = "Each square is one view. Select one to see all of it.";
    this.onCell = () => {};
  }

  colours() {
    return {
      accent: themeColour("--accent"),
      mark: themeColour("--mark"),
      text: themeColour("--soft"),
      faint: themeColour("--line"),
    };
  }

  /** Show a pixel; its views only when all of them are loaded. */
  show(x, y, isComplete) {
    const facts = factsAt(this.scene, x, y);
    this.writeFacts(facts);
    if (!isComplete) return;
    if (this.scene.meta.views) this.showViews(facts);
    this.drawEvidence(facts);
  }

  writeFacts(facts) {
    find("pixel-place").textContent = `x ${facts.x}, y ${facts.y}`;
    const rows = [
      ["disparity", facts.disparity === null ? "not known" : `${signed(facts.disparity)} px`],
      ["confidence", facts.confidence.toFixed(2)],
    ];
    if (this.scene.meta.camera) rows.push(["depth", formatDepth(facts.depth)]);
    if (facts.error !== null) rows.push(["error", `${signed(facts.error)} px`]);
    if (facts.passes.length > 1) {
      const values = facts.passes.map((value) => (value === null ? "–" : signed(value)));
      rows.push(["passes", values.join(" → ")]);
    }
    find("pixel-facts").replaceChildren(...definitions(rows));
  }

  showViews(facts) {
    const slope = facts.disparity ?? 0;
    const probes = this.renderer.probe(facts.x, facts.y, slope);
    const kept = probes.masks && probes.masks.pixels.filter((_, i) => i % 4 === 0);
    this.masks = kept ? Array.from(kept, (value) => value / 255) : this.computeMasks(probes.patch);
    find("masks-origin").textContent = kept ? "" : "computed here";
    this.drawCells(find("patch"), (k) => {
      const pixels = probes.patch.pixels.subarray(4 * k, 4 * k + 4);
      return pixels[3] ? `rgb(${pixels[0]} ${pixels[1]} ${pixels[2]})` : null;
    });
    this.drawCells(find("masks"), (k) => {
      const shade = Math.round(255 * this.masks[k]);
      return probes.patch.pixels[4 * k + 3] || kept ? `rgb(${shade} ${shade} ${shade})` : null;
    });
    this.drawEpi(find("row-epi"), probes.row, facts, this.scene.grid.middle.v);
    this.drawEpi(find("column-epi"), probes.column, facts, this.scene.grid.middle.u);
    find("cell").textContent = this.hint;
  }

  /** (1 - |difference to the centre pixel|)^2 of the grey values: what the networks use. */
  computeMasks({ pixels }) {
    const { columns, middle } = this.scene.grid;
    const grey = (k) => (pixels[4 * k] + pixels[4 * k + 1] + pixels[4 * k + 2]) / 765;
    const centre = grey(middle.u * columns + middle.v);
    return Array.from({ length: pixels.length / 4 }, (_, k) =>
      pixels[4 * k + 3] ? (1 - Math.abs(grey(k) - centre)) ** 2 : 0,
    );
  }

  /** The grid of views, one square each; hatched where there is no sample. */
  drawCells(canvas, colourOf) {
    const { rows, columns, middle } = this.scene.grid;
    const { context, width } = sized(canvas);
    const cell = width / Math.max(rows, columns);
    for (let u = 0; u < rows; u++)
      for (let v = 0; v < columns; v++) {
        const colour = colourOf(u * columns + v);
        context.beginPath();
        context.roundRect(v * cell + 0.75, u * cell + 0.75, cell - 1.5, cell - 1.5, 2);
        context.fillStyle = colour ?? "rgb(128 128 128 / 25%)";
        context.fill();
        context.strokeStyle = "rgb(128 128 128 / 45%)"; // white cells on a white card
        context.lineWidth = 1;
        context.stroke();
        if (!colour) this.drawCross(context, v * cell, u * cell, cell);
      }
    context.strokeStyle = this.colours().accent;
    context.lineWidth = 2;
    context.beginPath();
    context.roundRect(middle.v * cell, middle.u * cell, cell, cell, 3);
    context.stroke();
  }

  drawCross(context, x, y, cell) {
    context.strokeStyle = "rgb(128 128 128 / 70%)";
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x + cell * 0.3, y + cell * 0.3);
    context.lineTo(x + cell * 0.7, y + cell * 0.7);
    context.moveTo(x + cell * 0.7, y + cell * 0.3);
    context.lineTo(x + cell * 0.3, y + cell * 0.7);
    context.stroke();
  }

  /** The view under the pointer, or null. */
  cellAt(event) {
    const { rows, columns } = this.scene.grid;
    const cell = event.currentTarget.clientWidth / Math.max(rows, columns);
    const [u, v] = [Math.floor(event.offsetY / cell), Math.floor(event.offsetX / cell)];
    return this.masks && u >= 0 && v >= 0 && u < rows && v < columns ? { u, v } : null;
  }

  chooseCell(event) {
    const place = this.cellAt(event);
    const { middle } = this.scene.grid;
    if (!place) return;
    this.onCell(event.currentTarget.id, { x: place.v - middle.v, y: place.u - middle.u });
  }

  nameCell(event) {
    const place = this.cellAt(event);
    if (!place) return;
    const { u, v } = place;
    const { columns } = this.scene.grid;
    const mask = this.masks[u * columns + v].toFixed(2);
    find("cell").textContent = `View in row ${u}, column ${v}: mask ${mask}`;
  }

  /** An EPI, one line per view, with the line that the estimated disparity predicts. */
  drawEpi(canvas, probe, facts, middle) {
    const { context, width, height } = sized(canvas);
    const picture = new OffscreenCanvas(probe.width, probe.height);
    picture.getContext("2d").putImageData(new ImageData(probe.pixels, probe.width, probe.height), 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(picture, 0, 0, width, height);
    const line = height / probe.height;
    const pixel = width / EPI_LENGTH;
    const trace = (slope) => {
      context.beginPath();
      for (const view of [-0.5, probe.height - 0.5]) {
        const x = (EPI_LENGTH / 2 - slope * (view - middle)) * pixel;
        context.lineTo(x, (view + 0.5) * line);
      }
    };
    const stroke = (slope, colour, dash) => {
      context.setLineDash(dash);
      for (const [style, thickness] of [
        ["rgb(0 0 0 / 65%)", 3.5],
        [colour, 1.75],
      ]) {
        context.strokeStyle = style;
        context.lineWidth = thickness;
        trace(slope);
        context.stroke();
      }
    };
    if (facts.truth !== null) stroke(facts.truth, "#fff", [5, 4]);
    if (facts.disparity !== null) stroke(facts.disparity, this.colours().mark, []);
    context.setLineDash([]);
    context.fillStyle = this.colours().mark;
    context.beginPath();
    context.arc(width / 2, (middle + 0.5) * line, 3, 0, 2 * Math.PI);
    context.fill();
  }

  /** Evidence over disparity as an area, the estimate as a line, the ground truth dashed. */
  drawEvidence(facts) {
    const curve = evidenceAt(this.scene, facts.x, facts.y);
    if (!curve) return;
    const { context, width, height } = sized(find("evidence"));
    const { accent, mark, text, faint } = this.colours();
    const { levels, shares, step } = curve;
    const nearest = `x ${facts.x - (facts.x % step)}, y ${facts.y - (facts.y % step)}`;
    find("evidence-place").textContent = step > 1 ? ` at ${nearest}` : "";
    const [first, last] = [levels[0], levels.at(-1)];
    const toX = (level) => 6 + ((level - first) / (last - first || 1)) * (width - 12);
    const base = height - 16;
    const largest = Math.max(...shares, 1e-3);
    const toY = (share) => base - (share / largest) * (base - 6);
    context.beginPath();
    context.moveTo(toX(first), base);
    levels.forEach((level, i) => context.lineTo(toX(level), toY(shares[i])));
    context.lineTo(toX(last), base);
    context.fillStyle = accent;
    context.globalAlpha = 0.22;
    context.fill();
    context.globalAlpha = 1;
    context.fillStyle = accent;
    levels.forEach((level, i) => context.fillRect(toX(level) - 1, toY(shares[i]) - 1, 2, 2));
    context.fillStyle = faint;
    context.fillRect(0, base, width, 1);
    this.drawLevels(context, [first, last].map((level) => [toX(level), level]), height, text);
    const upright = (level, colour, dash) => {
      if (level === null) return;
      context.setLineDash(dash);
      context.strokeStyle = colour;
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(toX(level), 2);
      context.lineTo(toX(level), base);
      context.stroke();
      context.setLineDash([]);
    };
    upright(facts.truth, text, [4, 3]);
    upright(facts.disparity, mark, []);
  }

  drawLevels(context, ends, height, colour) {
    context.fillStyle = colour;
    context.font = "11px ui-monospace, monospace";
    ends.forEach(([x, level], i) => {
      context.textAlign = i ? "right" : "left";
      context.fillText(signed(level, 1), x, height - 3);
    });
  }
}
