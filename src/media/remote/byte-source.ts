/** Reads a stream of bytes by lines and delimiters. Buffers at most one piece more than requested. */
export class ByteSource {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #buffer: Buffer = Buffer.alloc(0);

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#pieces = bytes[Symbol.asyncIterator]();
  }

  /**
   * Returns the bytes before the next CRLF as Latin-1, and skips the CRLF.
   * @param maxLength bytes
   * @returns `undefined` when the line is longer, or the stream ends first
   */
  async line(maxLength: number): Promise<string | undefined> {
    for (let searched = 0; ; ) {
      const end = this.#buffer.indexOf('\r\n', searched);
      if (end !== -1 && end <= maxLength) return this.#take(end + 2).toString('latin1', 0, end);
      if (end !== -1 || this.#buffer.length > maxLength + 1) return undefined;
      searched = Math.max(0, this.#buffer.length - 1);
      if (!(await this.#fill())) return undefined;
    }
  }

  /**
   * Yields the bytes before `delimiter` in pieces, and skips the delimiter.
   * @returns whether the delimiter was found before the end of the stream
   */
  async *until(delimiter: Buffer): AsyncGenerator<Buffer, boolean> {
    for (;;) {
      const position = this.#buffer.indexOf(delimiter);
      if (position !== -1) {
        const last = this.#take(position + delimiter.length).subarray(0, position);
        if (last.length > 0) yield last;
        return true;
      }
      const safe = this.#buffer.length - delimiter.length + 1;
      if (safe > 0) yield this.#take(safe);
      if (!(await this.#fill())) return false;
    }
  }

  /** Skips these bytes if the stream continues with them. @returns whether the bytes were skipped */
  async skip(bytes: string): Promise<boolean> {
    while (this.#buffer.length < bytes.length && (await this.#fill()));
    if (this.#buffer.toString('latin1', 0, bytes.length) !== bytes) return false;
    this.#take(bytes.length);
    return true;
  }

  #take(length: number): Buffer {
    const taken = this.#buffer.subarray(0, length);
    this.#buffer = this.#buffer.subarray(length);
    return taken;
  }

  async #fill(): Promise<boolean> {
    const { done, value } = await this.#pieces.next();
    if (done) return false;
    const piece = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    this.#buffer = this.#buffer.length === 0 ? piece : Buffer.concat([this.#buffer, piece]);
    return true;
  }
}
