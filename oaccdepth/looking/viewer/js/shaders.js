// GLSL. Positions are picture pixels (x right, y down), pixel centres at .5; a point of disparity d
// at p of the centre view lies at p - d * k of the view k steps away.

export const COVER = `#version 300 es
void main() { // one triangle that covers everything
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 1.0;
  gl_Position = vec4(corner, 0.0, 1.0);
}`;

const COMMON = `#version 300 es
precision highp float;
precision highp int;
precision highp sampler2D;
precision highp sampler2DArray;
uniform sampler2DArray uViews;   // every view
uniform sampler2D uPresent;      // (columns, rows): 1 where a view is there
uniform ivec2 uGrid;             // columns, rows
uniform vec2 uSize;              // of the picture [px]
out vec4 colour;

ivec2 middle() { return uGrid / 2; }

// The view k steps right and down of the centre, at p; alpha 0: no such view, or outside of it.
vec4 viewAt(ivec2 k, vec2 p) {
  ivec2 place = k + middle();
  if (any(lessThan(place, ivec2(0))) || any(greaterThanEqual(place, uGrid))) return vec4(0.0);
  if (texelFetch(uPresent, place, 0).r == 0.0) return vec4(0.0);
  if (any(lessThan(p, vec2(0.4999))) || any(greaterThan(p, uSize - 0.4999))) return vec4(0.0);
  return vec4(textureLod(uViews, vec3(p / uSize, place.y * uGrid.x + place.x), 0.0).rgb, 1.0);
}
`;

const COVERED = `
uniform vec2 uExtent;         // smallest and largest disparity
uniform sampler2D uSolid;     // disparity without flying points: where surfaces are

// Whether something nearer than d covers q of the view k steps away. A surface is widened by two
// pixels, because edges are not known any better.
bool isCovered(vec2 q, vec2 k, float d) {
  float margin = 0.05 * (uExtent.y - uExtent.x);
  float reach = length(k);
  float span = uExtent.y - d - margin;
  if (span <= 0.0) return false;
  int steps = clamp(int(ceil(reach * span)), 1, 64);
  float stride = span / float(steps), near = max(0.6 * stride, 2.5 / max(reach, 1.0));
  for (int i = 0; i <= steps; i++) {
    float level = uExtent.y - stride * float(i);
    ivec2 place = clamp(ivec2(floor(q + level * k)), ivec2(0), ivec2(uSize) - 1);
    float surface = texelFetch(uSolid, place, 0).r;
    if (surface > d + margin && abs(surface - level) < near) return true;
  }
  return false;
}
`;

/**
 * Shift-and-add: all views within the aperture, averaged at one disparity. To see through objects
 * in front, samples of nearer surfaces get little weight.
 */
export const REFOCUS = `${COMMON}
uniform float uFocus;
uniform float uAperture; // view steps
uniform bool uSeeThrough;
uniform sampler2D uCentre;
${COVERED}
void main() {
  vec2 p = gl_FragCoord.xy; // drawn upside down, so that row 0 of the texture is the top
  vec4 sum = vec4(0.0);
  for (int row = 0; row < uGrid.y; row++)
    for (int column = 0; column < uGrid.x; column++) {
      ivec2 k = ivec2(column, row) - middle();
      if (length(vec2(k)) > uAperture + 1e-4) continue;
      vec2 q = p - uFocus * vec2(k);
      float share = uSeeThrough && isCovered(q, vec2(k), uFocus) ? 1e-3 : 1.0;
      sum += share * viewAt(k, q);
    }
  colour = vec4(sum.a > 0.0 ? sum.rgb / sum.a : textureLod(uCentre, p / uSize, 0.0).rgb, 1.0);
}`;

/** The samples for the inspector, one texel each: see \`Renderer.probe\`. */
export const PROBE = `${COMMON}
uniform sampler2DArray uMasks;
uniform int uWhat;      // 0 angular patch, 1 row EPI, 2 column EPI, 3 masks
uniform float uBase;    // first row of the target that this part may fill
uniform vec2 uPixel;    // the centre of the chosen pixel
uniform float uStart;   // first x or y of an EPI
uniform float uSlope;   // disparity of the chosen pixel
void main() {
  ivec2 i = ivec2(gl_FragCoord.xy - vec2(0.0, uBase));
  ivec2 k = i - middle();
  if (uWhat == 0) colour = viewAt(k, uPixel - uSlope * vec2(k));
  else if (uWhat == 1) colour = viewAt(ivec2(k.y + middle().y - middle().x, 0), vec2(uStart + gl_FragCoord.x, uPixel.y));
  else if (uWhat == 2) colour = viewAt(ivec2(0, k.y), vec2(uPixel.x, uStart + gl_FragCoord.x));
  else colour = textureLod(uMasks, vec3(uPixel / uSize, i.y * uGrid.x + i.x), 0.0);
}`;

/** One layer of the stage: a short program for each kind. */
export const KINDS = ["VIEW", "REFOCUSED", "VALUE", "DIFFERENCE", "MASK", "COMPUTED_MASK"];
export const layerShader = (kind, isSmooth) => `${COMMON}
${KINDS.map((name, i) => `#define ${name} ${i}`).join("\n")}
#define KIND ${kind}
#define SMOOTH ${Number(isSmooth)}
uniform sampler2D uCentre;
uniform sampler2D uRefocused;
uniform sampler2D uDisparity;
uniform sampler2D uValue;
uniform sampler2D uOther;
uniform sampler2DArray uMasks;
uniform sampler2D uColours;   // 256 x maps
uniform int uMap;
uniform vec2 uRange;
uniform vec2 uCamera;         // view steps right and down of the centre
uniform ivec2 uMaskView;      // the same, of the view whose mask is shown
uniform vec2 uOrigin;         // picture position of the canvas' lower left corner
uniform float uStep;          // picture pixels per canvas pixel
uniform vec2 uShades;         // of the hatching for unknown values
${COVERED}
float fetch(sampler2D map, ivec2 i) {
  return texelFetch(map, clamp(i, ivec2(0), ivec2(uSize) - 1), 0).r;
}
float known(float d) { return d < -1e29 ? 0.0 : d; }

// What the moved camera sees at p: its position in the centre view and its disparity. If the centre
// view does not see it, the surface next to it. The same as \`march\` in space.js.
vec3 toCentre(vec2 p) {
  if (uCamera == vec2(0.0)) return vec3(p, 0.0);
  float span = uExtent.y - uExtent.x;
  int steps = clamp(int(ceil(1.5 * length(uCamera) * span)), 1, 96);
  float stride = span / float(steps);
  vec3 found = vec3(p, 1e30), earlier = found;
  for (int i = 0; i <= steps; i++) {
    float level = uExtent.y - stride * float(i);
    vec2 place = p + level * uCamera;
    float d = fetch(uSolid, ivec2(floor(place)));
    if (d < -1e29) continue;
    if (d < level - 0.5 * stride) { earlier = found; found = vec3(place, d); }
    else if (found.z > 1e29 || d <= level + 2.5 * stride) return vec3(p + d * uCamera, d);
    else return earlier.z < found.z ? earlier : found;
  }
  return found.z < 1e29 ? found : vec3(p, 0.0);
}

// A picture between the views, from the four nearest ones, each shifted by the disparity. Where
// they disagree, only those that see the point count.
vec3 seen(vec2 p) {
  if (uCamera == vec2(0.0)) return textureLod(uCentre, p / uSize, 0.0).rgb;
  vec3 centre = toCentre(p);
  ivec2 first = ivec2(floor(uCamera));
  vec2 part = uCamera - vec2(first);
  vec4 samples[4], sum = vec4(0.0);
  float shares[4], spread = 0.0;
  for (int i = 0; i < 4; i++) {
    ivec2 step = ivec2(i & 1, i >> 1);
    vec2 share = mix(1.0 - part, part, vec2(step));
    vec2 place = p + centre.z * (uCamera - vec2(first + step));
    samples[i] = viewAt(first + step, clamp(place, vec2(0.5), uSize - 0.5));
    shares[i] = share.x * share.y * samples[i].a;
    sum += shares[i] * vec4(samples[i].rgb, 1.0);
    spread = max(spread, shares[i] * distance(samples[i].rgb, samples[0].rgb));
  }
  if (spread > 0.02) {
    sum = vec4(0.0);
    for (int i = 0; i < 4; i++) {
      vec2 k = vec2(first + ivec2(i & 1, i >> 1));
      float share = isCovered(p + centre.z * (uCamera - k), k, centre.z) ? 1e-3 : 1.0;
      sum += share * shares[i] * vec4(samples[i].rgb, 1.0);
    }
  }
  if (sum.a > 1e-6) return sum.rgb / sum.a;
  return textureLod(uCentre, centre.xy / uSize, 0.0).rgb;
}

float computedMask(ivec2 i) { // (1 - |difference to the centre|)^2, as the networks do
  vec2 p = vec2(i) + 0.5;
  ivec2 k = uMaskView;
  vec4 view = viewAt(k, p - known(fetch(uDisparity, i)) * vec2(k));
  float difference = dot(view.rgb - textureLod(uCentre, p / uSize, 0.0).rgb, vec3(1.0 / 3.0));
  return view.a * pow(1.0 - abs(difference), 2.0);
}

float scalar(ivec2 i) {
  i = clamp(i, ivec2(0), ivec2(uSize) - 1);
#if KIND == VALUE
  return fetch(uValue, i);
#elif KIND == COMPUTED_MASK
  return computedMask(i);
#elif KIND == MASK
  ivec2 place = uMaskView + middle();
  vec2 cell = (vec2(i) + 0.5) / uSize;
  return textureLod(uMasks, vec3(cell, place.y * uGrid.x + place.x), 0.0).r;
#else
  float a = fetch(uValue, i), b = fetch(uOther, i);
  return min(a, b) < -1e29 ? -1e30 : a - b;
#endif
}

vec3 mapped(float value) {
  if (value < -1e29) return vec3(mod(gl_FragCoord.x + gl_FragCoord.y, 12.0) < 6.0 ? uShades.x : uShades.y);
  float part = clamp((value - uRange.x) / (uRange.y - uRange.x), 0.0, 1.0);
  return texelFetch(uColours, ivec2(int(part * 255.0 + 0.5), uMap), 0).rgb;
}

vec3 values(vec2 p) {
#if !SMOOTH
  return mapped(scalar(ivec2(floor(p))));
#else
  vec2 corner = floor(p - 0.5), part = p - 0.5 - corner;
  ivec2 i = ivec2(corner);
  vec3 upper = mix(mapped(scalar(i)), mapped(scalar(i + ivec2(1, 0))), part.x);
  vec3 lower = mix(mapped(scalar(i + ivec2(0, 1))), mapped(scalar(i + ivec2(1, 1))), part.x);
  return mix(upper, lower, part.y);
#endif
}

void main() {
  vec2 p = uOrigin + vec2(1.0, -1.0) * gl_FragCoord.xy * uStep;
  if (any(lessThan(p, vec2(0.0))) || any(greaterThanEqual(p, uSize))) { colour = vec4(0.0); return; }
#if !SMOOTH && KIND <= REFOCUSED
  p = floor(p) + 0.5;
#endif
#if KIND == VIEW
  colour = vec4(seen(p), 1.0);
#elif KIND == REFOCUSED
  colour = vec4(textureLod(uRefocused, p / uSize, 0.0).rgb, 1.0);
#elif KIND >= MASK
  colour = vec4(values(p), 1.0);
#else
  vec2 place = toCentre(p).xy;
  if (uCamera != vec2(0.0)) place = floor(place) + 0.5; // nothing between two surfaces
  colour = vec4(values(place), 1.0);
#endif
}`;

/**
 * A point of the cloud: its pixel's offset from the middle and its disparity become a position on
 * the pixel's own ray, so that the cloud looks like the picture from the centre camera.
 */
export const CLOUD_VERTEX = `#version 300 es
precision highp float;
precision highp int;
uniform mat4 uMatrix;
uniform float uPitch, uSlope, uMedian; // see makeSpace in space.js
uniform float uStretch, uSize, uTilt, uHeight, uLeastConfidence;
uniform bool uIsMapped;
uniform sampler2D uColours;
uniform int uMap;
uniform vec2 uRange;
layout(location = 0) in vec3 place;      // px right, px up, disparity
layout(location = 1) in vec4 paint;      // colour of the view; alpha: confidence
layout(location = 2) in float steepness; // depth step to the neighbours, in pixels
layout(location = 3) in float share;     // opacity
out vec4 vColour;
void main() {
  float depth = 1.0 / (1.0 + uSlope * (place.z - uMedian));
  depth = max(1.0 + (depth - 1.0) * uStretch, 0.02);
  gl_Position = uMatrix * vec4(place.xy * uPitch * depth, -depth, 1.0);
  // As large as its pixel, or larger if a tilted surface is seen from the side.
  float size = uPitch * depth * (1.0 + min(steepness * uTilt, 3.0));
  gl_PointSize = clamp(1.15 * uSize * size * uHeight / gl_Position.w + 0.5, 1.0, 64.0);
  if (paint.a < uLeastConfidence) gl_Position = vec4(0.0, 0.0, 2.0, 1.0);
  float part = clamp((place.z - uRange.x) / (uRange.y - uRange.x), 0.0, 1.0);
  vec3 mapped = texelFetch(uColours, ivec2(int(part * 255.0 + 0.5), uMap), 0).rgb;
  vColour = share * vec4(uIsMapped ? mapped : paint.rgb, 1.0);
}`;

export const CLOUD_FRAGMENT = `#version 300 es
precision highp float;
in vec4 vColour;
out vec4 colour;
void main() {
  vec2 corner = gl_PointCoord - 0.5;
  // Points bulge: where neighbours overlap, the one with the closer centre is visible.
  gl_FragDepth = gl_FragCoord.z + 1e-4 * dot(corner, corner);
  colour = vColour;
}`;
