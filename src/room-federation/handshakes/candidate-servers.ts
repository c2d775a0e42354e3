import {
  isServerName,
  parseUserId,
  type StrippedState,
  serverOfUser,
  stateMapKey,
} from '../../protocol/index.ts';
import type { RoomHead, RoomReader, UserRoom } from '../../room-engine/index.ts';
import { allowedRoomIds } from '../../room-engine/index.ts';
import type { LeaveRecipients } from './leaving/send-leave.ts';

export interface CandidateDeps {
  readonly engine: RoomReader;
  readonly serverName: string;
  /** The stripped state that a user received with an invite or a knock. */
  readonly strippedState: (roomId: string, userId: string) => Promise<readonly StrippedState[]>;
}

/** Maximum number of servers that receive a request. */
const maxCandidates = 30;

/** Maximum number of servers from one `via` (of the client, or of a space), so that others receive requests, too. */
const maxNamed = 8;

/** Maximum number of inviting servers that are considered: the servers with the latest invites. */
const maxInviters = 20;

/** Maximum number of servers that may receive a leave when none of the inviting servers accepts it. */
const maxOthers = 12;

/** Maximum number of the user's spaces whose `via` servers for the room are considered. */
const maxSpaces = 10;

/**
 * The `allow` list of a restricted room names other rooms: maximum number of these rooms whose servers are considered.
 */
const maxAllowRooms = 10;

/**
 * Selects the servers that may help a user to join, leave or knock on a room that this server is not in. The server
 * name in a room id is not an indication: it is only a namespace.
 */
export class CandidateServers {
  readonly #deps: CandidateDeps;

  constructor(deps: CandidateDeps) {
    this.#deps = deps;
  }

  /**
   * The servers for the requests of a join or knock, in this order: servers that the client or the room alias names,
   * servers that invited the user, and servers that a space of the user names. No other server receives requests, even
   * if this server knows more servers of the room: its knowledge may be old, from before it left the room, and its
   * users did not choose these servers.
   * @param via servers from the client's `via`, or from the room alias
   */
  async toJoin(userId: string, roomId: string, via: readonly string[] = []): Promise<string[]> {
    return this.#distinct([
      ...via.slice(0, maxNamed),
      ...(await this.#invitingServers(userId, roomId)),
      ...(await this.#serversOfSpaces(userId, roomId)),
    ]);
  }

  #distinct(servers: readonly string[]): string[] {
    const isRemote = (server: string) => server !== this.#deps.serverName && isServerName(server);
    return [...new Set(servers.filter(isRemote))].slice(0, maxCandidates);
  }

  /**
   * The servers to notify when a user rejects an invite or retracts a knock: all inviting servers, because the latest
   * of them may be unrelated to the room while a server with an earlier invite is still in it.
   */
  async leaveRecipients(userId: string, room: UserRoom): Promise<LeaveRecipients> {
    const inviters = await this.#deps.engine.events.outOfBandServers(room.roomNid, userId, maxInviters);
    const isRemote = (server: string) => server !== this.#deps.serverName && isServerName(server);
    const each = inviters.map(({ server }) => server).filter(isRemote);
    const candidates = await this.#leaveCandidates(userId, room.roomId);
    return { each, others: candidates.filter((server) => !each.includes(server)).slice(0, maxOthers) };
  }

  /** The servers that may be in the room: more servers than receive the requests of a join. */
  async #leaveCandidates(userId: string, roomId: string): Promise<string[]> {
    const { engine, strippedState } = this.#deps;
    const stripped = await strippedState(roomId, userId);
    const head = await engine.heads.get(roomId);
    return this.#distinct([
      ...(await this.#invitingServers(userId, roomId)),
      ...stripped.flatMap(({ sender }) => parseUserId(sender)?.serverName ?? []),
      ...(head ? [...serversByMembers(head), ...(await this.#serversOfAllowRooms(head))] : []),
    ]);
  }

  /** The servers that invited the user or received their knock. */
  async #invitingServers(userId: string, roomId: string): Promise<string[]> {
    const { engine } = this.#deps;
    const room = (await engine.userRooms.of(userId)).get(roomId);
    if (!room) return [];
    // The latest inviting server may be unrelated to the room. This cannot be checked from outside.
    const inviters = await engine.events.outOfBandServers(room.roomNid, userId, maxInviters);
    const earlier = inviters.map(({ server }) => server);
    if (room.membership !== 'invite' && room.membership !== 'knock') return earlier;
    const stored = await engine.events.get(room.eventNid);
    return [...(stored ? [serverOfUser(stored.event.sender)] : []), ...earlier];
  }

  /** The servers that the `m.space.child` events in the user's rooms name for a room. */
  async #serversOfSpaces(userId: string, roomId: string): Promise<string[]> {
    const { engine } = this.#deps;
    const key = stateMapKey('m.space.child', roomId);
    // Most rooms are in no space that this server knows.
    if ((await engine.stateKeys.find(key)) === undefined) return [];
    const servers: string[] = [];
    let spaces = 0;
    for (const joined of await engine.userRooms.withMembership(userId, 'join')) {
      const entry = (await engine.heads.get(joined))?.state.get(key);
      const via = entry && (await engine.events.get(entry.nid))?.event.content['via'];
      if (!Array.isArray(via)) continue;
      servers.push(...via.slice(0, maxNamed).filter((server) => typeof server === 'string'));
      if (++spaces >= maxSpaces) break;
    }
    return servers;
  }

  /** Servers in the rooms of the `allow` list: they are likely to be in the restricted room, too. */
  async #serversOfAllowRooms(head: RoomHead): Promise<string[]> {
    const { engine } = this.#deps;
    const entry = head.entry('m.room.join_rules', '');
    const rules = entry && (await engine.events.get(entry.nid))?.event;
    const servers: string[] = [];
    for (const roomId of allowedRoomIds(rules).slice(0, maxAllowRooms)) {
      const allowed = await engine.heads.get(roomId);
      if (allowed) servers.push(...serversByMembers(allowed));
    }
    return servers;
  }
}

/** The servers of a room, most members first. */
function serversByMembers({ servers }: RoomHead): string[] {
  return [...servers].sort(([, a], [, b]) => b - a).map(([server]) => server);
}
