// The line below the stage, the page header and the "About" card; all as plain text.
import { cssColour, describeRange } from "./colour.js";
import { definitions, find, make } from "./elements.js";
import { signed } from "./scene.js";
import { formatDepth } from "./space.js";

/** The read-out below the stage: the numbers of a pixel, or a hint. */
export function writeReadout(scene, facts, look) {
  find("hint").hidden = Boolean(facts);
  find("numbers").hidden = !facts;
  if (!facts) return;
  const swatch = make("i");
  const part = (facts.disparity - look.range[0]) / (look.range[1] - look.range[0]);
  if (facts.disparity !== null)
    swatch.style.setProperty("background", cssColour(scene, look.map, part));
  const parts = [
    ["x", String(facts.x), "3ch"],
    ["y", String(facts.y), "3ch"],
    ["disparity", facts.disparity === null ? "unknown" : `${signed(facts.disparity)} px`, "8ch"],
    ["confidence", facts.confidence.toFixed(2), "4ch"],
  ];
  if (scene.meta.camera) parts.push(["depth", formatDepth(facts.depth), "7ch"]);
  if (facts.error !== null) parts.push(["error", `${signed(facts.error)} px`, "8ch"]);
  const items = parts.map(([name, value, room]) => {
    const number = make("b", {}, value);
    number.dataset.name = name;
    number.style.setProperty("--room", room);
    return make("span", {}, `${name} `, number);
  });
  find("numbers").replaceChildren(swatch, ...items);
}

/** The page header and the "About" card; all as plain text. */
export function writeAbout(meta) {
  const [width, height] = meta.size;
  const grid = meta.grid ? `${meta.grid[0]} × ${meta.grid[1]} views` : null;
  const { seconds } = meta.made;
  const total = seconds.total ?? Object.values(seconds).reduce((sum, value) => sum + value, 0);
  const time = total > 0 ? `${total.toFixed(total < 10 ? 1 : 0)} s` : null;
  const weights = meta.made.weights || null;
  find("scene").textContent = meta.scene;
  const size = `${width} × ${height} px`;
  find("facts").textContent = [grid, size, weights && `weights ${weights}`].filter(Boolean).join(" · ");
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
  find("about-facts").replaceChildren(...definitions(rows));
  const notes = [...meta.notes, ...meta.remarks];
  find("about-notes").replaceChildren(...notes.map((text) => make("li", {}, text)));
}
