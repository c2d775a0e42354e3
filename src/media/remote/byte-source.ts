/** Bytes that come in pieces, to be read by lines and marks. Never holds more than it is asked to and one piece. */
export class ByteSource {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #buffer: Buffer = Buffer.alloc(0);

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#pieces = bytes[Symbol.asyncIterator]();
  }

  /**
   * What comes before the next CRLF, which is passed over; as Latin-1.
   * @param longest bytes
   * @returns `undefined` when it is longer, or the bytes end first
   */
  async line(longest: number): Promise<string | undefined> {
    for (let searched = 0; ; ) {
      const end = this.#buffer.indexOf('\r\n', searched);
      if (end !== -1 && end <= longest) return this.#take(end + 2).toString('latin1', 0, end);
      if (end !== -1 || this.#buffer.length > longest + 1) return undefined;
      searched = Math.max(0, this.#buffer.length - 1);
      if (!(await this.#fill())) return undefined;
    }
  }

  /** What comes before `mark`, which is passed over, in pieces. @returns whether the mark came before the end */
  async *until(mark: Buffer): AsyncGenerator<Buffer, boolean> {
    for (;;) {
      const at = this.#buffer.indexOf(mark);
      if (at !== -1) {
        const last = this.#take(at + mark.length).subarray(0, at);
        if (last.length > 0) yield last;
        return true;
      }
      const safe = this.#buffer.length - mark.length + 1;
      if (safe > 0) yield this.#take(safe);
      if (!(await this.#fill())) return false;
    }
  }

  /** Whether the next bytes are these, which are then passed over. */
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
