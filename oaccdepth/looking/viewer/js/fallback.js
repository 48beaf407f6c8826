// Without WebGL 2: say so, and show still pictures, which do not need it.
import { cssRamp, describeRange } from "./colour.js";
import { find, make } from "./elements.js";
import { NOT_KNOWN } from "./scene.js";

export function showWithoutGraphics(scene, reason) {
  document.documentElement.dataset.state = "no-graphics";
  document.documentElement.removeAttribute("data-cover");
  find("trouble-reason").textContent = reason;
  find("trouble").hidden = false;
  const { width, height, centre, disparity, confidence, extent, meta } = scene;
  const pictures = find("trouble-pictures");
  const add = (name, paint, map, ends) => {
    const canvas = make("canvas", { width, height });
    paint(canvas.getContext("2d"));
    const figure = make("figure", {}, canvas, make("figcaption", {}, name));
    if (ends) {
      const bar = make("i");
      bar.style.setProperty("background", cssRamp(scene, map));
      figure.append(make("p", { className: "note key" }, ends[0], bar, ends[1]));
    }
    pictures.append(figure);
  };
  if (centre) add("View", (context) => context.drawImage(centre, 0, 0));
  const [low, high] = extent.usual;
  const share = (d) => (d > NOT_KNOWN ? (d - low) / (high - low) : null);
  const ends = describeRange(extent.usual).split(" to ");
  add("Disparity", (context) => paintValues(context, scene, disparity, share, 0), 0, ends);
  const map = Math.max(0, meta.colours.indexOf("cividis"));
  const sure = (value) => value / 255;
  add("Confidence", (context) => paintValues(context, scene, confidence, sure, map), map, ["0", "1"]);
}

/** Values as colours; `share` is the position in the colour map, null where unknown. */
function paintValues(context, { width, height, colours }, values, share, map) {
  const picture = context.createImageData(width, height);
  values.forEach((value, i) => {
    const part = share(value);
    const at = (map * 256 + Math.round(Math.min(Math.max(part ?? 0, 0), 1) * 255)) * 3;
    const colour = part === null ? [128, 128, 128] : colours.subarray(at, at + 3);
    picture.data.set([...colour, 255], 4 * i);
  });
  context.putImageData(picture, 0, 0);
}
