/** A request of a connection that is being answered. */
export interface RunningRequest {
  /** Aborts when the connection has a newer request. */
  readonly superseded: AbortSignal;
  /** Must be called when the request was answered; releases its memory. */
  end(): void;
}

/**
 * The newest request of each connection. Only this request is answered with data, because data in an answer counts as
 * sent.
 */
export class RunningRequests {
  /** The controller that supersedes the newest request, by connection. */
  readonly #newest = new Map<string, AbortController>();

  /** Supersedes the earlier requests of a connection. */
  begin(connection: string): RunningRequest {
    this.#newest.get(connection)?.abort();
    const controller = new AbortController();
    this.#newest.set(connection, controller);
    return {
      superseded: controller.signal,
      end: () => {
        if (this.#newest.get(connection) === controller) this.#newest.delete(connection);
      },
    };
  }
}
