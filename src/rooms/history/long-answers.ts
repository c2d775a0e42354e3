import { Readable } from 'node:stream';
import { type LongText, TextBuilder } from '../../kernel/http/index.ts';

/** A text, or a stream for a text that is too long to be held in memory. */
export type TextOrStream = string | LongText | Readable;

/** Characters of a text above which it is streamed. */
const maxCharacters = 4_194_304;

/**
 * Joins pieces to a text. If the text is long, only its beginning is made before this function returns; the other
 * pieces are made while the client receives the text.
 * @throws the error that making one of the first pieces throws; an error in a later piece ends the stream
 */
export async function textOrStream(pieces: AsyncGenerator<string>): Promise<TextOrStream> {
  const beginning: string[] = [];
  let characters = 0;
  for (let next = await pieces.next(); !next.done; next = await pieces.next()) {
    beginning.push(next.value);
    characters += next.value.length;
    if (characters > maxCharacters) return Readable.from(allPieces(beginning, pieces), { objectMode: false });
  }
  const text = new TextBuilder();
  for (const piece of beginning) text.add(piece);
  return text.finish();
}

/** Yields the pieces of the beginning, then the other pieces. */
async function* allPieces(beginning: string[], pieces: AsyncGenerator<string>): AsyncGenerator<string> {
  try {
    for (let piece = beginning.shift(); piece !== undefined; piece = beginning.shift()) yield piece;
    yield* pieces;
  } finally {
    // Ends the generator when the client disconnects.
    await pieces.return(undefined);
  }
}
