// The keyboard. The same table makes the page of help behind "?".

/** [keys as shown, what they do, the keys, what to call]; a row without a call is only shown. */
export function keyTable(actions, pairs) {
  const layout = (name) => () => actions.layout(name);
  const tool = (name) => () => actions.tool(name);
  return [
    ["W", "Wipe between two pictures", ["w"], layout("wipe")],
    ["S", "Side by side", ["s"], layout("pair")],
    ["A", "One picture alone", ["a"], layout("single")],
    ["D", "Point cloud in 3D", ["d"], layout("cloud")],
    ["X", "Exchange the two pictures", ["x"], actions.exchange],
    ...pairs.map(([name, left, right], i) => [
      String(i + 1),
      name,
      [String(i + 1)],
      () => actions.compare(left, right),
    ]),
    ["I", "Inspect pixels", ["i"], tool("inspect")],
    ["L", "Look around: move through the views", ["l"], tool("look")],
    ["F", "Focus: click what shall be sharp", ["f"], tool("focus")],
    ["← → ↑ ↓", "Move the pixel, the camera, the focus or the cloud", [], null],
    ["Shift and arrow", "The same in larger steps", [], null],
    ["Space", "Travel through the views, or stop", [" "], actions.play],
    ["C", "Next colour map", ["c", "C"], (event) => actions.nextMap(event.shiftKey ? -1 : 1)],
    ["R", "Usual range of colours", ["r"], actions.resetRange],
    ["+ − 0", "Zoom in, out, back", [], null],
    ["T", "Light or dark", ["t"], actions.theme],
    ["P", "Save the picture as PNG", ["p"], actions.save],
    ["?", "This list", ["?"], actions.help],
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
    else if (event.key === "+" || event.key === "=") actions.zoom(1.5);
    else if (event.key === "-") actions.zoom(1 / 1.5);
    else if (event.key === "0") actions.zoom(0);
    else if (calls.has(event.key)) calls.get(event.key)(event);
    else return;
    event.preventDefault();
  });
}

/** Fill the page of help. */
export function writeKeys(table, list) {
  list.replaceChildren(
    ...table.flatMap(([keys, what]) => {
      const [term, detail] = [document.createElement("dt"), document.createElement("dd")];
      for (const key of keys.split(" ")) {
        const element = document.createElement(key === "and" ? "span" : "kbd");
        element.textContent = key === "and" ? "+" : key;
        term.append(element, " ");
      }
      detail.textContent = what;
      return [term, detail];
    }),
  );
}
