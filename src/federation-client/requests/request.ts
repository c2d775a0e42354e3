import type { JsonObject } from '../../protocol/index.ts';
import type { RetryMode } from './retry-delay.ts';

/** A request to another server. */
export interface FederationRequest {
  readonly destination: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** In the documents' spelling, with its parameters encoded: see `federationPath`. */
  readonly path: string;
  readonly query?: Query;
  readonly body?: JsonObject;
  /** In place of `body`: canonical JSON, for what many servers are sent. */
  readonly bodyText?: string;
  /** `short` when absent. */
  readonly retry?: RetryMode;
  /** Milliseconds for each attempt; `federation.client_timeout` when absent. */
  readonly timeout?: number;
  /** Most bytes of the answer; 16 MiB when absent. */
  readonly maxBody?: number;
  /** Ask even if the server is being left alone, and do not hold a failure against it. */
  readonly ignoreBackoff?: boolean;
  readonly signal?: AbortSignal;
  /** Stands around each pause before another attempt: whoever holds a place may give it away for that time. */
  readonly duringRetryDelay?: (pause: () => Promise<void>) => Promise<void>;
}

export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** Writes a path; what is put into it is encoded: federationPath`/_proto/federation/v1/event/${eventId}`. */
export function federationPath(texts: TemplateStringsArray, ...values: readonly string[]): string {
  return texts.reduce((path, text, index) => path + encodeURIComponent(values[index - 1]!) + text);
}

/** Path and query. */
export function withQuery(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const item of Array.isArray(value) ? value : [value]) parameters.append(name, String(item));
  }
  return parameters.size === 0 ? path : `${path}?${parameters}`;
}
