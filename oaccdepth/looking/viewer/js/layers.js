// What can be shown in a pane: the layers that this scene has.

const MASK_MAP = "gray";
const CONFIDENCE_MAP = "cividis";

/** All layers, in the order of the menus: { id, name, kind, value, other, map(look), range(look) }. */
export function findLayers(scene) {
  const { meta } = scene;
  const mapIndex = (name) => Math.max(0, meta.colours.indexOf(name));
  const chosen = { map: (look) => look.map, range: (look) => look.range };
  const difference = {
    kind: "DIFFERENCE",
    map: () => meta.colours.length - 1,
    range: (look) => [-look.errorRange, look.errorRange],
  };
  const shown = (name) => ({ map: () => mapIndex(name), range: () => [0, 1] });
  const layers = [];
  const add = (id, name, rest) => layers.push({ id, name, ...chosen, ...rest });
  if (scene.centre) add("view", "View", { kind: "VIEW" });
  if (meta.views) add("refocused", "Refocused", { kind: "REFOCUSED" });
  add("disparity", "Disparity", { kind: "VALUE", value: "disparity" });
  add("confidence", "Confidence", { kind: "VALUE", value: "confidence", ...shown(CONFIDENCE_MAP) });
  if (meta.views || meta.masks) {
    const kind = meta.masks ? "MASK" : "COMPUTED_MASK";
    add("mask", "Mask of a view", { kind, ...shown(MASK_MAP) });
  }
  if (meta.passes.length > 1) {
    meta.passes.forEach((_, i) => {
      add(`pass-${i + 1}`, `Pass ${i + 1}`, { kind: "VALUE", value: `pass-${i + 1}` });
    });
    const last = meta.passes.length;
    const name = `Pass ${last} − pass 1`;
    add("change", name, { ...difference, value: `pass-${last}`, other: "pass-1" });
  }
  if (scene.truth) {
    add("truth", "Ground truth", { kind: "VALUE", value: "truth" });
    add("error", "Error", { ...difference, value: "disparity", other: "truth" });
  }
  return layers;
}

/** Pairs worth comparing, each behind a digit key. */
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
