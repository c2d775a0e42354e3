import type { TimeSlices } from '../time-slices.ts';
import { type LongText, TextBuilder } from './long-text.ts';

/** Minimum number of elements or members of a value that is written in slices. */
const minEntries = 32;

/** Number of levels of lists and objects that are searched for long lists and objects. */
const maxDepth = 6;

/**
 * Number of levels that are searched inside each entry of a long value. These levels include a room's state, a long
 * list, but not the lists in the content of its events.
 */
const maxDepthOfEntries = 2;

/** Characters that are written between two checks of the clock. */
const charactersPerCheck = 16_384;

/** Characters for which each entry counts beside its text, so that the clock is also checked after many short entries. */
const charactersPerEntry = 50;

type Container = readonly unknown[] | Readonly<Record<string, unknown>>;

/** Whether a value has a list or an object with many entries, so that writing it as JSON may take long. */
export function hasManyEntries(value: unknown, depth = maxDepth): boolean {
  if (depth === 0 || !isContainer(value)) return false;
  if (Array.isArray(value)) {
    if (value.length >= minEntries) return true;
    return value.some((element) => hasManyEntries(element, depth - 1));
  }
  let count = 0;
  for (const name in value) {
    // At the innermost levels, only lists count: the content of an event may have many members, but few bytes.
    const isLong = ++count >= minEntries && depth > maxDepthOfEntries;
    if (isLong || hasManyEntries(value[name as keyof typeof value], depth - 1)) return true;
  }
  return false;
}

/**
 * Returns a value as JSON text, like `JSON.stringify`, and pauses after each time slice.
 * @param value not `undefined`
 */
export async function jsonInSlices(value: unknown, slices: TimeSlices): Promise<string | LongText> {
  const writer = new JsonWriter(slices);
  await writer.write(value, maxDepth);
  return writer.text.finish();
}

class JsonWriter {
  readonly text = new TextBuilder();
  readonly #slices: TimeSlices;
  #charactersSinceCheck = 0;

  constructor(slices: TimeSlices) {
    this.#slices = slices;
  }

  async write(value: unknown, depth: number): Promise<void> {
    if (!hasManyEntries(value, depth)) return this.#add(JSON.stringify(value) ?? 'null');
    const isList = Array.isArray(value);
    const names = isList ? [...value.keys()] : Object.keys(value as Container);
    const depthOfEntries = names.length >= minEntries ? Math.min(depth - 1, maxDepthOfEntries) : depth - 1;
    let start = isList ? '[' : '{';
    for (const name of names) {
      const entry = (value as Readonly<Record<string | number, unknown>>)[name];
      if (!isList && isLeftOut(entry)) continue;
      this.#add(isList ? start : `${start}${JSON.stringify(name)}:`);
      start = ',';
      if (hasManyEntries(entry, depthOfEntries)) await this.write(entry, depthOfEntries);
      else this.#add(JSON.stringify(entry) ?? 'null');
      const pause = this.#pauseIfDue();
      if (pause) await pause;
    }
    const isEmpty = start !== ',';
    this.#add(isList ? (isEmpty ? '[]' : ']') : isEmpty ? '{}' : '}');
  }

  #add(text: string): void {
    this.text.add(text);
    this.#charactersSinceCheck += text.length + charactersPerEntry;
  }

  #pauseIfDue(): Promise<void> | undefined {
    if (this.#charactersSinceCheck < charactersPerCheck) return undefined;
    this.#charactersSinceCheck = 0;
    return this.#slices.pauseIfDue();
  }
}

/** Whether `JSON.stringify` leaves out a member with this value. */
const isLeftOut = (value: unknown) =>
  value === undefined || typeof value === 'function' || typeof value === 'symbol';

/** Whether a value is a list or a plain object, which is written entry by entry. */
function isContainer(value: unknown): value is Container {
  if (typeof value !== 'object' || value === null || 'toJSON' in value) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
