import { Readable } from 'node:stream';

/**
 * Returns a stream of the pieces that a generator makes from a source. Destroying the stream also destroys the source,
 * even before the first read, when the generator has not begun to run, and even while the generator waits for the
 * source.
 */
export function streamOfPieces(pieces: AsyncGenerator<Uint8Array>, source: Readable): Readable {
  const stream = Readable.from(pieces, { objectMode: false });
  const destroy = stream._destroy;
  stream._destroy = (error, callback) => {
    source.destroy();
    destroy.call(stream, error, callback);
  };
  // The generator receives errors of the source when it reads. An error before the first read must not end
  // the process.
  source.on('error', () => undefined);
  return stream;
}
