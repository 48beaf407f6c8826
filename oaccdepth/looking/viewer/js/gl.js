// A thin layer over WebGL 2: programs, textures, drawing into textures.

export class GraphicsError extends Error {}

/** A program that covers its target with one fragment shader; `set` sets its uniforms. */
export class Program {
  constructor(gl, vertex, fragment) {
    this.gl = gl;
    this.program = gl.createProgram();
    for (const [type, source] of [
      [gl.VERTEX_SHADER, vertex],
      [gl.FRAGMENT_SHADER, fragment],
    ]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(this.program, shader);
    }
    gl.linkProgram(this.program);
    this.uniforms = null;
  }

  /** Looked up at first use: until then, the driver can compile on another thread. */
  find() {
    const { gl, program } = this;
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) {
      const logs = gl.getAttachedShaders(program).map((shader) => gl.getShaderInfoLog(shader));
      throw new GraphicsError([gl.getProgramInfoLog(program), ...logs].filter(Boolean).join("\n"));
    }
    this.uniforms = new Map();
    const count = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS);
    for (let i = 0; i < count; i++) {
      const { name, type } = gl.getActiveUniform(program, i);
      this.uniforms.set(name, { place: gl.getUniformLocation(program, name), type });
    }
  }

  /** Draw over the whole target, or draw `points`. A texture takes the next free unit. */
  draw(values, points = null) {
    const { gl } = this;
    gl.useProgram(this.program);
    if (!this.uniforms) this.find();
    let unit = 0;
    for (const [name, { place, type }] of this.uniforms) {
      const value = values[name];
      if (value === undefined) throw new GraphicsError(`no value for the uniform ${name}`);
      if (value instanceof Texture) value.bind(unit, place), unit++;
      else if (type === gl.FLOAT_MAT4) gl.uniformMatrix4fv(place, false, value);
      else if (type === gl.FLOAT_VEC2) gl.uniform2f(place, ...value);
      else if (type === gl.INT_VEC2) gl.uniform2i(place, ...value);
      else if (type === gl.FLOAT) gl.uniform1f(place, value);
      else gl.uniform1i(place, Number(value));
    }
    if (points) points.draw();
    else gl.drawArrays(gl.TRIANGLES, 0, 3);
  }
}

/**
 * Points with attributes, given as { array, size, isNormalised } in the order of their locations. The
 * first `opaque` ones hide what is behind them; the others are translucent.
 */
export class Points {
  constructor(gl, attributes, opaque) {
    Object.assign(this, { gl, vertices: gl.createVertexArray(), opaque, count: 0 });
    gl.bindVertexArray(this.vertices);
    attributes.forEach(({ array, size, isNormalised = false }, location) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, array, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(location);
      const type = array instanceof Float32Array ? gl.FLOAT : gl.UNSIGNED_BYTE;
      gl.vertexAttribPointer(location, size, type, isNormalised, 0, 0);
      this.count = array.length / size;
    });
    gl.bindVertexArray(null);
  }

  draw() {
    const { gl } = this;
    gl.bindVertexArray(this.vertices);
    gl.enable(gl.DEPTH_TEST);
    gl.drawArrays(gl.POINTS, 0, this.opaque);
    gl.depthMask(false);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.drawArrays(gl.POINTS, this.opaque, this.count - this.opaque);
    gl.disable(gl.BLEND);
    gl.depthMask(true);
    gl.disable(gl.DEPTH_TEST);
    gl.bindVertexArray(null);
  }
}

/** A two-dimensional texture, or a stack of them if it has layers. */
export class Texture {
  constructor(gl, { width, height, layers = 0, format = "RGBA8", smooth = false }) {
    Object.assign(this, { gl, width, height, layers, format });
    this.target = layers ? gl.TEXTURE_2D_ARRAY : gl.TEXTURE_2D;
    this.texture = gl.createTexture();
    gl.bindTexture(this.target, this.texture);
    const filter = smooth ? gl.LINEAR : gl.NEAREST;
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER])
      gl.texParameteri(this.target, name, filter);
    for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T])
      gl.texParameteri(this.target, name, gl.CLAMP_TO_EDGE);
    if (layers) gl.texStorage3D(this.target, 1, gl[format], width, height, layers);
    else gl.texStorage2D(this.target, 1, gl[format], width, height);
  }

  /** Fill the texture, or one layer of it, from an array or an ImageBitmap. */
  fill(source, layer = 0) {
    const { gl, target, width, height } = this;
    const [format, type] = {
      RGBA8: [gl.RGBA, gl.UNSIGNED_BYTE],
      RGB8: [gl.RGB, gl.UNSIGNED_BYTE],
      R8: [gl.RED, gl.UNSIGNED_BYTE],
      R32F: [gl.RED, gl.FLOAT],
    }[this.format];
    gl.bindTexture(target, this.texture);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    if (this.layers)
      gl.texSubImage3D(target, 0, 0, 0, layer, width, height, 1, format, type, source);
    else gl.texSubImage2D(target, 0, 0, 0, width, height, format, type, source);
    return this;
  }

  /** The texels of one layer, RGBA; slow, because it waits for the graphics card. */
  read(layer) {
    const { gl, width, height } = this;
    const buffer = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, buffer);
    gl.framebufferTextureLayer(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, this.texture, 0, layer);
    const pixels = new Uint8Array(width * height * 4);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.deleteFramebuffer(buffer);
    return pixels;
  }

  bind(unit, place) {
    const { gl } = this;
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(this.target, this.texture);
    gl.uniform1i(place, unit);
  }
}

/** An RGBA8 texture to draw into. */
export class Target {
  constructor(gl, width, height) {
    this.gl = gl;
    this.texture = new Texture(gl, { width, height, smooth: true });
    this.buffer = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.buffer);
    const { texture } = this.texture;
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  /** Draw with a program into `width` x `height` texels, starting at row `base`. */
  draw(program, values, width, height, base = 0) {
    const { gl } = this;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.buffer);
    gl.disable(gl.SCISSOR_TEST);
    gl.viewport(0, base, width, height);
    program.draw(values);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  /** All texels, RGBA. */
  read() {
    const { gl } = this;
    const { width, height } = this.texture;
    const pixels = new Uint8Array(width * height * 4);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.buffer);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    return { pixels, width };
  }
}
