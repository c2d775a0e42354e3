import type { ResponseBudget } from '../../kernel/outbound/index.ts';

/** Settings that the caller of an endpoint may choose. */
export interface ApiRequest {
  /** Aborts the request. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds; `federation.client_timeout` when absent. */
  readonly timeout?: number | undefined;
  /** Limits the total cost of all responses with the same budget. Only `KeysApi` and `QueriesApi` apply it. */
  readonly budget?: ResponseBudget | undefined;
}
