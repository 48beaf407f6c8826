// Where the pictures are on the stage: panes, zoom and pan. Arithmetic only.

const GAP = 6; // css px between two panes
const LARGEST_SCALE = 48; // css px per picture px

/** Rectangles of the panes for a layout, side by side or one above the other, whichever is larger. */
function paneRects(layout, width, height, picture) {
  const whole = { left: 0, top: 0, right: width, bottom: height };
  if (layout !== "pair") return [whole];
  const beside = Math.min((width - GAP) / 2 / picture.width, height / picture.height);
  const above = Math.min(width / picture.width, (height - GAP) / 2 / picture.height);
  const [x, y] = [(width - GAP) / 2, (height - GAP) / 2];
  return beside >= above
    ? [{ ...whole, right: x }, { ...whole, left: x + GAP }]
    : [{ ...whole, bottom: y }, { ...whole, top: y + GAP }];
}

/** Scale at which the whole picture fits into a rectangle. */
function fitScale(rect, picture) {
  return Math.min(
    (rect.right - rect.left) / picture.width,
    (rect.bottom - rect.top) / picture.height,
  );
}

/** Keep the picture on the stage: centred where it is smaller, without gaps where it is larger. */
export function limitZoom(zoom, rect, picture) {
  const fit = fitScale(rect, picture);
  const factor = Math.min(Math.max(zoom.factor, 1), Math.max(1, LARGEST_SCALE / fit));
  const limit = (centre, side, room) => {
    const half = room / (2 * fit * factor); // picture px from the middle to the pane's edge
    return half >= side / 2 ? side / 2 : Math.min(Math.max(centre, half), side - half);
  };
  return {
    factor,
    x: limit(zoom.x, picture.width, rect.right - rect.left),
    y: limit(zoom.y, picture.height, rect.bottom - rect.top),
  };
}

/**
 * The panes to draw: { layer, rect, clip, scale, x, y } in css px of the stage. `clip` is the part
 * that the pane may paint: in a wipe, both panes share one rectangle and are clipped at the handle.
 */
export function arrange(state, layers, size, picture) {
  const rects = paneRects(state.layout, size.width, size.height, picture);
  return layers.map((layer, index) => {
    const rect = rects[Math.min(index, rects.length - 1)];
    const { factor, x, y } = limitZoom(state.zoom, rect, picture);
    const scale = fitScale(rect, picture) * factor;
    const corner = {
      x: (rect.left + rect.right) / 2 - x * scale,
      y: (rect.top + rect.bottom) / 2 - y * scale,
    };
    const clip = { ...rect };
    if (state.layout === "wipe") {
      const { left, right } = covered({ rect, scale, ...corner }, picture);
      const edge = left + state.split * (right - left);
      if (index === 0) clip.right = edge;
      else clip.left = edge;
    }
    return { layer, rect, clip, scale, ...corner };
  });
}

/** The part of the stage that a pane's picture covers. */
export function covered({ x, y, scale, rect }, picture) {
  return {
    left: Math.max(rect.left, x),
    top: Math.max(rect.top, y),
    right: Math.min(rect.right, x + picture.width * scale),
    bottom: Math.min(rect.bottom, y + picture.height * scale),
  };
}

/** Picture position at a point of the stage, and its pane; null outside every picture. */
export function pick(panes, point, picture) {
  for (const pane of panes) {
    const { clip } = pane;
    if (point.x < clip.left || point.x >= clip.right) continue;
    if (point.y < clip.top || point.y >= clip.bottom) continue;
    const x = (point.x - pane.x) / pane.scale;
    const y = (point.y - pane.y) / pane.scale;
    if (x >= 0 && y >= 0 && x < picture.width && y < picture.height) return { x, y, pane };
  }
  return null;
}

/** Zoom by a factor; the picture stays in place under the given point. */
export function zoomAt(state, panes, point, factor, picture) {
  const pane =
    panes.find(({ rect }) => point.x >= rect.left && point.x < rect.right && point.y >= rect.top) ??
    panes[0];
  const { rect } = pane;
  const before = limitZoom(state.zoom, rect, picture);
  const after = limitZoom({ ...before, factor: before.factor * factor }, rect, picture);
  const fit = fitScale(rect, picture);
  const move = 1 / (fit * before.factor) - 1 / (fit * after.factor);
  const [dx, dy] = [point.x - (rect.left + rect.right) / 2, point.y - (rect.top + rect.bottom) / 2];
  return limitZoom({ ...after, x: before.x + dx * move, y: before.y + dy * move }, rect, picture);
}

/** Pan by a distance on the stage [css px]. */
export function panBy(state, panes, dx, dy, picture) {
  const { rect } = panes[0];
  const zoom = limitZoom(state.zoom, rect, picture);
  const scale = fitScale(rect, picture) * zoom.factor; // the pane's own may be outdated
  return limitZoom({ ...zoom, x: zoom.x - dx / scale, y: zoom.y - dy / scale }, rect, picture);
}
