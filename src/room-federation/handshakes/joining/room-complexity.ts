import { MatrixError } from '../../../protocol/index.ts';
import type { RoomHead } from '../../../room-engine/index.ts';
import type { MembershipPeers } from '../peers.ts';

/** The options `limit_remote_rooms.*`. */
export interface ComplexityOptions {
  readonly enabled: boolean;
  readonly complexity: number;
  readonly complexity_error: string;
  readonly admins_can_join: boolean;
}

/** Number of entries of the current state that make a complexity of 1. */
const entriesPerUnit = 500;

/** Maximum number of servers that receive a request for the complexity. */
const maxServers = 3;

/** Timeout of each request in milliseconds. */
const requestTimeout = 10_000;

/** The complexity of a room by the size of its current state, as other servers calculate it. */
export function complexityOf(head: RoomHead): number {
  return Math.round((head.state.size / entriesPerUnit) * 100) / 100;
}

/** Prevents joins of rooms that are too complex for this server (`limit_remote_rooms`). */
export class ComplexityLimit {
  readonly #options: ComplexityOptions;
  readonly #isAdmin: (userId: string) => Promise<boolean>;

  constructor(options: ComplexityOptions, isAdmin: (userId: string) => Promise<boolean>) {
    this.#options = options;
    this.#isAdmin = isAdmin;
  }

  /** Whether the limit applies to a user. */
  async appliesTo(userId: string): Promise<boolean> {
    const { enabled, admins_can_join } = this.#options;
    return enabled && !(admins_can_join && (await this.#isAdmin(userId)));
  }

  /**
   * Requests the complexity from resident servers before a join. When none returns it, `checkAfterJoin` decides.
   * @returns whether a server returned the complexity
   * @throws MatrixError M_RESOURCE_LIMIT_EXCEEDED
   */
  async checkBeforeJoin(
    peers: MembershipPeers,
    servers: readonly string[],
    roomId: string,
  ): Promise<boolean> {
    for (const server of servers.slice(0, maxServers)) {
      const complexity = await peers
        .complexity(server, roomId, { timeout: requestTimeout })
        .catch(() => undefined);
      if (complexity === undefined) continue;
      this.#check(complexity);
      return true;
    }
    return false;
  }

  /** Checks the complexity of the joined room. @throws MatrixError M_RESOURCE_LIMIT_EXCEEDED */
  checkAfterJoin(head: RoomHead): void {
    this.#check(complexityOf(head));
  }

  #check(complexity: number): void {
    const { complexity: limit, complexity_error: text } = this.#options;
    if (complexity > limit) throw new MatrixError(400, 'M_RESOURCE_LIMIT_EXCEEDED', text);
  }
}
