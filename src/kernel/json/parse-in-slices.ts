import { badJson, endOfString, type JsonValue, notJson, quoteByte } from '../../protocol/index.ts';
import type { TimeSlices } from '../time-slices.ts';

/** Default number of bytes that are parsed in one go: some milliseconds of work. */
const defaultPieceBytes = 64 * 1024;

/** Bytes that are scanned between two checks of the clock. */
const bytesPerCheck = 256 * 1024;

const comma = 0x2c;
const colon = 0x3a;

/** `{`, and also `[` (0x5b) once the bit 0x20 is set. */
const opening = 0x7b;

/** `}`, and also `]` (0x5d) once the bit 0x20 is set. */
const closing = 0x7d;

/** `[` as it is in the text. */
const openingList = 0x5b;

export interface ParseInSlicesOptions {
  /** Parses a part of the text: one object or array. @throws MatrixError */
  readonly parse: (piece: Buffer) => JsonValue;
  /** Maximum nesting of objects and arrays. */
  readonly maxDepth: number;
  readonly slices: TimeSlices;
  /** Number of bytes that are parsed in one go; by default 64 KiB. */
  readonly pieceBytes?: number | undefined;
}

/** An object or array that has not been closed. */
interface Frame {
  readonly isList: boolean;
  /** Index of the opening bracket. */
  readonly start: number;
  /** Index after the last byte that has been parsed. */
  from: number;
  /** Index of the last string at this level: the key of the member that follows. */
  lastString: number;
  /** Whether an item that was built from pieces is the last one so far: a comma or the end must follow. */
  isAfterItem: boolean;
  /** Whether a comma precedes `from`: an item must follow. */
  isAfterComma: boolean;
  /** The value so far; `undefined` while the text is short enough to be parsed together with the text around it. */
  value: JsonValue[] | Record<string, JsonValue> | undefined;
  /** The key of the member that is being built from pieces. */
  key: string;
}

/**
 * Parses a JSON text in pieces of some 64 KiB, so that other work of the event loop waits a few milliseconds at most. A
 * longer object or array is parsed in pieces that consist of some of its members, and put together (decision 0098). A
 * string is never divided, however long it is.
 * @returns the same as `parse(bytes)`
 * @throws MatrixError where `parse(bytes)` does; M_BAD_JSON beyond the maximum depth
 */
export async function parseInSlices(
  bytes: Buffer,
  { parse, maxDepth, slices, pieceBytes = defaultPieceBytes }: ParseInSlicesOptions,
): Promise<JsonValue> {
  const frames: Frame[] = [];
  let result: JsonValue | undefined;
  let checked = 0;
  const builder = new PieceBuilder(bytes, parse, frames);
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    const top = frames.at(-1);
    if (byte === quoteByte) {
      if (top) top.lastString = i;
      i = endOfString(bytes, i + 1);
    } else if ((byte | 0x20) === opening) {
      if (top?.isAfterItem || (!top && !isBlank(bytes, 0, i))) throw notJson('The content is not valid JSON');
      if (frames.length >= maxDepth) throw badJson('JSON is nested too deeply');
      frames.push(frameAt(i, byte === openingList));
    } else if ((byte | 0x20) === closing) {
      if (top === undefined || byte !== (top.isList ? 0x5d : 0x7d))
        throw notJson('The content is not valid JSON');
      if (top.value !== undefined) {
        builder.take(top, i, true);
        frames.pop();
        const parent = frames.at(-1);
        if (parent) builder.attach(parent, top.value, i);
        else result = top.value;
      } else {
        frames.pop();
        if (frames.length === 0) return parse(bytes);
      }
      if (result !== undefined) {
        if (!isBlank(bytes, i + 1, bytes.length)) throw notJson('The content is not valid JSON');
        return result;
      }
    } else if (byte === comma && top && (top.isAfterItem || i - top.from >= pieceBytes)) {
      builder.take(top, i, false);
    }
    if (i - checked >= bytesPerCheck || builder.hasParsed) {
      checked = i;
      builder.hasParsed = false;
      const pause = slices.pauseIfDue();
      if (pause) await pause;
    }
  }
  if (frames.length > 0) throw notJson('The content is not valid JSON');
  return parse(bytes);
}

class PieceBuilder {
  /** Set when pieces have been parsed. */
  hasParsed = false;
  readonly #bytes: Buffer;
  readonly #parse: ParseInSlicesOptions['parse'];
  readonly #frames: readonly Frame[];

  constructor(bytes: Buffer, parse: ParseInSlicesOptions['parse'], frames: readonly Frame[]) {
    this.#bytes = bytes;
    this.#parse = parse;
    this.#frames = frames;
  }

  /**
   * Parses the text after the parsed part of the innermost frame.
   * @param end index of a comma or of the closing bracket
   * @param isLast whether `end` is the closing bracket
   */
  take(frame: Frame, end: number, isLast: boolean): void {
    if (frame.value === undefined) this.#begin();
    if (frame.isAfterItem) {
      if (!isBlank(this.#bytes, frame.from, end)) throw notJson('The content is not valid JSON');
    } else {
      const isEmpty = this.#add(frame, frame.from, end) === 0;
      if (isEmpty && (!isLast || frame.isAfterComma)) throw notJson('The content is not valid JSON');
    }
    frame.from = end + 1;
    frame.isAfterItem = false;
    frame.isAfterComma = true;
  }

  /** Adds the value of the frame that was closed at `end` to the frame around it. */
  attach(parent: Frame, value: JsonValue, end: number): void {
    if (Array.isArray(parent.value)) parent.value.push(value);
    else setMember(parent.value!, parent.key, value);
    parent.from = end + 1;
    parent.isAfterItem = true;
    parent.isAfterComma = false;
  }

  /** Prepares the innermost frame, and each frame around it, for building its value from pieces. */
  #begin(): void {
    const first = this.#frames.findIndex(({ value }) => value === undefined);
    for (let index = first; index < this.#frames.length; index++) {
      const frame = this.#frames[index]!;
      frame.value = frame.isList ? [] : {};
      // Parses the members before the open member, and reads the key of the open member.
      const inner = this.#frames[index + 1];
      if (inner) this.#takeBefore(frame, inner.start);
    }
    const outer = this.#frames[first - 1];
    if (outer) this.#takeBefore(outer, this.#frames[first]!.start);
  }

  /** Parses the members of a frame before the member whose value begins at `start`, and the key of that member. */
  #takeBefore(frame: Frame, start: number): void {
    let end = start;
    if (!frame.isList) {
      end = Math.max(frame.lastString, frame.from);
      const member = this.#parsed(openObject, end, start, zeroMember) as Readonly<Record<string, JsonValue>>;
      const [key, ...others] = Object.keys(member);
      if (
        key === undefined ||
        others.length > 0 ||
        this.#bytes[lastNonSpace(this.#bytes, end, start)] !== colon
      ) {
        throw notJson('The content is not valid JSON');
      }
      frame.key = key;
    }
    const last = lastNonSpace(this.#bytes, frame.from, end);
    if (last < frame.from) return;
    if (this.#bytes[last] !== comma || this.#add(frame, frame.from, last) === 0)
      throw notJson('The content is not valid JSON');
  }

  /** Parses members and adds them to the value of a frame. @returns their number */
  #add(frame: Frame, from: number, end: number): number {
    const piece = frame.isList
      ? this.#parsed(openList, from, end, closeList)
      : this.#parsed(openObject, from, end, closeObject);
    if (Array.isArray(frame.value)) {
      for (const item of piece as JsonValue[]) frame.value.push(item);
      return (piece as JsonValue[]).length;
    }
    const members = piece as Readonly<Record<string, JsonValue>>;
    const keys = Object.keys(members);
    for (const key of keys) setMember(frame.value!, key, members[key]!);
    return keys.length;
  }

  #parsed(before: Buffer, from: number, end: number, after: Buffer): JsonValue {
    this.hasParsed = true;
    return this.#parse(Buffer.concat([before, this.#bytes.subarray(from, end), after]));
  }
}

function frameAt(start: number, isList: boolean): Frame {
  return {
    isList,
    start,
    from: start + 1,
    lastString: -1,
    isAfterItem: false,
    isAfterComma: false,
    value: undefined,
    key: '',
  };
}

/** Sets a member as `JSON.parse` does: `__proto__` is a name like any other. */
function setMember(object: Record<string, JsonValue>, key: string, value: JsonValue): void {
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

const isSpace = (byte: number) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

function isBlank(bytes: Buffer, from: number, end: number): boolean {
  return lastNonSpace(bytes, from, end) < from;
}

/** Returns the index of the last byte that is not white space; `from - 1` when there is none. */
function lastNonSpace(bytes: Buffer, from: number, end: number): number {
  let last = end - 1;
  while (last >= from && isSpace(bytes[last]!)) last--;
  return last;
}

const openList = Buffer.from('[');
const closeList = Buffer.from(']');
const openObject = Buffer.from('{');
const closeObject = Buffer.from('}');
/** The value 0 and the end of an object: completes a key and its colon, so that the key can be parsed. */
const zeroMember = Buffer.from('0}');
