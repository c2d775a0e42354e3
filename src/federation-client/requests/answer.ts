import type { OutboundResponse } from '../../kernel/outbound/index.ts';
import { type JsonObject, parseJsonObject } from '../../protocol/index.ts';
import { MalformedAnswer, RemoteError } from './errors.ts';

/** Deeper than any event may be, so that one which is too deep does not hide the others: see `parseJson`. */
const maxDepth = 2_000;

/**
 * The JSON of a successful answer; numbers as they are written, for events may be in it.
 * @throws RemoteError when the status is none of success
 * @throws MalformedAnswer when the body is no JSON object, or is not said to be JSON
 */
export function readAnswer(destination: string, response: OutboundResponse): JsonObject {
  const { status, body } = response;
  if (status < 200 || status >= 300) throw remoteError(destination, response);
  if (!isJson(response)) throw new MalformedAnswer(destination, 'it is not said to be JSON');
  try {
    return parseJsonObject(body, { numbers: 'as written', maxDepth });
  } catch (cause) {
    throw new MalformedAnswer(destination, 'it is no JSON object', { cause });
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
