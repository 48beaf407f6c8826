// Data blocks of the page (base64 in script elements) -> bytes, numbers and pictures.

/** The bytes of a block, or null if the page has no block of that name. Frees the block's text. */
export function takeBytes(name) {
  const element = document.getElementById(`data-${name}`);
  if (!element) return null;
  const text = element.textContent;
  element.remove();
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** A deflated block as bytes, or null. */
export async function takeInflated(name) {
  const bytes = takeBytes(name);
  if (!bytes) return null;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A block of float32 values, packed without loss by `pack_floats` in pack.py. */
export async function takeFloats(name, width, height) {
  const planes = await takeInflated(name);
  if (!planes) return null;
  const count = width * height;
  const bits = new Uint32Array(count);
  for (let start = 0; start < count; start += width) {
    let sum = 0;
    for (let i = start; i < start + width; i++) {
      const low = planes[i] | (planes[count + i] << 8);
      const high = planes[2 * count + i] | (planes[3 * count + i] << 8);
      sum = (sum + (low | (high << 16))) | 0;
      bits[i] = sum;
    }
  }
  return new Float32Array(bits.buffer);
}

/** A JPEG block as an ImageBitmap, without colour management; or null. */
export async function takePicture(name) {
  const bytes = takeBytes(name);
  if (!bytes) return null;
  const blob = new Blob([bytes], { type: "image/jpeg" });
  return createImageBitmap(blob, { colorSpaceConversion: "none", premultiplyAlpha: "none" });
}
