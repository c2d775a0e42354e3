import { LongText } from '../../kernel/http/index.ts';
import type { SharedText } from './shared-text.ts';

/** Digits of the largest safe integer. */
const ageWidth = 16;

const blankAge = ' '.repeat(ageWidth);

/** When the added text has this many bytes, it becomes a chunk. */
const chunkBytes = 65_536;

/** UTF-8 bytes of JSON with blanks for the ages of events. */
interface Chunk {
  readonly bytes: Uint8Array;
  /** Offsets of these blanks in `bytes`. */
  readonly ageOffsets: Uint32Array;
  /** The `origin_server_ts` of the events, in the order of `ageOffsets`. */
  readonly sentAt: Float64Array;
}

/** Events as JSON bytes, encoded once. Each response contains a copy with the `age` of each event filled in. */
export class StateText {
  readonly #chunks: readonly Chunk[];
  /** Number of bytes in memory. */
  readonly bytes: number;

  constructor(chunks: readonly Chunk[]) {
    this.#chunks = chunks;
    this.bytes = chunks.reduce((sum, { bytes, sentAt }) => sum + bytes.length + 12 * sentAt.length, 0);
  }

  /** Returns the text with the `age` of each event as of `now`, in milliseconds since 1970. */
  at(now: number): LongText {
    return new LongText(this.#chunks.map((chunk) => withAges(chunk, now)));
  }
}

/** Collects the parts of a `StateText`. */
export class StateTextBuilder {
  readonly #chunks: Chunk[] = [];
  #text = '';
  #length = 0;
  #ageOffsets: number[] = [];
  #sentAt: number[] = [];
  #bytes = 0;

  /** Number of bytes that were added. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds JSON text without events. */
  add(text: string): void {
    const bytes = Buffer.byteLength(text);
    this.#text += text;
    this.#length += bytes;
    this.#bytes += bytes;
    if (this.#length >= chunkBytes) this.#endChunk();
  }

  /** Adds an event. @param start the opening brace of the event, and fields to write before the fields of the shared text */
  addEvent({ beforeAge, sentAt, afterAge }: SharedText, start: string): void {
    this.add(start + beforeAge);
    this.#ageOffsets.push(this.#length);
    this.#sentAt.push(sentAt);
    this.add(blankAge + afterAge);
  }

  /** Returns the text of everything that was added. */
  finish(): StateText {
    this.#endChunk();
    return new StateText(this.#chunks);
  }

  #endChunk(): void {
    const ageOffsets = Uint32Array.from(this.#ageOffsets);
    const sentAt = Float64Array.from(this.#sentAt);
    this.#chunks.push({ bytes: Buffer.from(this.#text), ageOffsets, sentAt });
    this.#text = '';
    this.#length = 0;
    this.#ageOffsets = [];
    this.#sentAt = [];
  }
}

function withAges({ bytes: blank, ageOffsets, sentAt }: Chunk, now: number): Uint8Array {
  if (ageOffsets.length === 0) return blank;
  const bytes = Buffer.from(blank);
  for (let index = 0; index < ageOffsets.length; index++) {
    const age = Math.min(Math.max(0, now - sentAt[index]!), Number.MAX_SAFE_INTEGER);
    writeInteger(bytes, ageOffsets[index]! + ageWidth, age);
  }
  return bytes;
}

/** Writes an integer in decimal digits; the last digit is directly before `end`. */
function writeInteger(bytes: Uint8Array, end: number, value: number): void {
  let offset = end;
  let rest = value;
  do {
    const tenth = Math.floor(rest / 10);
    bytes[--offset] = 48 + (rest - 10 * tenth);
    rest = tenth;
  } while (rest > 0);
}
