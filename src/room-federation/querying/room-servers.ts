import type { RoomHead, ServerAcls } from '../../room-engine/index.ts';
import type { ServerHealth } from '../remote-servers.ts';
import type { QueryBackoff } from './query-backoff.ts';

/** Maximum number of servers of a room that are considered for requests. */
export const maxServersConsidered = 30;

/** Maximum number of servers that one query selects. */
const maxSelected = 5;

/** Selects the servers that receive requests about a room. */
export class RoomServers {
  readonly #deps: {
    readonly serverName: string;
    readonly serverAcls: ServerAcls;
    readonly health: ServerHealth;
    readonly backoff: QueryBackoff;
  };

  constructor(deps: {
    readonly serverName: string;
    readonly serverAcls: ServerAcls;
    readonly health: ServerHealth;
    readonly backoff: QueryBackoff;
  }) {
    this.#deps = deps;
  }

  /**
   * Returns up to five servers for requests about the room, best first: `first`, then the servers with most members in
   * the room, which usually have the history. Leaves out servers that are unreachable, in backoff for this room, or
   * denied by the room's server ACL.
   */
  async serversToQuery(head: RoomHead, first: readonly string[] = []): Promise<string[]> {
    const { serverName, serverAcls, health, backoff } = this.#deps;
    const bySize = [...head.servers].sort(([, a], [, b]) => b - a).map(([server]) => server);
    // While the state of a room is partial, most of its members are unknown.
    const serversAtJoin = head.partial ? [head.partial.from, ...head.partial.servers] : [];
    const considered = [...new Set([...first, ...bySize, ...serversAtJoin])]
      .filter((server) => server !== serverName)
      .slice(0, maxServersConsidered);
    const selected: string[] = [];
    for (const server of considered) {
      if (selected.length === maxSelected) break;
      if (backoff.backoffEnd(head.roomId, server) !== undefined) continue;
      if (!(await serverAcls.allows(head, server))) continue;
      if ((await health.backoffUntil(server)) === undefined) selected.push(server);
    }
    return selected;
  }

  /** Whether any remote server is in the room. Reads memory only. */
  hasRemoteServers(head: RoomHead): boolean {
    if (head.partial) return true;
    for (const server of head.servers.keys()) if (server !== this.#deps.serverName) return true;
    return false;
  }
}
