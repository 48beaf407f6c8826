// Records a video of the moving picture: WebM, or another format that the browser supports.

// VP8 before VP9, because it keeps up on slow machines, too.
const FILM_KINDS = [["video/webm;codecs=vp8", "webm"], ["video/webm", "webm"], ["video/mp4", "mp4"]];
const BITS_PER_SECOND = 8_000_000;
const LARGEST_SIDE = 1080; // px
const FEWEST = 20; // pictures
const FEWEST_PARTS = 3; // encoded chunks of the video
const PART_MS = 200;

/** Records parts of a canvas: call `take` after every drawing, then `finish`. */
export class Clip {
  constructor(canvas, crop) {
    const kind = FILM_KINDS.find(([type]) => globalThis.MediaRecorder?.isTypeSupported(type));
    if (!kind) throw new Error("This browser cannot record video.");
    const scale = Math.min(1, LARGEST_SIDE / Math.max(crop.width, crop.height));
    const even = (side) => 2 * Math.max(1, Math.round((side * scale) / 2)); // video codecs need it
    this.film = document.createElement("canvas");
    Object.assign(this.film, { width: even(crop.width), height: even(crop.height) });
    Object.assign(this, { canvas, crop, ending: kind[1], parts: [], taken: 0 });
    this.context = this.film.getContext("2d");
    const settings = { mimeType: kind[0], videoBitsPerSecond: BITS_PER_SECOND };
    this.recorder = new MediaRecorder(this.film.captureStream(30), settings);
    this.recorder.addEventListener("dataavailable", ({ data }) => data.size && this.parts.push(data));
    this.recorder.start(PART_MS);
  }

  take() {
    this.taken++;
    const { x, y, width, height } = this.crop;
    this.context.fillRect(0, 0, this.film.width, this.film.height);
    this.context.drawImage(this.canvas, x, y, width, height, 0, 0, this.film.width, this.film.height);
  }

  /** Wait for some seconds, and on slow machines for enough pictures, but not for ever. */
  async roll(duration) {
    const began = performance.now();
    const pause = () => new Promise((done) => setTimeout(done, 50));
    const isShort = () => this.taken < FEWEST || this.parts.length < FEWEST_PARTS;
    for (let passed = 0; passed < duration || (isShort() && passed < 4 * duration); ) {
      await pause();
      passed = performance.now() - began;
    }
  }

  /** The video as a blob. */
  finish() {
    return new Promise((done, fail) => {
      this.recorder.addEventListener("stop", () => {
        if (!this.parts.length) return fail(new Error("This machine is too slow to record."));
        done(new Blob(this.parts, { type: this.recorder.mimeType.split(";")[0] }));
      });
      this.recorder.stop();
    });
  }
}
