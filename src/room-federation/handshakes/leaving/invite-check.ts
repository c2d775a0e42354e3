import { RemoteError } from '../../../federation-client/index.ts';
import { type Clock, sleep } from '../../../kernel/clock.ts';
import type { Logger } from '../../../kernel/observability/index.ts';
import type { MembershipPeers } from '../peers.ts';

/** An invite of a local user to a room that this server is not in. */
export interface InviteToCheck {
  readonly roomId: string;
  readonly userId: string;
  readonly eventId: string;
  /** The servers that sent the invite. */
  readonly servers: readonly string[];
}

export interface InviteChecksDeps {
  readonly peers: Pick<MembershipPeers, 'fetchEventTemplate'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Milliseconds before each attempt: the inviting server may receive the end of the invite after this server, or
 * be unreachable.
 */
const delays = [0, 2_000, 15_000, 120_000, 900_000, 3_600_000];

/** Milliseconds for one request. */
const requestTimeout = 10_000;

/** Maximum invites that are checked at the same time; further ones are not checked. */
const maxChecks = 1_000;

/**
 * Asks the servers that sent an invite whether the room still has it. From outside of a room, this server cannot
 * check whether a user may kick or ban.
 */
export class InviteChecks {
  readonly #deps: InviteChecksDeps;
  readonly #running = new Set<string>();
  readonly #closing = new AbortController();

  constructor(deps: InviteChecksDeps) {
    this.#deps = deps;
  }

  /**
   * Calls `onEnded` once a server that sent the invite answers that it cannot be rejected any more. Does nothing
   * while the same invite is being checked.
   * @param isCurrent whether the user still has the invite
   */
  start(invite: InviteToCheck, isCurrent: () => Promise<boolean>, onEnded: () => Promise<unknown>): void {
    const key = JSON.stringify([invite.roomId, invite.eventId]);
    if (this.#running.has(key) || this.#running.size >= maxChecks) return;
    this.#running.add(key);
    this.#run(invite, isCurrent, onEnded)
      .catch((error: unknown) => {
        const { roomId, userId } = invite;
        this.#deps.log.warn({ err: error, roomId, userId }, 'An invite could not be checked');
      })
      .finally(() => this.#running.delete(key));
  }

  /** Ends the checks. */
  close(): void {
    this.#closing.abort();
  }

  async #run(
    invite: InviteToCheck,
    isCurrent: () => Promise<boolean>,
    onEnded: () => Promise<unknown>,
  ): Promise<void> {
    const { signal } = this.#closing;
    for (const delay of delays) {
      if (delay > 0) await sleep(this.#deps.clock, delay, signal);
      if (signal.aborted || !(await isCurrent())) return;
      for (const server of invite.servers) {
        if (!(await this.#isRefused(server, invite))) continue;
        if (!signal.aborted && (await isCurrent())) await onEnded();
        return;
      }
    }
  }

  /** Whether the server refuses to prepare the rejection of the invite, since the room has no such invite. */
  async #isRefused(server: string, { roomId, userId }: InviteToCheck): Promise<boolean> {
    const request = { timeout: requestTimeout, signal: this.#closing.signal };
    try {
      await this.#deps.peers.fetchEventTemplate(server, 'leave', { roomId, userId }, [], request);
      return false;
    } catch (error) {
      return error instanceof RemoteError && error.status === 403;
    }
  }
}
