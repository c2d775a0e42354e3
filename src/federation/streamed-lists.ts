import { Readable } from 'node:stream';
import { Reply } from '../kernel/http/index.ts';

/** Chunks of serialized list items, by the name of the list. */
export type JsonLists = Readonly<Record<string, AsyncIterable<readonly string[]>>>;

/** Text around the object, and fields before the lists. */
export interface StreamedListsOptions {
  /** Text before and after the object. */
  readonly around?: readonly [before: string, after: string];
  /** Further fields as serialized JSON. */
  readonly fields?: Readonly<Record<string, string>>;
}

/**
 * Streams a JSON object with lists, for example of events. Sends the items as they are read, so that the state of a
 * large room is never in memory as a whole.
 * @param lists at least one
 */
export function streamedLists(lists: JsonLists, options: StreamedListsOptions = {}): Reply {
  return new Reply(200, Readable.from(jsonPieces(lists, options), { objectMode: false }), {
    'content-type': 'application/json',
  });
}

async function* jsonPieces(
  lists: JsonLists,
  { around: [before, after] = ['', ''], fields = {} }: StreamedListsOptions,
): AsyncGenerator<string> {
  const leadingFields = Object.entries(fields).map(([name, json]) => `${JSON.stringify(name)}:${json},`);
  let start = `${before}{${leadingFields.join('')}`;
  for (const [name, pieces] of Object.entries(lists)) {
    yield `${start}${JSON.stringify(name)}:[`;
    let separator = '';
    for await (const texts of pieces) {
      if (texts.length === 0) continue;
      yield separator + texts.join();
      separator = ',';
    }
    start = '],';
  }
  yield `]}${after}`;
}
