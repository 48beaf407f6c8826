// The keyboard. The help page behind "?" is made from the same table.
import { definitions, make } from "./elements.js";

/** [keys as shown, description, keys, function]; a row without a function is only shown. */
export function keyTable(actions, pairs) {
  const layout = (name) => () => actions.chooseLayout(name);
  const tool = (name) => () => actions.chooseTool(name);
  return [
    ["W", "Wipe between two pictures", ["w"], layout("wipe")],
    ["S", "Side by side", ["s"], layout("pair")],
    ["A", "One picture alone", ["a"], layout("single")],
    ["X", "Swap the two pictures", ["x"], () => actions.swap()],
    ...pairs.map(([name, left, right], i) => [
      String(i + 1),
      name,
      [String(i + 1)],
      () => actions.compare(left, right),
    ]),
    ["I", "Inspect pixels", ["i", "Escape"], tool("inspect")],
    ["M", "Move through the views", ["m"], tool("move")],
    ["F", "Click to focus", ["f"], tool("focus")],
    ["D", "3D", ["d"], tool("cloud")],
    ["V", "See through everything in front of the focus", ["v"], () => actions.seeThrough()],
    ["← → ↑ ↓", "Move the pixel, the camera, the focus or the cloud", [], null],
    ["Shift and arrow", "The same in larger steps", [], null],
    ["Space", "Play or stop the motion", [" "], () => actions.play()],
    ["C", "Next colour map", ["c", "C"], (event) => actions.nextMap(event.shiftKey ? -1 : 1)],
    ["R", "Reset the colour range", ["r"], () => actions.resetRange()],
    ["+ − 0", "Zoom in, zoom out, reset", [], null],
    ["T", "Light or dark", ["t"], () => actions.theme()],
    ["P", "Save the picture as PNG", ["p"], () => actions.save()],
    ["K", "Save a clip of the motion", ["k"], () => actions.record()],
    ["L", "Copy a link to what is shown", ["l"], () => actions.link()],
    ["?", "This list", ["?"], () => actions.help()],
  ];
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function listenToKeys(table, actions) {
  const calls = new Map(table.flatMap(([, , keys, call]) => keys.map((key) => [key, call])));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.target.matches("input, select, textarea")) return;
    if (event.key === " " && event.target.matches("button, summary")) return;
    const arrow = ARROWS[event.key];
    if (arrow) actions.arrow(...arrow.map((step) => step * (event.shiftKey ? 5 : 1)));
    else if (event.key === "+" || event.key === "=") actions.zoomBy(1.5);
    else if (event.key === "-") actions.zoomBy(1 / 1.5);
    else if (event.key === "0") actions.zoomBy(0);
    else if (calls.has(event.key)) calls.get(event.key)(event);
    else return;
    event.preventDefault();
  });
}

/** Fill the help page. */
export function writeKeys(table, list) {
  const shown = (key) => (key === "and" ? make("span", {}, "+") : make("kbd", {}, key));
  list.replaceChildren(
    ...table.flatMap(([keys, what]) => {
      const [term, detail] = definitions([["", what]]);
      for (const key of keys.split(" ")) term.append(shown(key), " ");
      return [term, detail];
    }),
  );
}
