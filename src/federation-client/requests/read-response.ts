import type { Clock } from '../../kernel/clock.ts';
import { parseInSlices } from '../../kernel/json/index.ts';
import type { OutboundResponse, ResponseBudget } from '../../kernel/outbound/index.ts';
import { TimeSlices } from '../../kernel/time-slices.ts';
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  MatrixError,
  parseJson,
  parseJsonObject,
} from '../../protocol/index.ts';
import { MalformedResponse, RemoteError } from './errors.ts';
import type { ResponseMeasure } from './response-measure.ts';

/**
 * Maximum nesting depth of a response. It is greater than the maximum depth of an event: if one event of a response is
 * too deep, only that event is invalid. See `ParseOptions.maxDepth`.
 */
const maxDepth = 2_000;

/** Maximum bytes of a response that is parsed in one go, which takes some milliseconds. */
const maxBytesAtOnce = 256 * 1024;

/** Maximum number of values in a response that is parsed in one go. */
const maxValuesAtOnce = 15_000;

/** Maximum bytes of the body of an error. */
const maxErrorBytes = 64 * 1024;

export interface ReadResponseOptions {
  readonly clock: Clock;
  /** The measure to which all bytes of the body were added. */
  readonly measure: ResponseMeasure;
  /** Limits the total cost of the responses that one request of a client causes. */
  readonly budget: ResponseBudget | undefined;
}

/**
 * Parses a successful response. Numbers keep their written form, because the response may contain events. Large
 * responses are parsed in slices.
 * @throws RemoteError when the status is not 2xx
 * @throws MalformedResponse when the body is not a JSON object or is nested too deep, or when its content type is not
 * JSON
 * @throws MatrixError 429 M_LIMIT_EXCEEDED when the response exceeds the budget
 */
export async function readResponse(
  destination: string,
  response: OutboundResponse,
  options: ReadResponseOptions,
): Promise<JsonObject> {
  const answer = await readJson(destination, response, options);
  if (!isJsonObject(answer)) throw new MalformedResponse(destination, 'the body is not a JSON object');
  return answer;
}

/**
 * Parses a response of old endpoints, `[200, {...}]`, and returns the object. Otherwise like `readResponse`.
 * Source: server-server API, `PUT /_matrix/federation/v1/send_join`.
 */
export async function readPairResponse(
  destination: string,
  response: OutboundResponse,
  options: ReadResponseOptions,
): Promise<JsonObject> {
  const answer = await readJson(destination, response, options);
  const [status, object] = Array.isArray(answer) ? (answer as readonly JsonValue[]) : [];
  if (status !== 200 || !isJsonObject(object)) {
    throw new MalformedResponse(destination, 'the body is not a pair of 200 and an object');
  }
  return object;
}

const parseOptions = { numbers: 'as written', maxDepth } as const;

async function readJson(
  destination: string,
  response: OutboundResponse,
  { clock, measure, budget }: ReadResponseOptions,
): Promise<JsonValue> {
  checkIsJson(destination, response);
  const { body } = response;
  const { values = 0 } = measure;
  budget?.spendBytes(body.length);
  budget?.spendValues(values);
  try {
    const isShort = body.length <= maxBytesAtOnce && values <= maxValuesAtOnce;
    return isShort
      ? parse(body)
      : await parseInSlices(body, { parse, maxDepth, slices: new TimeSlices(clock) });
  } catch (cause) {
    if (!(cause instanceof MatrixError)) throw cause;
    throw new MalformedResponse(destination, 'the body is not JSON, or is nested too deep', { cause });
  }
}

const parse = (text: Buffer) => parseJson(text, parseOptions);

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
  if (body.length > maxErrorBytes) return {};
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
