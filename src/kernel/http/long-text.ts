/** A text as UTF-8 bytes in chunks, which lie outside of the heap of V8. */
export class LongText {
  readonly chunks: readonly Uint8Array[];
  /** Number of bytes. */
  readonly length: number;

  constructor(chunks: readonly Uint8Array[]) {
    this.chunks = chunks;
    let length = 0;
    for (const chunk of chunks) length += chunk.length;
    this.length = length;
  }

  toString(): string {
    return Buffer.concat(this.chunks).toString();
  }
}

/** Number of characters after which the text added so far becomes a chunk. */
const chunkCharacters = 65_536;

/**
 * Makes a text that may be long. As one string, a text of megabytes would be copied in the heap of V8 each time it is
 * joined, measured and sent, and the copies would make V8 collect garbage more often.
 */
export class TextBuilder {
  #chunks: Uint8Array[] | undefined;
  #end = '';
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#end === '' && this.#chunks === undefined;
  }

  /** Number of bytes of the chunks: of all text but the end that has not become a chunk. */
  get bytes(): number {
    return this.#bytes;
  }

  add(text: string): void {
    this.#end += text;
    if (this.#end.length >= chunkCharacters) this.#addChunk();
  }

  /** Adds the text of another builder, which must not be used any more. */
  append(other: TextBuilder): void {
    if (other.#chunks) {
      if (this.#end !== '') this.#addChunk();
      this.#chunks = this.#chunks ? [...this.#chunks, ...other.#chunks] : other.#chunks;
      this.#bytes += other.#bytes;
    }
    this.add(other.#end);
  }

  /** Returns the text; a string when it is shorter than a chunk. */
  finish(): string | LongText {
    if (!this.#chunks) return this.#end;
    if (this.#end !== '') this.#addChunk();
    return new LongText(this.#chunks);
  }

  #addChunk(): void {
    this.#chunks ??= [];
    const chunk = Buffer.from(this.#end);
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    this.#end = '';
  }
}
