import { RecentlyUsed } from '../../../kernel/caches/index.ts';
import { membershipOf, serverOfUser } from '../../../protocol/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../../room-engine/index.ts';

/** Joined users by server, in the state of a group. */
interface Known {
  group: number;
  readonly servers: Map<string, number>;
}

/** Rooms of which it is known which servers were in them at the last event. */
const roomsKnown = 5_000;

/**
 * Which servers are in a room at an event, in the state before it. The head of a room runs ahead of the events that
 * are handed out: who has joined since must not be sent them, and who has left since must.
 */
export class RoomServers {
  readonly #engine: Pick<RoomReader, 'events' | 'groups'>;
  readonly #known = new RecentlyUsed<string, Known>({ max: roomsKnown });

  constructor(engine: Pick<RoomReader, 'events' | 'groups'>) {
    this.#engine = engine;
  }

  /** How many users of each server are joined before an event. */
  async before(stored: StoredEvent, head: RoomHead): Promise<ReadonlyMap<string, number>> {
    const group = stored.stateBefore;
    if (stored.event.type === 'm.room.create') return new Map();
    // While the state of a room is not complete, the servers that were in it when this one joined count as well.
    if (group === undefined || head.isPartial) {
      this.#known.delete(head.roomId);
      return head.servers;
    }
    const known = this.#known.get(head.roomId);
    if (known?.group === group) return known.servers;
    const servers = head.stateGroup === group ? new Map(head.servers) : await this.#load(group, head);
    this.#known.set(head.roomId, { group, servers });
    return servers;
  }

  /** The events that are handed out have come past this one. */
  async advancePast(stored: StoredEvent): Promise<void> {
    const { event, stateBefore, stateGroup, replaces } = stored;
    if (event.type === 'm.room.create' && stateGroup !== undefined) {
      this.#known.set(event.roomId, { group: stateGroup, servers: new Map() });
      return;
    }
    const known = this.#known.get(event.roomId);
    if (known?.group !== stateBefore || stateGroup === undefined || stateGroup === stateBefore) return;
    if (known === undefined) return;
    if (event.type === 'm.room.member' && event.stateKey !== undefined) {
      const before = replaces === undefined ? undefined : await this.#engine.events.get(replaces);
      const wasJoined = before !== undefined && isJoin(before);
      count(known.servers, event.stateKey, Number(isJoin(stored)) - Number(wasJoined));
    }
    known.group = stateGroup;
  }

  /** From the head, where most of the state is the same, and the disk. */
  async #load(group: number, head: RoomHead): Promise<Map<string, number>> {
    const { groups, events } = this.#engine;
    const state = new Set((await groups.load(group)).values());
    const servers = new Map<string, number>();
    for (const [userId, membership] of head.members) {
      const entry = head.entry('m.room.member', userId);
      if (entry && state.delete(entry.nid) && membership === 'join') count(servers, userId, 1);
    }
    for (const [key, { nid }] of head.state) if (!key.startsWith('m.room.member')) state.delete(nid);
    for (const stored of (await events.getMany(state)).values()) {
      if (stored.event.stateKey !== undefined && isJoin(stored)) count(servers, stored.event.stateKey, 1);
    }
    return servers;
  }
}

const isJoin = ({ event }: StoredEvent): boolean =>
  event.type === 'm.room.member' && membershipOf(event.content) === 'join';

function count(servers: Map<string, number>, userId: string, change: number): void {
  const server = serverOfUser(userId);
  const users = (servers.get(server) ?? 0) + change;
  if (users > 0) servers.set(server, users);
  else servers.delete(server);
}
