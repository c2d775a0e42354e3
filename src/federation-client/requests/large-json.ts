import type { Clock } from '../../kernel/clock.ts';
import { TimeSlices } from '../../kernel/time-slices.ts';
import {
  endOfString,
  isJsonObject,
  type JsonValue,
  jsonQuote,
  notJson,
  type ParseOptions,
  parseJson,
} from '../../protocol/index.ts';

/** Bytes of list items that are parsed at once: some milliseconds of work. */
const chunkBytes = 128 * 1024;

const comma = 0x2c;
/** `[` is 0x5b and `{` is 0x7b, `]` is 0x5d and `}` is 0x7d: they differ in the bit 0x20 only. */
const [opening, closing, openingList] = [0x7b, 0x7d, 0x5b];

/**
 * Like `parseJson`, for objects with long lists, for example the state of a large room: parses list items in
 * slices, so that other work waits a few milliseconds at most.
 * @throws MatrixError like `parseJson`
 */
export async function parseLargeJson(bytes: Buffer, options: ParseOptions, clock: Clock): Promise<JsonValue> {
  const slices = new TimeSlices(clock);
  const { maxDepth } = options;
  const ofItems = maxDepth === undefined ? options : { ...options, maxDepth: maxDepth - 1 };
  /** The text with its lists (members of the outermost object) replaced by `[number of the list]`. */
  const rest: Buffer[] = [];
  const lists: JsonValue[][] = [];
  let [depth, copied, start] = [0, 0, -1];
  const take = (end: number, isLast: boolean) => {
    const list = lists.at(-1)!;
    const items = parseJson(Buffer.concat([openList, bytes.subarray(start, end), closeList]), ofItems);
    const isEmpty = (items as JsonValue[]).length === 0;
    if (isEmpty && !(isLast && list.length === 0)) throw notJson('Not JSON');
    for (const item of items as JsonValue[]) list.push(item);
  };
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte === jsonQuote) i = endOfString(bytes, i + 1);
    else if ((byte | 0x20) === opening) {
      depth++;
      if (depth !== 2 || byte !== openingList) continue;
      rest.push(bytes.subarray(copied, i + 1), Buffer.from(String(lists.length)));
      lists.push([]);
      start = i + 1;
    } else if ((byte | 0x20) === closing) {
      if (depth === 2 && start >= 0) {
        take(i, true);
        [start, copied] = [-1, i];
        await slices.pauseIfDue();
      }
      depth--;
    } else if (byte === comma && depth === 2 && start >= 0 && i - start >= chunkBytes) {
      take(i, false);
      start = i + 1;
      await slices.pauseIfDue();
    }
  }
  if (start >= 0) throw notJson('Not JSON');
  const value = parseJson(Buffer.concat([...rest, bytes.subarray(copied)]), options);
  if (!isJsonObject(value)) return parseJson(bytes, options);
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      Array.isArray(member) ? (lists[Number(member[0])] ?? []) : member!,
    ]),
  );
}

const [openList, closeList] = [Buffer.from('['), Buffer.from(']')];
