import type { Logger } from '../../kernel/observability/index.ts';
import type { RoomVersion } from '../../protocol/index.ts';
import type { AskBackoff } from './ask-backoff.ts';

/** What an event needs can not be had from any server that may be asked now. */
export class FetchFailed extends Error {
  override readonly name = 'Unobtainable';
}

/** Milliseconds for one request; the sizes of answers differ. */
export const requestTimeout = { short: 15_000, long: 60_000 } as const;

export interface ServerQueryDeps {
  readonly roomId: string;
  readonly roomNid: number;
  readonly version: RoomVersion;
  /** Whom to ask, most likely ones first; found out when somebody has to be asked. */
  readonly servers: () => Promise<readonly string[]>;
  /** When it aborts, nobody is asked any more. */
  readonly signal: AbortSignal;
  readonly backoff: AskBackoff;
  readonly log: Logger;
}

/** Questions about one room to one server after the other. */
export class ServerQuery {
  readonly roomId: string;
  readonly roomNid: number;
  readonly version: RoomVersion;
  readonly signal: AbortSignal;
  readonly #deps: ServerQueryDeps;
  #servers: Promise<readonly string[]> | undefined;

  constructor(deps: ServerQueryDeps) {
    this.roomId = deps.roomId;
    this.roomNid = deps.roomNid;
    this.version = deps.version;
    this.signal = deps.signal;
    this.#deps = deps;
  }

  /** Whom to ask, most likely ones first. */
  servers(): Promise<readonly string[]> {
    this.#servers ??= this.#deps.servers();
    return this.#servers;
  }

  /**
   * Asks one server after the other until one helps. A server that does not, and does not with anything else either,
   * is not asked about this room for a while.
   * @param ask gives `undefined`, or throws, when the server does not help
   * @returns `undefined` when none helps
   */
  async ask<T>(what: string, ask: (server: string) => Promise<T | undefined>): Promise<T | undefined> {
    const { backoff, log } = this.#deps;
    for (const server of await this.servers()) {
      if (this.signal.aborted) return undefined;
      try {
        const answer = await ask(server);
        if (answer !== undefined) {
          backoff.recordSuccess(this.roomId, server);
          return answer;
        }
        log.debug({ server, roomId: this.roomId, what }, 'A server does not help with a room');
      } catch (error) {
        if (this.signal.aborted) return undefined;
        log.debug({ err: error, server, roomId: this.roomId, what }, 'A server does not help with a room');
      }
      backoff.recordFailure(this.roomId, server);
    }
    return undefined;
  }
}
