// Automatic motions: the cover, a trip through the views, a focus pull, a swaying cloud.
import { clamp, prefersStillness } from "./elements.js";
import { REST } from "./state.js";

export const LOOP_SECONDS = { travel: 4.8, pull: 6, sway: 7.85 }; // then it repeats
const COVER_SECONDS = { loop: 9, pull: 7 };

/** 0 before `from`, 1 after `to`, and a smooth step between them. */
function rise(time, from, to) {
  const part = clamp((time - from) / (to - from), 0, 1);
  return part * part * (3 - 2 * part);
}

const mix = (from, to, part) => from + (to - from) * part;

export class Motion {
  constructor(scene, state) {
    Object.assign(this, { scene, state, animations: new Map(), token: null });
    this.home = { focus: state.get("focus"), aperture: state.get("aperture") };
    this.swing = 0.1; // rad: how far the cloud sways
  }

  /** Animate something with easing; a later animation of the same name replaces it. */
  animate(name, duration, apply) {
    const began = performance.now();
    const token = {};
    this.animations.set(name, token);
    if (!duration || prefersStillness.matches) return apply(1);
    const step = (now) => {
      if (this.animations.get(name) !== token) return;
      const part = clamp((now - began) / duration, 0, 1);
      apply(part === 1 ? 1 : 1 - (1 - part) ** 3);
      if (part < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  cancel(name) {
    this.animations.delete(name);
  }

  /** Start one of the motions and stop the current one. */
  start(name) {
    const token = (this.token = {});
    this.animations.clear();
    this.state.set({ motion: name });
    const apply = this[name].bind(this);
    const began = performance.now();
    const step = (now) => {
      if (this.token !== token) return;
      this.state.set(apply((now - began) / 1000));
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  stop() {
    this.token = null;
    this.state.set({ motion: null });
  }

  /** A slow figure of eight through the views while the disparity wipes in; then one focus pull. */
  cover(time) {
    const { loop, pull } = COVER_SECONDS;
    const { aperture, focus } = this.home;
    if (time >= loop && time < loop + pull) {
      const part = (time - loop) / pull;
      const open = rise(part, 0, 0.25) * (1 - rise(part, 0.8, 1));
      const [far] = this.scene.extent.usual;
      const still = { layout: "single", left: "refocused", camera: { x: 0, y: 0 } };
      return { ...still, aperture: aperture * open, focus: mix(far, focus, rise(part, 0.25, 0.65)) };
    }
    const part = ((time < loop ? time : time - loop - pull) % loop) / loop;
    const angle = 2 * Math.PI * part;
    const { middle } = this.scene.grid;
    const camera = { x: 0.85 * middle.v * Math.sin(angle), y: 0.4 * middle.u * Math.sin(2 * angle) };
    const split = 1 - rise(part, 0.15, 0.45) + rise(part, 0.6, 0.9);
    return { layout: "wipe", left: "view", right: "disparity", split, camera, aperture, focus };
  }

  /** Travel on a circle through the views. */
  travel(time) {
    const { middle } = this.scene.grid;
    const angle = (2 * Math.PI * time) / LOOP_SECONDS.travel;
    const reach = Math.min(time / 1.2, 1) * 0.9;
    return { camera: { x: middle.v * reach * Math.sin(angle), y: middle.u * reach * Math.cos(angle) } };
  }

  /** Move the focus from far to near and back. */
  pull(time) {
    const [far, near] = this.scene.extent.usual;
    return { focus: mix(far, near, 0.5 - 0.5 * Math.cos((2 * Math.PI * time) / LOOP_SECONDS.pull)) };
  }

  /** Sway the cloud gently from side to side around the centre camera. */
  sway(time) {
    const { swing } = this;
    const angle = (2 * Math.PI * time) / LOOP_SECONDS.sway;
    return { orbit: { ...REST, right: swing * Math.sin(angle), up: 0.35 * swing * Math.sin(2 * angle) } };
  }
}
