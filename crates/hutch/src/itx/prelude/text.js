// Text and bytes.

class TextEncoder {
  get encoding() { return "utf-8"; }
  encode(text = "") { return Uint8Array.fromBase64(host.utf8Encode(String(text).toWellFormed())); }
}

class TextDecoder {
  #fatal;
  #ignoreBom;
  #rest = new Uint8Array(0);
  #started = false;

  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    if (!/^\s*(utf-?8|unicode-1-1-utf-8)\s*$/i.test(label)) throw new RangeError(`the encoding ${label} is not supported: only utf-8 is`);
    this.#fatal = fatal;
    this.#ignoreBom = ignoreBOM;
  }

  get encoding() { return "utf-8"; }
  get fatal() { return this.#fatal; }
  get ignoreBOM() { return this.#ignoreBom; }

  decode(input = new Uint8Array(0), { stream = false } = {}) {
    const bytes = asBytes(input);
    if (!bytes) throw new TypeError("only bytes can be decoded");
    const all = new Uint8Array(this.#rest.length + bytes.length);
    all.set(this.#rest);
    all.set(bytes, this.#rest.length);
    const [text, used] = JSON.parse(host.utf8Decode(all.toBase64(), this.#fatal, stream));
    this.#rest = all.slice(used);
    const start = this.#started;
    this.#started = stream && (start || used > 0);
    return !start && !this.#ignoreBom && text.startsWith("\ufeff") ? text.slice(1) : text;
  }
}

function btoa(text) {
  const bytes = Uint8Array.from(String(text), (c) => {
    const code = c.charCodeAt(0);
    if (code > 255 || c.length > 1) throw new RangeError("btoa takes characters up to U+00FF");
    return code;
  });
  return bytes.toBase64();
}

function atob(text) {
  let out = "";
  for (const byte of Uint8Array.fromBase64(String(text))) out += String.fromCharCode(byte);
  return out;
}
