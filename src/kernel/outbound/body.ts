import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';
import { createGunzip, createInflate } from 'node:zlib';
import { OutboundError, toOutboundError } from './errors.ts';

/** What `Accept-Encoding` offers. */
export const acceptedEncodings = 'gzip, deflate';

/**
 * The body of a response, unpacked, with at most `limit` bytes: whoever sends more, packed or not, gets no further
 * than that. Errors of the stream are `OutboundError`s.
 * @throws OutboundError `protocol` when it is packed in another way than was offered, or more than once
 */
export function decodeBody(body: Readable, encoding: string | undefined, limit: number): Readable {
  const unpack = unpacker(encoding);
  const bounded = new BoundedBody(limit);
  const ignore = () => undefined;
  // Whoever does not listen any more when it fails must not bring the process down.
  bounded.on('error', ignore);
  if (unpack === undefined) pipeline(body, bounded, ignore);
  else pipeline(body, unpack, bounded, ignore);
  return bounded;
}

function unpacker(encoding = 'identity'): Transform | undefined {
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
      throw new OutboundError('protocol', 'The answer is packed in a way that was not offered');
  }
}

/** The whole of a body. */
export async function readAll(body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of body) chunks.push(chunk as Buffer);
  } catch (error) {
    throw toOutboundError(error);
  }
  return Buffer.concat(chunks);
}

class BoundedBody extends Transform {
  #left: number;

  constructor(limit: number) {
    super();
    this.#left = limit;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#left -= chunk.length;
    if (this.#left < 0) done(new OutboundError('too-large', 'The answer is larger than is accepted'));
    else done(null, chunk);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    done(error && toOutboundError(error));
  }
}
