import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { badJson, tooLarge } from '../../../protocol/index.ts';

/** Whether the request can have a body. */
export function hasBody(request: IncomingMessage): boolean {
  const { headers } = request;
  const length = headers['content-length'];
  return (length !== undefined && length !== '0') || headers['transfer-encoding'] !== undefined;
}

/**
 * Reads the whole body.
 * @param limit in bytes
 * @param examine is called with each part of the body as it arrives; when it throws, all further parts are
 * discarded
 * @throws MatrixError M_TOO_LARGE; M_BAD_JSON when the client disconnects before the end; the errors of
 * `examine`
 */
export function readBody(
  request: IncomingMessage,
  limit: number,
  examine?: (chunk: Buffer) => void,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (declaredLength(request) > limit) return reject(bodyTooLarge(limit));
    const chunks: Buffer[] = [];
    let length = 0;
    const refuse = (error: unknown) => {
      request.removeAllListeners('data');
      chunks.length = 0;
      reject(error);
    };
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > limit) return refuse(bodyTooLarge(limit));
      chunks.push(chunk);
      try {
        examine?.(chunk);
      } catch (error) {
        refuse(error);
      }
    });
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length)));
    request.on('error', () => reject(badJson('The body ended too early')));
  });
}

/**
 * Returns the body as a stream that fails with M_TOO_LARGE beyond `limit` bytes. After it is destroyed, the
 * rest of the body is read and discarded, so that the client can read the response.
 */
export function limitBody(request: IncomingMessage, limit: number): Readable {
  if (declaredLength(request) > limit) throw bodyTooLarge(limit);
  let length = 0;
  const bounded = new Readable({ read: () => void request.resume() });
  const take = (chunk: Buffer) => {
    length += chunk.length;
    if (length > limit) bounded.destroy(bodyTooLarge(limit));
    else if (!bounded.push(chunk)) request.pause();
  };
  request.on('data', take);
  request.once('end', () => bounded.push(null));
  request.on('error', (error) => bounded.destroy(error));
  // The stream may fail before a reader attaches: avoids an unhandled 'error' event.
  bounded.on('error', () => undefined);
  bounded.once('close', () => {
    request.off('data', take);
    request.resume();
  });
  return bounded;
}

/** Returns the bytes of the body according to `Content-Length`; 0 without the header. */
export const declaredLength = (request: IncomingMessage) => Number(request.headers['content-length'] ?? 0);

const bodyTooLarge = (limit: number) => tooLarge(`The body is larger than ${limit} bytes`);
