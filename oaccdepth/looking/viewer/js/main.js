// Starts the page: reads the scene, connects the parts, loads the views.
import { Actions } from "./actions.js";
import { Controls } from "./controls.js";
import { Drawing } from "./drawing.js";
import { find, prefersDark } from "./elements.js";
import { showWithoutGraphics } from "./fallback.js";
import { GraphicsError } from "./gl.js";
import { Inspector } from "./inspector.js";
import { keyTable, listenToKeys, writeKeys } from "./keys.js";
import { findLayers, findPairs } from "./layers.js";
import { Link } from "./link.js";
import { Motion } from "./motion.js";
import { OrbitPointer } from "./orbit.js";
import { StagePointer } from "./pointer.js";
import { writeAbout } from "./readout.js";
import { Renderer } from "./renderer.js";
import { loadEvidence, loadPictures, loadScene, maskPlaces } from "./scene.js";
import { snapEdges } from "./space.js";
import { Stage } from "./stage.js";
import { State, firstState } from "./state.js";

/** All parts of the page, connected. */
function build(scene) {
  const layers = findLayers(scene);
  const pairs = findPairs(layers);
  const state = new State(firstState(scene, pairs));
  const renderer = new Renderer(find("picture"), scene);
  const stage = new Stage(scene, state, layers, renderer);
  const motion = new Motion(scene, state);
  const address = new Link(scene, layers, state.values);
  const actions = new Actions(scene, state, layers, stage, motion, address);
  const inspector = new Inspector(scene, renderer);
  inspector.onCell = (grid, place) => actions.chooseCell(grid, place);
  const controls = new Controls(scene, state, layers, actions);
  const drawing = new Drawing(scene, state, stage, controls, inspector);
  new StagePointer(find("viewport"), find("handle"), stage, actions);
  new OrbitPointer(find("viewport"), state, actions);
  const table = keyTable(actions, pairs);
  writeKeys(table, find("key-list"));
  listenToKeys(table, actions);
  window.addEventListener("hashchange", () => actions.follow(location.hash));
  prefersDark.addEventListener("change", () => actions.theme(prefersDark.matches));
  find("picture").addEventListener("webglcontextlost", (event) => {
    event.preventDefault();
    showWithoutGraphics(scene, "The graphics card was reset. Reload this page.");
  });
  return { actions, drawing, renderer, stage };
}

/** Load the rest of the data. */
async function complete(scene, { renderer, drawing, stage }) {
  renderer.makeRoom();
  const places = scene.meta.views?.places ?? [];
  await loadPictures(scene, "view", places, (...view) => renderer.addView(...view));
  await loadEvidence(scene);
  await loadPictures(scene, "mask", maskPlaces(scene), (...mask) => renderer.addMask(...mask));
  drawing.isComplete = true;
  if (stage.cloud) stage.makeCloud(true); // now with the surfaces that only other views see
}

/** Show the first picture: the one in the link, or the cover. */
async function open(scene) {
  const { dataset } = document.documentElement;
  const page = build(scene);
  const hasLink = page.actions.address.read(location.hash, page.actions.state.values) !== null;
  const hasCover = Boolean(scene.meta.views) && !hasLink;
  page.stage.paintBackdrop();
  if (hasCover) page.actions.state.set({ isCover: true, layout: "single", tool: "move" });
  page.drawing.refreshAll();
  page.drawing.draw();
  dataset.state = "ready";
  dataset.readyMs = Math.round(performance.now());
  await complete(scene, page);
  if (page.actions.state.get("isCover")) page.actions.showCover();
  else if (hasLink) page.actions.follow(location.hash); // 3D needs the views
  page.drawing.refreshAll();
  page.drawing.draw();
  dataset.state = "complete";
  dataset.completeMs = Math.round(performance.now());
}

async function start() {
  document.documentElement.dataset.theme = prefersDark.matches ? "dark" : "light";
  const meta = JSON.parse(find("meta").textContent);
  writeAbout(meta);
  const scene = await loadScene(meta);
  scene.solid = snapEdges(scene);
  try {
    await open(scene);
  } catch (error) {
    if (!(error instanceof GraphicsError)) throw error;
    showWithoutGraphics(scene, error.message);
  }
}

start();
