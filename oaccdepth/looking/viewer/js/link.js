// The state in the address: what a link to this page stores.
import { LAYOUTS, TOOLS } from "./state.js";

const ALWAYS = new Set(["tool", "layout", "left", "right"]); // choosing a tool changes the others
const round = (value) => String(Number(value.toFixed(4)));
const numbers = (value, names) => names.map((name) => round(value[name])).join(",");

/** Name in the link -> [write(values), read(text, values)]; `read` gives null if invalid. */
function makeFields(scene, layers) {
  const oneOf = (name, allowed) => [
    (values) => values[name],
    (text) => (allowed.includes(text) ? { [name]: text } : null),
  ];
  const number = (name, low, high) => [
    (values) => round(values[name]),
    (text) => within([Number(text)], [[low, high]]) && { [name]: Number(text) },
  ];
  const point = (name, names, limits) => [
    (values) => numbers(values[name], names),
    (text, values) => {
      const parts = text.split(",").map(Number);
      if (!within(parts, limits)) return null;
      return { [name]: { ...values[name], ...Object.fromEntries(names.map((n, i) => [n, parts[i]])) } };
    },
  ];
  const flag = (name) => [(values) => String(values[name]), (text) => ({ [name]: text === "true" })];
  const { rows, columns, middle } = scene.grid;
  const grid = [[-middle.v, columns - 1 - middle.v], [-middle.u, rows - 1 - middle.u]];
  const picture = [[0, scene.width - 1], [0, scene.height - 1]];
  const ids = layers.map(({ id }) => id);
  const wide = [-1e6, 1e6];
  const pair = [
    (values) => values.range.map(round).join(","),
    (text) => {
      const range = text.split(",").map(Number);
      return within(range, [wide, wide]) && range[0] < range[1] ? { range } : null;
    },
  ];
  return {
    tool: oneOf("tool", TOOLS),
    layout: oneOf("layout", LAYOUTS),
    left: oneOf("left", ids),
    right: oneOf("right", ids),
    split: number("split", 0, 1),
    camera: point("camera", ["x", "y"], grid),
    mask: point("maskView", ["x", "y"], grid),
    focus: number("focus", ...wide),
    aperture: number("aperture", 0, 1e3),
    through: flag("isSeeThrough"),
    map: number("map", 0, scene.meta.colours.length - 2),
    range: pair,
    error: number("errorRange", 1e-3, 1e3),
    pixel: point("pixel", ["x", "y"], picture),
    zoom: point("zoom", ["factor", "x", "y"], [[1, 1e4], [-1, 1e6], [-1, 1e6]]),
    orbit: point("orbit", ["right", "up", "distance", "x", "y"], [wide, [-1.5, 1.5], [0.1, 6], [-3, 3], [-3, 3]]),
    cloud: point("cloud", ["size", "confidence", "stretch"], [[0.5, 4], [0, 1], [0.2, 4]]),
  };
}

const within = (values, limits) =>
  values.length === limits.length &&
  values.every((value, i) => Number.isFinite(value) && value >= limits[i][0] && value <= limits[i][1]);

export class Link {
  constructor(scene, layers, first) {
    this.fields = makeFields(scene, layers);
    this.first = this.describe(first);
  }

  describe(values) {
    return Object.fromEntries(Object.entries(this.fields).map(([name, [write]]) => [name, write(values)]));
  }

  /** The hash for a state: tool, pictures and whatever else differs from the initial state. */
  write(values) {
    const now = Object.entries(this.describe(values));
    const told = now.filter(([name, text]) => ALWAYS.has(name) || text !== this.first[name]);
    return `#${new URLSearchParams(told)}`.replaceAll("%2C", ",");
  }

  /** The changes requested by a hash, or null if there are none; invalid parts are ignored. */
  read(hash, values) {
    const asked = [...new URLSearchParams(hash.replace(/^#/, ""))].filter(([name]) => this.fields[name]);
    if (!asked.length) return null;
    const changes = asked.map(([name, text]) => this.fields[name][1](text, values) ?? {});
    return Object.assign({}, ...changes);
  }
}
