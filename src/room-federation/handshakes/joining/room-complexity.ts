import { MatrixError } from '../../../protocol/index.ts';
import type { RoomHead } from '../../../room-engine/index.ts';
import type { MembershipPeers } from '../peers.ts';

/** Options `limit_remote_rooms`. */
export interface ComplexityOptions {
  readonly enabled: boolean;
  readonly complexity: number;
  readonly complexity_error: string;
  readonly admins_can_join: boolean;
}

/** So many entries of current state make a complexity of 1. */
const entriesPerUnit = 500;

/** How many servers are asked, and milliseconds for each to answer. */
const [maxAsked, requestTimeout] = [3, 10_000];

/** How much work a room is, as servers of the ecosystem measure it: by its current state. */
export function complexityOf(head: RoomHead): number {
  return Math.round((head.state.size / entriesPerUnit) * 100) / 100;
}

/** Keeps users out of rooms that are too much for this server. */
export class ComplexityLimit {
  readonly #options: ComplexityOptions;
  readonly #isAdmin: (userId: string) => Promise<boolean>;

  constructor(options: ComplexityOptions, isAdmin: (userId: string) => Promise<boolean>) {
    this.#options = options;
    this.#isAdmin = isAdmin;
  }

  /** Whether there is a limit for that user. */
  async appliesTo(userId: string): Promise<boolean> {
    const { enabled, admins_can_join } = this.#options;
    return enabled && !(admins_can_join && (await this.#isAdmin(userId)));
  }

  /**
   * Before a join: asks servers that are in the room. When none of them says, `checkJoined` will tell.
   * @returns whether one has said
   * @throws MatrixError M_RESOURCE_LIMIT_EXCEEDED
   */
  async checkBeforeJoin(
    peers: MembershipPeers,
    servers: readonly string[],
    roomId: string,
  ): Promise<boolean> {
    for (const server of servers.slice(0, maxAsked)) {
      const complexity = await peers
        .complexity(server, roomId, { timeout: requestTimeout })
        .catch(() => undefined);
      if (complexity === undefined) continue;
      this.#check(complexity);
      return true;
    }
    return false;
  }

  /** After a join. @throws MatrixError M_RESOURCE_LIMIT_EXCEEDED */
  checkAfterJoin(head: RoomHead): void {
    this.#check(complexityOf(head));
  }

  #check(complexity: number): void {
    const { complexity: limit, complexity_error: text } = this.#options;
    if (complexity > limit) throw new MatrixError(400, 'M_RESOURCE_LIMIT_EXCEEDED', text);
  }
}
