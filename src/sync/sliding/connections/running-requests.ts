/** A request of a connection that is being answered. */
export interface RunningRequest {
  /** Aborts when the connection has a newer request. */
  readonly superseded: AbortSignal;
  /** Forgets the request when it was answered. */
  end(): void;
}

/** The newest request of each connection: only that one gets an answer with data, which then counts as sent. */
export class RunningRequests {
  readonly #newest = new Map<string, AbortController>();

  /** Supersedes the earlier requests of a connection. */
  begin(connection: string): RunningRequest {
    this.#newest.get(connection)?.abort();
    const abort = new AbortController();
    this.#newest.set(connection, abort);
    return {
      superseded: abort.signal,
      end: () => {
        if (this.#newest.get(connection) === abort) this.#newest.delete(connection);
      },
    };
  }
}
