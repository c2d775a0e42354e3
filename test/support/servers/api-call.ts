import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { type Dispatcher, request as requestOverHttp } from 'undici';
import { validateResponse } from '../matrix-spec/matrix-spec.ts';

export interface ApiRequest {
  readonly token?: string;
  /** Sent as JSON; strings and bytes are sent unchanged. */
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string | number | boolean | readonly string[]>>;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ApiAnswer {
  readonly status: number;
  /** The JSON body; an empty object when the body is not JSON. */
  readonly body: Record<string, unknown>;
  /** The body as text. */
  readonly raw: string;
  readonly headers: Headers;
}

/**
 * Calls a server. Fails the test when the response does not match the specification's schema of the
 * operation.
 */
export async function callApi(
  baseUrl: string,
  method: string,
  path: string,
  request: ApiRequest = {},
): Promise<ApiAnswer> {
  const url = new URL(baseUrl + path);
  for (const [name, value] of Object.entries(request.query ?? {})) {
    for (const item of Array.isArray(value) ? value : [value]) url.searchParams.append(name, String(item));
  }
  const headers = { ...(request.token && { authorization: `Bearer ${request.token}` }), ...request.headers };
  const body = encode(request.body);
  const response = await requestOverHttp(url, {
    method: method as Dispatcher.HttpMethod,
    headers,
    body: body ?? null,
  });
  const { statusCode: status } = response;
  const raw = await response.body.text();
  const parsed = parse(raw);
  const { problems } = validateResponse(method, path, status, parsed);
  if (problems.length > 0)
    assert.fail(
      `the response to ${method} ${path} (${status}) does not match the specification: ${problems}: ${raw}`,
    );
  return {
    status,
    body: parsed ?? {},
    raw,
    get headers() {
      return headersOf(response.headers);
    },
  };
}

function headersOf(received: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const [name, value = []] of Object.entries(received)) {
    for (const item of [value].flat()) headers.append(name, item);
  }
  return headers;
}

function encode(body: unknown): string | Uint8Array | undefined {
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) return body;
  return JSON.stringify(body);
}

function parse(raw: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(raw) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
