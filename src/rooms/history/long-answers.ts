import { Readable } from 'node:stream';
import { type LongText, TextBuilder } from '../../kernel/http/index.ts';

/** A text, or a stream of a text that is too long for the memory. */
export type TextOrStream = string | LongText | Readable;

/** Characters of a text above which it is streamed. */
const maxCharacters = 4_194_304;

/**
 * Returns the text of some pieces. Of a long text, only the beginning is made at once, and the other pieces while the
 * client receives it.
 * @throws what makes one of the first pieces throws; after that, the stream fails
 */
export async function textOrStream(pieces: AsyncGenerator<string>): Promise<TextOrStream> {
  const beginning: string[] = [];
  let characters = 0;
  for (let next = await pieces.next(); !next.done; next = await pieces.next()) {
    beginning.push(next.value);
    characters += next.value.length;
    if (characters > maxCharacters)
      return Readable.from(afterwards(beginning, pieces), { objectMode: false });
  }
  const text = new TextBuilder();
  for (const piece of beginning) text.add(piece);
  return text.finish();
}

async function* afterwards(beginning: string[], pieces: AsyncGenerator<string>): AsyncGenerator<string> {
  try {
    for (let piece = beginning.shift(); piece !== undefined; piece = beginning.shift()) yield piece;
    yield* pieces;
  } finally {
    // Ends the generator when the client disconnects.
    await pieces.return(undefined);
  }
}
