// What the viewer needs of three.js; vendor/README.md says how three.min.js is made from this file.
export {
  BufferAttribute,
  BufferGeometry,
  PerspectiveCamera,
  Points,
  RawShaderMaterial,
  Scene,
  Vector3,
  WebGLRenderer,
} from "three";
export { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
