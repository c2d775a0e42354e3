import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';
import { createGunzip, createInflate } from 'node:zlib';
import { ChunkCount } from '../chunk-count.ts';
import { OutboundError, toOutboundError } from './errors.ts';

/** The `Accept-Encoding` of requests. */
export const acceptedEncodings = 'gzip, deflate';

/**
 * Decompresses a response body and limits its content to `limit` bytes. A body with more content, a compressed body
 * that is longer than such content can be, or a body in too many chunks fails with `too-large`. Errors of the stream
 * are `OutboundError`s.
 * @throws OutboundError `protocol` when the encoding was not offered, or is applied more than once
 */
export function decodeBody(body: Readable, encoding: string | undefined, limit: number): Readable {
  const decompress = decompressor(encoding);
  const bounded = new BoundedBody(limit);
  const ignore = () => undefined;
  // The stream may fail without a listener: avoid an unhandled 'error' event.
  bounded.on('error', ignore);
  if (decompress === undefined) pipeline(body, bounded, ignore);
  else pipeline(body, new BoundedBody(limit + maxOverhead(limit)), decompress, bounded, ignore);
  return bounded;
}

/** Returns by how many bytes at most a compressed body is longer than its content of `limit` bytes. */
const maxOverhead = (limit: number) => 1_024 + limit / 1_000;

function decompressor(encoding = 'identity'): Transform | undefined {
  switch (encoding.trim().toLowerCase()) {
    case '':
    case 'identity':
      return undefined;
    case 'gzip':
    case 'x-gzip':
      return createGunzip();
    case 'deflate':
      return createInflate();
    default:
      throw new OutboundError('protocol', 'The response has an encoding that was not offered');
  }
}

/**
 * Reads a whole body.
 * @param inspect called with each chunk when it arrives; the rest is not read when it throws an OutboundError
 * @throws OutboundError
 */
export async function readAll(body: Readable, inspect?: (chunk: Buffer) => void): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of body) {
      inspect?.(chunk as Buffer);
      chunks.push(chunk as Buffer);
    }
  } catch (error) {
    throw toOutboundError(error);
  }
  return Buffer.concat(chunks);
}

class BoundedBody extends Transform {
  readonly #count = new ChunkCount();
  #left: number;

  constructor(limit: number) {
    super();
    this.#left = limit;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#left -= chunk.length;
    if (this.#count.exceedsWith(chunk))
      done(new OutboundError('too-large', 'The response arrives in too many small chunks'));
    else if (this.#left < 0) done(new OutboundError('too-large', 'The response is larger than the limit'));
    else done(null, chunk);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    done(error && toOutboundError(error));
  }
}
