// The point cloud: three.js, started when it is first looked at.
import { NOT_KNOWN, depthOf } from "./scene.js";

const MOST_POINTS = 1_200_000; // of larger pictures only some pixels become points
const RELIEF = 1 / 16; // depth of a cloud without a camera, as in geometry.py

const VERTEX = `
precision highp float;
uniform mat4 modelViewMatrix, projectionMatrix;
uniform vec4 uTarget;      // point around which depth is stretched
uniform float uStretch, uSize, uHeight, uLeastConfidence;
uniform bool uIsMetric, uHideEdges;
in vec3 position;
in vec3 colour;
in float confidence, edge;
out vec3 vColour;
void main() {
  vec3 place = vec3(position.xy, uTarget.z + (position.z - uTarget.z) * uStretch);
  vec4 seen = modelViewMatrix * vec4(place, 1.0);
  gl_Position = projectionMatrix * seen;
  // One point is as large as the pixel that it comes from.
  float size = uTarget.w * (uIsMetric ? -position.z : 1.0);
  gl_PointSize = max(1.0, uSize * size * projectionMatrix[1][1] * uHeight / (-2.0 * seen.z));
  bool isHidden = confidence < uLeastConfidence || (uHideEdges && edge > 0.5);
  if (isHidden) gl_Position = vec4(0.0, 0.0, 2.0, 1.0);
  vColour = colour;
}`;

const FRAGMENT = `
precision highp float;
in vec3 vColour;
out vec4 result;
void main() {
  vec2 corner = gl_PointCoord - 0.5;
  if (dot(corner, corner) > 0.25) discard;
  result = vec4(vColour, 1.0);
}`;

/** Place of every known pixel, in units of the middle depth (or the larger side); what it comes from. */
function placePoints(scene) {
  const { width, height, disparity, meta } = scene;
  const larger = Math.max(width, height);
  const step = Math.ceil(Math.sqrt((width * height) / MOST_POINTS));
  const known = [];
  for (let y = 0; y < height; y += step)
    for (let x = 0; x < width; x += step) {
      const d = disparity[y * width + x];
      if (d > NOT_KNOWN && (!meta.camera || Number.isFinite(depthOf(scene, d))))
        known.push(y * width + x);
    }
  const depths = meta.camera ? known.map((i) => depthOf(scene, disparity[i])).sort((a, b) => a - b) : [];
  const unit = meta.camera ? depths[depths.length >> 1] : larger;
  const pixel = meta.camera ? meta.camera.sensor / larger / meta.camera.focal : 1 / larger;
  const places = new Float32Array(known.length * 3);
  known.forEach((i, n) => {
    const depth = meta.camera ? depthOf(scene, disparity[i]) / unit : 0;
    const reach = meta.camera ? depth * pixel : pixel;
    places[3 * n] = ((i % width) - (width - 1) / 2) * reach;
    places[3 * n + 1] = ((height - 1) / 2 - Math.floor(i / width)) * reach;
    places[3 * n + 2] = meta.camera ? -depth : disparity[i] * RELIEF;
  });
  return { known: Uint32Array.from(known), places, pixel: pixel * step };
}

/** 255 where a pixel flies between two surfaces: one neighbour is much nearer, another much farther. */
function findEdges(scene, known) {
  const { width, height, disparity, extent } = scene;
  const step = Math.max(0.025 * (extent.usual[1] - extent.usual[0]), 0.02);
  return Uint8Array.from(known, (i) => {
    const [x, y] = [i % width, Math.floor(i / width)];
    const around = [
      x > 0 ? disparity[i - 1] : disparity[i],
      x < width - 1 ? disparity[i + 1] : disparity[i],
      y > 0 ? disparity[i - width] : disparity[i],
      y < height - 1 ? disparity[i + width] : disparity[i],
    ];
    const isNearer = Math.max(...around) - disparity[i] > step;
    return isNearer && disparity[i] - Math.min(...around) > step ? 255 : 0;
  });
}

export class Cloud {
  constructor(host, scene, photo) {
    const { THREE } = globalThis;
    Object.assign(this, { host, scene, photo, isShown: false, isTouched: false });
    this.points = placePoints(scene);
    this.renderer = new THREE.WebGLRenderer({ antialias: true, alpha: true });
    this.renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, 2));
    host.append(this.renderer.domElement);
    this.makeCloud(THREE);
    this.makeCamera(THREE);
  }

  makeCloud(THREE) {
    const { known, places, pixel } = this.points;
    const { confidence, meta } = this.scene;
    const bytes = (values, size) => new THREE.BufferAttribute(values, size, true);
    this.geometry = new THREE.BufferGeometry();
    this.colour = bytes(new Uint8Array(known.length * 3), 3);
    this.geometry.setAttribute("position", new THREE.BufferAttribute(places, 3));
    this.geometry.setAttribute("colour", this.colour);
    this.geometry.setAttribute("confidence", bytes(Uint8Array.from(known, (i) => confidence[i]), 1));
    this.geometry.setAttribute("edge", bytes(findEdges(this.scene, known), 1));
    this.target = [0, 0, this.middle(places)];
    this.material = new THREE.RawShaderMaterial({
      glslVersion: "300 es",
      vertexShader: VERTEX,
      fragmentShader: FRAGMENT,
      uniforms: {
        uTarget: { value: [...this.target, pixel] },
        uStretch: { value: 1 },
        uSize: { value: 1.8 },
        uHeight: { value: 1 },
        uLeastConfidence: { value: 0 },
        uIsMetric: { value: Boolean(meta.camera) },
        uHideEdges: { value: true },
      },
    });
    this.world = new THREE.Scene();
    const cloud = new THREE.Points(this.geometry, this.material);
    cloud.frustumCulled = false; // the shader moves the points
    this.world.add(cloud);
  }

  middle(places) {
    const depths = new Float32Array(places.length / 3).map((_, n) => places[3 * n + 2]).sort();
    return depths.length ? depths[depths.length >> 1] : 0;
  }

  makeCamera(THREE) {
    const { camera } = this.scene.meta;
    this.angle = camera ? 2 * Math.atan(camera.sensor / camera.focal / 2) : 0.6; // of the larger side
    this.camera = new THREE.PerspectiveCamera(40, 1, 0.01, 1000);
    this.controls = new THREE.OrbitControls(this.camera, this.renderer.domElement);
    this.controls.enableDamping = true;
    this.controls.dampingFactor = 0.12;
    this.controls.addEventListener("start", () => (this.isTouched = true));
    this.reset();
  }

  /** Stand where the centre camera stood; the cloud then looks like the picture. */
  reset() {
    const [x, y, z] = this.target;
    this.controls.enableDamping = false; // spend what is left of the last turn before starting anew
    this.controls.update();
    this.controls.enableDamping = true;
    const away = this.scene.meta.camera ? 0 : z + 0.5 / Math.tan(this.angle / 2);
    this.camera.position.set(0, 0, away);
    this.controls.target.set(x, y, z);
    this.isTouched = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.began = performance.now();
    this.controls.update();
    this.isStale = true;
  }

  /** Turn by angles [rad], for the arrow keys. */
  turn(right, up) {
    this.isTouched = true;
    this.stand(right, up, true);
  }

  /** Place the camera on its sphere around the target, by angles from where it is or from the start. */
  stand(right, up, isRelative) {
    const offset = this.camera.position.clone().sub(this.controls.target);
    const radius = offset.length();
    const azimuth = (isRelative ? Math.atan2(offset.x, offset.z) : 0) + right;
    const height = (isRelative ? Math.asin(offset.y / radius) : 0) + up;
    const limited = Math.min(Math.max(height, -1.5), 1.5);
    offset.set(
      radius * Math.sin(azimuth) * Math.cos(limited),
      radius * Math.sin(limited),
      radius * Math.cos(azimuth) * Math.cos(limited),
    );
    this.camera.position.copy(this.controls.target).add(offset);
  }

  zoom(factor) {
    this.isTouched = true;
    const { position } = this.camera;
    position.sub(this.controls.target).divideScalar(factor).add(this.controls.target);
  }

  /** Take over the settings of the card; `mapped` colours a disparity. */
  update(settings, mapped) {
    const { uStretch, uSize, uLeastConfidence, uHideEdges } = this.material.uniforms;
    uStretch.value = settings.stretch;
    uSize.value = settings.size;
    uLeastConfidence.value = settings.confidence;
    uHideEdges.value = settings.hideEdges;
    const { known } = this.points;
    const { disparity } = this.scene;
    const colours = this.colour.array;
    known.forEach((i, n) => {
      const from = settings.colour === "view" && this.photo ? this.photo : null;
      const [source, at] = from ? [from, 4 * i] : mapped(disparity[i]);
      colours[3 * n] = source[at];
      colours[3 * n + 1] = source[at + 1];
      colours[3 * n + 2] = source[at + 2];
    });
    this.colour.needsUpdate = true;
    this.isStale = true;
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (!width || !height) return;
    this.renderer.setSize(width, height);
    const { width: w, height: h } = this.scene;
    const half = Math.tan(this.angle / 2) / Math.max(w, h); // per picture px
    // The whole picture fits, whatever the shape of the stage.
    const needed = Math.max(h * half, (w * half * height) / width);
    this.camera.fov = (2 * Math.atan(needed) * 180) / Math.PI;
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    this.material.uniforms.uHeight.value = height * this.renderer.getPixelRatio();
    this.isStale = true;
  }

  show() {
    if (this.isShown) return;
    this.isShown = true;
    this.resize();
    this.began = performance.now();
    const step = (now) => {
      if (!this.isShown) return;
      this.step(now);
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  hide() {
    this.isShown = false;
  }

  /** One frame: sway gently until somebody takes hold; draw only if something moved. */
  step(now) {
    if (!this.isTouched) {
      const time = (now - this.began) / 1000;
      const strength = Math.min(time / 2, 1);
      this.stand(0.22 * strength * Math.sin(time * 0.8), 0.1 * strength * Math.sin(time * 0.53), false);
    }
    if (this.controls.update() || this.isStale || !this.isTouched) this.draw();
  }

  draw() {
    this.isStale = false;
    this.renderer.render(this.world, this.camera);
  }
}
