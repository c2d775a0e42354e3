/** What the caller of a request may choose. */
export interface ApiRequest {
  /** Gives the request up. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds; `federation.client_timeout` when absent. */
  readonly timeout?: number | undefined;
}
