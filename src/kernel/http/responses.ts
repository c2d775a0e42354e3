import type { ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createGzip, gzip } from 'node:zlib';
import type { MatrixError } from '../../protocol/index.ts';
import type { TimeSlices } from '../time-slices.ts';
import { hasManyEntries, jsonInSlices } from './json-text.ts';
import { LongText } from './long-text.ts';
import { FilePart } from './open-file.ts';
import { Reply } from './routing/route.ts';

const compress = promisify(gzip);

/** The headers of a compressed response, in the form that `writeHead` takes. */
const gzipHeaders = ['Content-Encoding', 'gzip', 'Vary', 'Accept-Encoding'];

/** Minimum bytes of a body that is compressed: gzip saves nothing on smaller bodies. */
const minCompressedBytes = 1024;

/**
 * CORS headers of every response (client-server API, "Web Browser Clients"), in the form that `writeHead`
 * takes.
 */
const corsHeaders = [
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Allow-Methods',
  'GET, HEAD, POST, PUT, DELETE, OPTIONS',
  'Access-Control-Allow-Headers',
  'X-Requested-With, Content-Type, Authorization, Date, If-Match, If-None-Match',
];

/**
 * Sends the result of a handler: a value as JSON with status 200, or a `Reply`.
 * @param allowGzip whether the body is compressed if it is a text that is large enough, or a stream of JSON
 * @param slices pauses while a long value is written as JSON
 */
export function sendResult(
  response: ServerResponse,
  result: unknown,
  allowGzip: boolean,
  slices: TimeSlices,
): void | Promise<void> {
  if (result instanceof Reply) return sendReply(response, result, allowGzip, slices);
  return sendJson(response, new Reply(200, (result ?? {}) as object), allowGzip, slices);
}

/** Closes the file or the stream of a result that is not sent. */
export function discardResult(result: unknown): void {
  if (!(result instanceof Reply)) return;
  const { body } = result;
  if (body instanceof FilePart) body.file.close();
  else if (body instanceof Readable) body.destroy();
}

/** Sends an error. If the response has begun already, it is cut off instead. */
export function sendError(response: ServerResponse, error: MatrixError): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  sendText(response, error.status, error.headers, JSON.stringify(error), false);
}

function sendReply(
  response: ServerResponse,
  reply: Reply,
  allowGzip: boolean,
  slices: TimeSlices,
): void | Promise<void> {
  const { status, body, headers } = reply;
  if (body === undefined) {
    const head = [...corsHeaders];
    for (const name in headers) addHeader(head, name, headers[name]!);
    if (status !== 204 && status !== 304) head.push('Content-Length', '0');
    response.writeHead(status, head).end();
    return;
  }
  if (typeof body === 'string') return sendText(response, status, headers, body, allowGzip);
  if (body instanceof Uint8Array || body instanceof LongText)
    return sendText(response, status, headers, body, allowGzip);
  if (body instanceof FilePart || isStream(body)) {
    const compresses = allowGzip && !(body instanceof FilePart) && isJson(headers);
    writeStreamedHead(response, reply, compresses ? gzipHeaders : []);
    return body instanceof FilePart
      ? body.file.send(response, body.start, body.length)
      : sendStream(response, body, compresses);
  }
  return sendJson(response, reply, allowGzip, slices);
}

function sendJson(
  response: ServerResponse,
  { status, headers, body }: Reply,
  allowGzip: boolean,
  slices: TimeSlices,
): void | Promise<void> {
  if (!hasManyEntries(body)) return sendText(response, status, headers, JSON.stringify(body), allowGzip);
  return jsonInSlices(body, slices).then((text) => {
    if (!response.destroyed) return sendText(response, status, headers, text, allowGzip);
  });
}

type Headers = Reply['headers'];

function sendText(
  response: ServerResponse,
  status: number,
  headers: Headers | undefined,
  body: string | Uint8Array | LongText,
  allowGzip: boolean,
): void | Promise<void> {
  if (allowGzip && body.length >= minCompressedBytes) return sendCompressed(response, status, headers, body);
  finish(response, status, headers, body, false);
}

async function sendCompressed(
  response: ServerResponse,
  status: number,
  headers: Headers | undefined,
  body: string | Uint8Array | LongText,
): Promise<void> {
  const bytes = body instanceof LongText ? Buffer.concat(body.chunks) : body;
  finish(response, status, headers, await compress(bytes), true);
}

function finish(
  response: ServerResponse,
  status: number,
  headers: Headers | undefined,
  body: string | Uint8Array | LongText,
  isCompressed: boolean,
): void {
  const isLong = body instanceof LongText;
  const length = isLong ? body.length : Buffer.byteLength(body);
  const head = [...corsHeaders, 'Content-Length', String(length)];
  if (isCompressed) head.push(...gzipHeaders);
  if (isLong) {
    response.writeHead(status, withDefaults(head, headers));
    for (const chunk of body.chunks) response.write(chunk);
    response.end();
    return;
  }
  // A body with as many bytes as characters is ASCII, which Node writes faster as latin1.
  response
    .writeHead(status, withDefaults(head, headers))
    .end(body, body.length === length ? 'latin1' : 'utf8');
}

/** Adds the headers of a reply to a head, and defaults for the content type and the caching. */
function withDefaults(head: string[], headers: Headers | undefined): string[] {
  let [hasContentType, hasCacheControl] = [false, false];
  for (const name in headers) {
    const lower = name.toLowerCase();
    hasContentType ||= lower === 'content-type';
    hasCacheControl ||= lower === 'cache-control';
    // CORS hides all but a few headers from scripts unless they are exposed.
    if (lower === 'retry-after') head.push('Access-Control-Expose-Headers', 'Retry-After');
    addHeader(head, name, headers[name]!);
  }
  if (!hasContentType) head.push('Content-Type', 'application/json');
  // A response of the API is valid for this requester at this moment only, so no cache may store it.
  if (!hasContentType && !hasCacheControl) head.push('Cache-Control', 'no-store');
  return head;
}

/** Adds a header to a flat list of names and values, as `writeHead` takes it. */
function addHeader(head: string[], name: string, value: string | readonly string[]): void {
  if (typeof value === 'string') head.push(name, value);
  else for (const each of value) head.push(name, each);
}

/** Writes the head of a response whose body is a file or a stream. Closes the body when a header is not valid. */
function writeStreamedHead(response: ServerResponse, reply: Reply, further: readonly string[]): void {
  const { status, headers } = reply;
  const head = [...corsHeaders, ...further];
  for (const name in headers) addHeader(head, name, headers[name]!);
  try {
    response.writeHead(status, head);
  } catch (error) {
    discardResult(reply);
    throw error;
  }
}

/** Resolves when everything is sent or the client has disconnected; rejects when the stream fails. */
function sendStream(
  response: ServerResponse,
  body: NodeJS.ReadableStream,
  compresses: boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const streams = compresses ? [body, createGzip(), response] : [body, response];
    pipeline(streams, (error) => {
      if (error && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') reject(error);
      else resolve();
    });
  });
}

/** Whether headers say that a body is JSON. */
const isJson = (headers: Headers): boolean =>
  Object.entries(headers).some(
    ([name, value]) => name.toLowerCase() === 'content-type' && value === 'application/json',
  );

const isStream = (body: object): body is NodeJS.ReadableStream =>
  typeof (body as NodeJS.ReadableStream).pipe === 'function';
