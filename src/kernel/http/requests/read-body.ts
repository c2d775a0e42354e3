import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { badJson, MatrixError, tooLarge } from '../../../protocol/index.ts';
import { ChunkCount } from '../../chunk-count.ts';

/** Whether the request can have a body. */
export function hasBody(request: IncomingMessage): boolean {
  const { headers } = request;
  const length = headers['content-length'];
  return (length !== undefined && length !== '0') || headers['transfer-encoding'] !== undefined;
}

/**
 * Reads the whole body.
 * @param limit in bytes
 * @param examine is called with each chunk of the body as it arrives; when it throws, all further chunks are
 * discarded
 * @throws MatrixError M_TOO_LARGE, also for a body of too many chunks; M_BAD_JSON when the client disconnects before
 * the end; the errors of `examine`
 */
export function readBody(
  request: IncomingMessage,
  limit: number,
  examine?: (chunk: Buffer) => void,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (declaredLength(request) > limit) return reject(bodyTooLarge(limit));
    // A request whose client has disconnected emits no further event.
    if (request.destroyed) return reject(endedTooEarly());
    const chunks: Buffer[] = [];
    const count = new ChunkCount();
    let length = 0;
    let isRefused = false;
    const refuse = (error: unknown) => {
      isRefused = true;
      chunks.length = 0;
      reject(error);
    };
    request.on('data', (chunk: Buffer) => {
      if (count.exceedsWith(chunk)) {
        stopReceiving(request, isRefused);
        return refuse(tooManyChunks());
      }
      if (isRefused) return;
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
    request.on('error', () => reject(endedTooEarly()));
  });
}

/**
 * Returns the body as a stream that fails with M_TOO_LARGE beyond `limit` bytes, and for a body of too many chunks;
 * with M_BAD_JSON when the client has disconnected before, and with the error of the request when it disconnects later.
 * After it is destroyed, the rest of the body is read and discarded, so that the client can read the response.
 * @throws MatrixError M_TOO_LARGE when `Content-Length` is above `limit`
 */
export function limitBody(request: IncomingMessage, limit: number): Readable {
  if (declaredLength(request) > limit) throw bodyTooLarge(limit);
  const count = new ChunkCount();
  let length = 0;
  let isStopped = false;
  const bounded = new Readable({ read: () => void request.resume() });
  request.on('data', (chunk: Buffer) => {
    if (count.exceedsWith(chunk)) {
      isStopped = true;
      stopReceiving(request, bounded.destroyed);
      bounded.destroy(tooManyChunks());
    }
    if (bounded.destroyed) return;
    length += chunk.length;
    if (length > limit) bounded.destroy(bodyTooLarge(limit));
    else if (!bounded.push(chunk)) request.pause();
  });
  if (request.destroyed) bounded.destroy(endedTooEarly());
  request.once('end', () => bounded.push(null));
  request.on('error', (error) => bounded.destroy(error));
  // The stream may fail before a reader attaches: avoids an unhandled 'error' event.
  bounded.on('error', () => undefined);
  bounded.once('close', () => {
    if (!isStopped) request.resume();
  });
  return bounded;
}

/**
 * Receives no more of a body that arrives in too many chunks: the connection closes after the response.
 * @param isRefused whether the body was refused before, so that the connection is closed at once
 */
function stopReceiving(request: IncomingMessage, isRefused: boolean): void {
  if (isRefused) request.destroy();
  else request.pause();
}

/** Returns the bytes of the body according to `Content-Length`; 0 without the header. */
export const declaredLength = (request: IncomingMessage) => Number(request.headers['content-length'] ?? 0);

const bodyTooLarge = (limit: number) => tooLarge(`The body is larger than ${limit} bytes`);

const endedTooEarly = () => badJson('The body ended too early');

const tooManyChunks = () =>
  new MatrixError(
    413,
    'M_TOO_LARGE',
    'The body arrives in too many small chunks',
    {},
    { Connection: 'close' },
  );
