import type { Clock } from '../../kernel/clock.ts';
import type { OutboundResponse } from '../../kernel/outbound/index.ts';
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJson,
  parseJsonObject,
} from '../../protocol/index.ts';
import { MalformedResponse, RemoteError } from './errors.ts';
import { parseLargeJson } from './large-json.ts';

/**
 * Deeper than any event may be, so that one event that is too deep does not invalidate the others: see
 * `parseJson`.
 */
const maxDepth = 2_000;

/** Bytes from which on a response is parsed in slices. */
const largeResponse = 512 * 1024;

/**
 * Parses a successful response. Numbers keep their written form, since it may contain events. Large responses
 * do not block the event loop.
 * @throws RemoteError when the status is not 2xx
 * @throws MalformedResponse when the body is not a JSON object, or its content type is not JSON
 */
export async function readResponse(
  destination: string,
  response: OutboundResponse,
  clock: Clock,
): Promise<JsonObject> {
  const answer =
    response.body.length < largeResponse
      ? readJson(destination, response)
      : await readLarge(destination, response, clock);
  if (!isJsonObject(answer)) throw new MalformedResponse(destination, 'the body is not a JSON object');
  return answer;
}

/**
 * Parses a response of old endpoints, `[200, {...}]`, and returns the object. Otherwise like `readResponse`.
 * Source: server-server API, `PUT /_matrix/federation/v1/send_join`.
 */
export function readPairResponse(destination: string, response: OutboundResponse): JsonObject {
  const answer = readJson(destination, response);
  const [status, object] = Array.isArray(answer) ? (answer as readonly JsonValue[]) : [];
  if (status !== 200 || !isJsonObject(object)) {
    throw new MalformedResponse(destination, 'the body is not a pair of 200 and an object');
  }
  return object;
}

const options = { numbers: 'as written', maxDepth } as const;

function readJson(destination: string, response: OutboundResponse): JsonValue {
  checkIsJson(destination, response);
  try {
    return parseJson(response.body, options);
  } catch (cause) {
    throw new MalformedResponse(destination, 'the body is not JSON', { cause });
  }
}

async function readLarge(destination: string, response: OutboundResponse, clock: Clock): Promise<JsonValue> {
  checkIsJson(destination, response);
  try {
    return await parseLargeJson(response.body, options, clock);
  } catch (cause) {
    throw new MalformedResponse(destination, 'the body is not JSON', { cause });
  }
}

function checkIsJson(destination: string, response: OutboundResponse): void {
  const { status } = response;
  if (status < 200 || status >= 300) throw remoteError(destination, response);
  if (!isJson(response)) throw new MalformedResponse(destination, 'the content type is not JSON');
}

function isJson({ headers }: Pick<OutboundResponse, 'headers'>): boolean {
  const [type = ''] = String(headers['content-type'] ?? '').split(';');
  return type.trim().toLowerCase() === 'application/json';
}

/** Returns the error of an error response. */
export function remoteError(destination: string, { status, headers, body }: OutboundResponse): RemoteError {
  const content = jsonIn(body);
  return new RemoteError(destination, status, content, retryAfter(content, headers['retry-after']));
}

function jsonIn(body: Buffer): JsonObject {
  try {
    return parseJsonObject(body);
  } catch {
    return {};
  }
}

/** Returns the milliseconds until a retry, from the body or from the header (in seconds). */
function retryAfter({ retry_after_ms: given }: JsonObject, header: unknown): number | undefined {
  if (typeof given === 'number' && given >= 0) return given;
  return typeof header === 'string' && /^\d{1,9}$/.test(header) ? Number(header) * 1000 : undefined;
}
