import { type Cache, type CacheRegistry, MiB } from '../../../kernel/caches/index.ts';
import { membershipOf, serverOfUser } from '../../../protocol/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../../room-engine/index.ts';

/** The number of joined users of each server, in the state of one state group. */
interface GroupServers {
  group: number;
  readonly servers: Map<string, number>;
}

/** Maximum number of rooms whose servers are cached. */
const maxRooms = 5_000;

/**
 * Finds the servers that were in a room just before an event. The head of the room may be newer than the events being
 * fanned out: servers that have joined since must not receive these events, and servers that have left since must
 * receive them.
 */
export class RoomServers {
  readonly #engine: Pick<RoomReader, 'events' | 'groups'>;
  readonly #cache: Cache<string, GroupServers>;

  constructor(engine: Pick<RoomReader, 'events' | 'groups'>, caches: CacheRegistry) {
    this.#cache = caches.create('servers_of_rooms', {
      size: maxRooms,
      maxBytes: 6 * MiB,
      sizeOf: ({ servers }) => 80 * servers.size,
    });
    this.#engine = engine;
  }

  /** Returns the number of joined users of each server before an event. */
  async before(stored: StoredEvent, head: RoomHead): Promise<ReadonlyMap<string, number>> {
    const group = stored.stateBefore;
    if (stored.event.type === 'm.room.create') return new Map();
    // While the state of the room is partial, the servers that were in the room at this server's join count as well.
    if (group === undefined || head.isPartial) {
      this.#cache.delete(head.roomId);
      return head.servers;
    }
    const cached = this.#cache.get(head.roomId);
    if (cached?.group === group) return cached.servers;
    const servers = head.stateGroup === group ? new Map(head.servers) : await this.#load(group, head);
    this.#cache.set(head.roomId, { group, servers });
    return servers;
  }

  /** Updates the cached servers to the state after this event. */
  async advancePast(stored: StoredEvent): Promise<void> {
    const { event, stateBefore, stateGroup, replaces } = stored;
    if (event.type === 'm.room.create' && stateGroup !== undefined) {
      this.#cache.set(event.roomId, { group: stateGroup, servers: new Map() });
      return;
    }
    const cached = this.#cache.get(event.roomId);
    if (cached?.group !== stateBefore || stateGroup === undefined || stateGroup === stateBefore) return;
    if (cached === undefined) return;
    if (event.type === 'm.room.member' && event.stateKey !== undefined) {
      const before = replaces === undefined ? undefined : await this.#engine.events.get(replaces);
      const wasJoined = before !== undefined && isJoin(before);
      addUsers(cached.servers, event.stateKey, Number(isJoin(stored)) - Number(wasJoined));
    }
    cached.group = stateGroup;
  }

  /**
   * Counts the joined users of a state group by server. Events that are not state of the head are read from the
   * database.
   */
  async #load(group: number, head: RoomHead): Promise<Map<string, number>> {
    const { groups, events } = this.#engine;
    const state = new Set((await groups.load(group)).values());
    const servers = new Map<string, number>();
    for (const [userId, membership] of head.members) {
      const entry = head.entry('m.room.member', userId);
      if (entry && state.delete(entry.nid) && membership === 'join') addUsers(servers, userId, 1);
    }
    for (const [key, { nid }] of head.state) if (!key.startsWith('m.room.member')) state.delete(nid);
    for (const stored of (await events.getMany(state)).values()) {
      if (stored.event.stateKey !== undefined && isJoin(stored)) addUsers(servers, stored.event.stateKey, 1);
    }
    return servers;
  }
}

const isJoin = ({ event }: StoredEvent): boolean =>
  event.type === 'm.room.member' && membershipOf(event.content) === 'join';

/** Adds `change` to the number of users of the server of a user. */
function addUsers(servers: Map<string, number>, userId: string, change: number): void {
  const server = serverOfUser(userId);
  const users = (servers.get(server) ?? 0) + change;
  if (users > 0) servers.set(server, users);
  else servers.delete(server);
}
