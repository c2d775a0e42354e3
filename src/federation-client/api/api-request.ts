/** Settings that the caller of an endpoint may choose. */
export interface ApiRequest {
  /** Aborts the request. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds; `federation.client_timeout` when absent. */
  readonly timeout?: number | undefined;
}
