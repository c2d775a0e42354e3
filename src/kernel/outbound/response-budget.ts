import { limitExceeded } from '../../protocol/index.ts';

/** Milliseconds after which a client may repeat the request whose budget was spent. */
const retryAfter = 60_000;

/**
 * Bounds the responses of other servers that one request of a client causes, all together: each alone may be within its
 * own bounds, but a client may name hundreds of servers.
 */
export class ResponseBudget {
  #bytes: number;
  #values: number;

  /** @param total bytes and JSON values of all responses together */
  constructor(total: { readonly bytes: number; readonly values: number }) {
    this.#bytes = total.bytes;
    this.#values = total.values;
  }

  /** Bytes that further responses may have. */
  get remainingBytes(): number {
    return this.#bytes;
  }

  /** Must be called before each request. @throws MatrixError 429 M_LIMIT_EXCEEDED when the budget is spent */
  check(): void {
    if (this.#bytes <= 0 || this.#values <= 0) throw limitExceeded(retryAfter);
  }

  /** Counts the bytes of a response before they are read. @throws MatrixError 429 M_LIMIT_EXCEEDED for too many */
  spendBytes(bytes: number): void {
    if (bytes > this.#bytes) throw limitExceeded(retryAfter);
    this.#bytes -= bytes;
  }

  /** Counts the values of a response before it is parsed. @throws MatrixError 429 M_LIMIT_EXCEEDED for too many */
  spendValues(values: number): void {
    if (values > this.#values) throw limitExceeded(retryAfter);
    this.#values -= values;
  }
}
