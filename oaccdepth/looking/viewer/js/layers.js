// The layers of this scene, which can be shown in a pane.

const MASK_MAP = "gray";
const CONFIDENCE_MAP = "cividis";

/**
 * All layers, in the order of the menus: { id, name, kind, value, other, map(look), range(look),
 * scale }. `scale`: the unit and end labels of the legend; without it, there is no legend.
 */
export function findLayers(scene) {
  const { meta } = scene;
  const mapIndex = (name) => Math.max(0, meta.colours.indexOf(name));
  const plain = { map: (look) => look.map, range: (look) => look.range };
  const mapped = { kind: "VALUE", scale: { unit: "px", digits: 2, ends: ["", ""] } };
  const difference = {
    kind: "DIFFERENCE",
    map: () => meta.colours.length - 1,
    range: (look) => [-look.errorRange, look.errorRange],
    scale: { unit: "px", digits: 2, ends: ["farther", "nearer"] },
  };
  const share = (name, low, high) => ({
    map: () => mapIndex(name),
    range: () => [0, 1],
    scale: { unit: "", digits: 0, ends: [low, high] },
  });
  const layers = [];
  const add = (id, name, rest) => layers.push({ id, name, ...plain, ...rest });
  if (scene.centre) add("view", "View", { kind: "VIEW" });
  if (meta.views) add("refocused", "Refocused", { kind: "REFOCUSED" });
  add("disparity", "Disparity", { ...mapped, value: "disparity" });
  const sure = share(CONFIDENCE_MAP, "unsure", "sure");
  add("confidence", "Confidence", { kind: "VALUE", value: "confidence", ...sure });
  if (meta.views || meta.masks) {
    const kind = meta.masks ? "MASK" : "COMPUTED_MASK";
    add("mask", "Mask of a view", { kind, ...share(MASK_MAP, "hidden", "visible") });
  }
  if (meta.passes.length > 1) {
    meta.passes.forEach((_, i) => {
      add(`pass-${i + 1}`, `Pass ${i + 1}`, { ...mapped, value: `pass-${i + 1}` });
    });
    const last = meta.passes.length;
    const name = `Pass ${last} − pass 1`;
    add("change", name, { ...difference, value: `pass-${last}`, other: "pass-1" });
  }
  if (scene.truth) {
    add("truth", "Ground truth", { ...mapped, value: "truth" });
    add("error", "Error", { ...difference, value: "disparity", other: "truth" });
  }
  return layers;
}

/** Pairs worth comparing, each with a digit key. */
export function findPairs(layers) {
  const has = (id) => layers.some((layer) => layer.id === id);
  const last = layers.filter(({ id }) => id.startsWith("pass-")).at(-1)?.id;
  return [
    ["View and disparity", "view", "disparity"],
    ["Disparity and confidence", "disparity", "confidence"],
    ["First and last pass", "pass-1", last],
    ["Disparity and ground truth", "disparity", "truth"],
    ["Disparity and error", "disparity", "error"],
    ["View and mask", "view", "mask"],
  ].filter(([, left, right]) => has(left) && has(right));
}
