import { MiB } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { JsonScan, parseInSlices } from '../../kernel/json/index.ts';
import type { OutboundResponse } from '../../kernel/outbound/index.ts';
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
import type { FederationRequest } from './request.ts';

/**
 * Maximum nesting depth of a response. It is greater than the maximum depth of an event: if one event of a response is
 * too deep, only that event is invalid. See `parseJson`.
 */
const maxDepth = 2_000;

/** Maximum bytes of a response that is parsed at once, whatever it contains. */
const maxShortBytes = 64 * 1024;

/** Maximum bytes of a measured response that is parsed at once. Parsing it takes some milliseconds. */
const maxBytesAtOnce = 256 * 1024;

/** Maximum number of values in a measured response that is parsed at once. */
const maxValuesAtOnce = 15_000;

/** Bytes that are measured between two checks of the clock. */
const bytesPerScan = 256 * 1024;

/** Maximum bytes of the body of an error. */
const maxErrorBytes = 64 * 1024;

/**
 * Bounds of a response. The state of the largest rooms has some 3,000,000 values in 600,000 objects; a response of the
 * same size that consists of small values would take gigabytes in memory. Strings are parsed without a pause.
 */
const bounds = { values: 8_000_000, containers: 2_000_000, items: 500_000, stringBytes: 4 * MiB };

/** The bounds of one response. Without them, a response of up to `maxShortBytes` is not measured. */
export type ResponseLimits = Pick<FederationRequest, 'maxValues' | 'budget'>;

/**
 * Parses a successful response. Numbers keep their written form, because the response may contain events. Large
 * responses are measured first and do not block the event loop.
 * @throws RemoteError when the status is not 2xx
 * @throws MalformedResponse when the body is not a JSON object, when it has too many values, or when its content type
 * is not JSON
 * @throws MatrixError 429 M_LIMIT_EXCEEDED when the response exceeds the budget
 */
export async function readResponse(
  destination: string,
  response: OutboundResponse,
  clock: Clock,
  limits: ResponseLimits = {},
): Promise<JsonObject> {
  const answer = await readJson(destination, response, clock, limits);
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
  clock: Clock,
  limits: ResponseLimits = {},
): Promise<JsonObject> {
  const answer = await readJson(destination, response, clock, limits);
  const [status, object] = Array.isArray(answer) ? (answer as readonly JsonValue[]) : [];
  if (status !== 200 || !isJsonObject(object)) {
    throw new MalformedResponse(destination, 'the body is not a pair of 200 and an object');
  }
  return object;
}

const options = { numbers: 'as written', maxDepth } as const;

async function readJson(
  destination: string,
  response: OutboundResponse,
  clock: Clock,
  { maxValues, budget }: ResponseLimits,
): Promise<JsonValue> {
  checkIsJson(destination, response);
  const { body } = response;
  budget?.spendBytes(body.length);
  const slices = new TimeSlices(clock);
  try {
    if (body.length <= maxShortBytes && maxValues === undefined && !budget) return parse(body);
    const values = await countValues(body, maxValues, slices);
    budget?.spendValues(values);
    const isShort = body.length <= maxBytesAtOnce && values <= maxValuesAtOnce;
    return isShort ? parse(body) : await parseInSlices(body, { parse, maxDepth, slices });
  } catch (cause) {
    if (cause instanceof MatrixError && cause.errcode === 'M_LIMIT_EXCEEDED') throw cause;
    throw new MalformedResponse(destination, 'the body is not JSON, or has too many values', { cause });
  }
}

const parse = (text: Buffer) => parseJson(text, options);

/** @throws MatrixError M_TOO_LARGE when the body exceeds the bounds */
async function countValues(body: Buffer, maxValues = bounds.values, slices: TimeSlices): Promise<number> {
  const scan = new JsonScan({ ...bounds, values: maxValues });
  for (let start = 0; start < body.length; start += bytesPerScan) {
    scan.add(body.subarray(start, start + bytesPerScan));
    await slices.pauseIfDue();
  }
  return scan.values;
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
