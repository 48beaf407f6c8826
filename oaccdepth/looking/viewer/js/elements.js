// Elements of the page: one way to find them, one way to make them.

export const find = (id) => document.getElementById(id);

/** A new element. Strings among the children become plain text, never HTML. */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Terms and details of a definition list, from [name, value] pairs. */
export const definitions = (rows) =>
  rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);

/** Offer bytes as a download. */
export function download(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Clear a canvas and give it the screen's resolution, with css px as its unit. */
export function sized(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const [fineWidth, fineHeight] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== fineWidth || canvas.height !== fineHeight)
    Object.assign(canvas, { width: fineWidth, height: fineHeight });
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** A colour variable of the style sheet. */
export const themeColour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
export const hasTouch = window.matchMedia("(hover: none)");
export const prefersStillness = window.matchMedia("(prefers-reduced-motion: reduce)");
export const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
