import type { RoomHead, ServerAcls } from '../../room-engine/index.ts';
import type { ServerHealth } from '../remote-servers.ts';
import type { AskBackoff } from './ask-backoff.ts';

/** Servers of a room that are considered. */
export const maxServersConsidered = 30;

/** Those that are asked in the end. */
const maxAsked = 5;

/** Which servers to ask about a room. */
export class RoomServers {
  readonly #deps: {
    readonly serverName: string;
    readonly serverAcls: ServerAcls;
    readonly health: ServerHealth;
    readonly backoff: AskBackoff;
  };

  constructor(parts: {
    readonly serverName: string;
    readonly serverAcls: ServerAcls;
    readonly health: ServerHealth;
    readonly backoff: AskBackoff;
  }) {
    this.#deps = parts;
  }

  /**
   * Servers that may be asked, most likely ones first: `first`, then those with most members, who have the room's
   * history as a rule. Without those that can not be reached, have not helped lately, or may not take part in the room.
   */
  async serversToAsk(head: RoomHead, first: readonly string[] = []): Promise<string[]> {
    const { serverName, serverAcls, health, backoff } = this.#deps;
    const bySize = [...head.servers].sort(([, a], [, b]) => b - a).map(([server]) => server);
    // While the state of a room is not complete, most of its members are not known.
    const whenJoined = head.partial ? [head.partial.from, ...head.partial.servers] : [];
    const considered = [...new Set([...first, ...bySize, ...whenJoined])]
      .filter((server) => server !== serverName)
      .slice(0, maxServersConsidered);
    const asked: string[] = [];
    for (const server of considered) {
      if (asked.length === maxAsked) break;
      if (backoff.askableAfter(head.roomId, server) !== undefined) continue;
      if (!(await serverAcls.allows(head, server))) continue;
      if ((await health.backoffUntil(server)) === undefined) asked.push(server);
    }
    return asked;
  }

  /** Whether any other server is in the room: a look into memory. */
  hasRemoteServers(head: RoomHead): boolean {
    if (head.partial) return true;
    for (const server of head.servers.keys()) if (server !== this.#deps.serverName) return true;
    return false;
  }
}
