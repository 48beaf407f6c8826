// Without WebGL 2: say so, and still show the view and the disparity.
import { NOT_KNOWN } from "./scene.js";

export function showWithoutGraphics(scene, reason) {
  document.documentElement.dataset.state = "no-graphics";
  document.getElementById("trouble-reason").textContent = reason;
  document.getElementById("trouble").hidden = false;
  const { width, height, centre, disparity, colours, extent } = scene;
  const pictures = document.getElementById("trouble-pictures");
  const add = (name, paint) => {
    const [figure, canvas] = [document.createElement("figure"), document.createElement("canvas")];
    const caption = document.createElement("figcaption");
    Object.assign(canvas, { width, height });
    caption.textContent = name;
    paint(canvas.getContext("2d"));
    figure.append(canvas, caption);
    pictures.append(figure);
  };
  if (centre) add("View", (context) => context.drawImage(centre, 0, 0));
  add("Disparity", (context) => {
    const picture = context.createImageData(width, height);
    const [low, high] = extent.usual;
    disparity.forEach((d, i) => {
      const part = Math.min(Math.max((d - low) / (high - low), 0), 1);
      const at = Math.round(part * 255) * 3;
      const colour = d > NOT_KNOWN ? colours.subarray(at, at + 3) : [128, 128, 128];
      picture.data.set([...colour, 255], 4 * i);
    });
    context.putImageData(picture, 0, 0);
  });
}
