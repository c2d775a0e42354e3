import type { OutboundResponse } from '../../kernel/outbound/index.ts';
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJson,
  parseJsonObject,
} from '../../protocol/index.ts';
import { MalformedAnswer, RemoteError } from './errors.ts';

/** Deeper than any event may be, so that one which is too deep does not hide the others: see `parseJson`. */
const maxDepth = 2_000;

/**
 * The JSON of a successful answer; numbers as they are written, for events may be in it.
 * @throws RemoteError when the status is none of success
 * @throws MalformedAnswer when the body is no JSON object, or is not said to be JSON
 */
export function readAnswer(destination: string, response: OutboundResponse): JsonObject {
  const answer = readJson(destination, response);
  if (!isJsonObject(answer)) throw new MalformedAnswer(destination, 'it is no JSON object');
  return answer;
}

/**
 * The object in an answer of the kind that old endpoints give: `[200, {...}]`. As `readAnswer` otherwise.
 * Source: server-server API, `PUT /_matrix/federation/v1/send_join`.
 */
export function readPairAnswer(destination: string, response: OutboundResponse): JsonObject {
  const answer = readJson(destination, response);
  const [status, object] = Array.isArray(answer) ? (answer as readonly JsonValue[]) : [];
  if (status !== 200 || !isJsonObject(object)) {
    throw new MalformedAnswer(destination, 'it is no pair of 200 and an object');
  }
  return object;
}

function readJson(destination: string, response: OutboundResponse): JsonValue {
  const { status, body } = response;
  if (status < 200 || status >= 300) throw remoteError(destination, response);
  if (!isJson(response)) throw new MalformedAnswer(destination, 'it is not said to be JSON');
  try {
    return parseJson(body, { numbers: 'as written', maxDepth });
  } catch (cause) {
    throw new MalformedAnswer(destination, 'it is no JSON', { cause });
  }
}

function isJson({ headers }: Pick<OutboundResponse, 'headers'>): boolean {
  const [type = ''] = String(headers['content-type'] ?? '').split(';');
  return type.trim().toLowerCase() === 'application/json';
}

/** The error that an answer stands for. */
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

/** Milliseconds, from the body or, in seconds, the header. */
function retryAfter({ retry_after_ms: given }: JsonObject, header: unknown): number | undefined {
  if (typeof given === 'number' && given >= 0) return given;
  return typeof header === 'string' && /^\d{1,9}$/.test(header) ? Number(header) * 1000 : undefined;
}
