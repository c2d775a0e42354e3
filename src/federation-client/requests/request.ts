import type { ResponseBudget } from '../../kernel/outbound/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { RetryMode } from './retry-delay.ts';

/** A request to another server. */
export interface FederationRequest {
  readonly destination: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path below `/_proto`, the prefix that the code writes for `/_matrix`. Parameters are encoded: see `federationPath`. */
  readonly path: string;
  readonly query?: Query;
  readonly body?: JsonObject;
  /** Replaces `body`: canonical JSON, for content that is sent to many servers. */
  readonly bodyText?: string;
  /** `short` when absent. */
  readonly retry?: RetryMode;
  /** Milliseconds for each attempt; `federation.client_timeout` when absent. */
  readonly timeout?: number;
  /** Maximum bytes of the response; 16 MiB when absent. */
  readonly maxBody?: number;
  /** Maximum number of values in the response; 8,000,000 when absent. The values are counted while the response arrives. */
  readonly maxValues?: number;
  /** Limits the total cost of the responses that one request of a client causes. */
  readonly budget?: ResponseBudget;
  /** Sends the request although the server is in backoff, and does not record a failure. */
  readonly ignoreBackoff?: boolean;
  /**
   * Whether a user waits for the response. Such a request is sent to a server in backoff too, but only one in ten
   * seconds, without retries, and with a timeout of at most ten seconds; its failure then does not extend the backoff.
   */
  readonly isForUser?: boolean;
  readonly signal?: AbortSignal;
  /**
   * Called for each delay before a retry, with the function that waits. The caller can release its send slot during the
   * wait.
   */
  readonly duringRetryDelay?: (pause: () => Promise<void>) => Promise<void>;
}

export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** Template tag that encodes the parameters of a path: federationPath`/_proto/federation/v1/event/${eventId}`. */
export function federationPath(texts: TemplateStringsArray, ...values: readonly string[]): string {
  return texts.reduce((path, text, index) => path + encodeURIComponent(values[index - 1]!) + text);
}

/** Appends the query to a path. */
export function withQuery(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const item of Array.isArray(value) ? value : [value]) parameters.append(name, String(item));
  }
  return parameters.size === 0 ? path : `${path}?${parameters}`;
}
