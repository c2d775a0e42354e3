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

/** Deeper than any event may be, so that one which is too deep does not hide the others: see `parseJson`. */
const maxDepth = 2_000;

/** Bytes of an answer that is parsed in slices. */
const largeResponse = 512 * 1024;

/**
 * The JSON of a successful answer; numbers as they are written, for events may be in it. Large ones do not stop
 * everything else.
 * @throws RemoteError when the status is none of success
 * @throws MalformedResponse when the body is no JSON object, or is not said to be JSON
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
  if (!isJsonObject(answer)) throw new MalformedResponse(destination, 'it is no JSON object');
  return answer;
}

/**
 * The object in an answer of the kind that old endpoints give: `[200, {...}]`. As `readAnswer` otherwise.
 * Source: server-server API, `PUT /_matrix/federation/v1/send_join`.
 */
export function readPairResponse(destination: string, response: OutboundResponse): JsonObject {
  const answer = readJson(destination, response);
  const [status, object] = Array.isArray(answer) ? (answer as readonly JsonValue[]) : [];
  if (status !== 200 || !isJsonObject(object)) {
    throw new MalformedResponse(destination, 'it is no pair of 200 and an object');
  }
  return object;
}

const options = { numbers: 'as written', maxDepth } as const;

function readJson(destination: string, response: OutboundResponse): JsonValue {
  checkIsJson(destination, response);
  try {
    return parseJson(response.body, options);
  } catch (cause) {
    throw new MalformedResponse(destination, 'it is no JSON', { cause });
  }
}

async function readLarge(destination: string, response: OutboundResponse, clock: Clock): Promise<JsonValue> {
  checkIsJson(destination, response);
  try {
    return await parseLargeJson(response.body, options, clock);
  } catch (cause) {
    throw new MalformedResponse(destination, 'it is no JSON', { cause });
  }
}

function checkIsJson(destination: string, response: OutboundResponse): void {
  const { status } = response;
  if (status < 200 || status >= 300) throw remoteError(destination, response);
  if (!isJson(response)) throw new MalformedResponse(destination, 'it is not said to be JSON');
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
