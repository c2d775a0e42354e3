import { limitExceeded } from '../../protocol/index.ts';

/** Milliseconds after which a client may repeat a request that exceeded its budget. */
const retryAfterMs = 60_000;

/**
 * Bounds the total size of the responses from other servers that one request of a client causes. Each response has its
 * own bounds as well, but a client may name hundreds of servers. A response that exceeds the rest of the budget is not
 * counted, so that smaller responses still fit.
 */
export class ResponseBudget {
  #bytes: number;
  #values: number;

  /** @param total bytes and JSON values of all responses together */
  constructor(total: { readonly bytes: number; readonly values: number }) {
    this.#bytes = total.bytes;
    this.#values = total.values;
  }

  /** Bytes left for further responses. */
  get remainingBytes(): number {
    return this.#bytes;
  }

  /** Must be called before each request to a server. @throws MatrixError 429 M_LIMIT_EXCEEDED when nothing is left */
  check(): void {
    if (this.#bytes <= 0 || this.#values <= 0) throw limitExceeded(retryAfterMs);
  }

  /** Counts the bytes of a received response. @throws MatrixError 429 M_LIMIT_EXCEEDED when fewer are left */
  spendBytes(bytes: number): void {
    if (bytes > this.#bytes) throw limitExceeded(retryAfterMs);
    this.#bytes -= bytes;
  }

  /**
   * Counts the JSON values of a response before it is parsed.
   * @throws MatrixError 429 M_LIMIT_EXCEEDED when fewer are left
   */
  spendValues(values: number): void {
    if (values > this.#values) throw limitExceeded(retryAfterMs);
    this.#values -= values;
  }
}
