import {
  type HistoryVisibility,
  historyVisibilityOf,
  isVisibleToServer,
  type Membership,
  membershipOf,
  serverOfUser,
  stateMapKey,
} from '../../protocol/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import { erasedEvents, isExpired } from '../../room-engine/index.ts';

const visibilityKey = stateMapKey('m.room.history_visibility', '');

/**
 * Maximum number of users of a server that are looked up one by one in the states at events; for more, whole
 * states are read.
 */
const maxUsersLookedUp = 50;

/**
 * Maximum number of entries of a state that is read in full to find former members without an entry in the current
 * state.
 */
const maxEntriesRead = 500;

/** Maximum number of states that are read in full to find former members. */
const maxStatesRead = 3;

/**
 * Decides which events of a room's history a server may see. The server is in the room, or was in it when some
 * of the events were sent.
 * Source: client-server API, "Room History Visibility", applied to the users of that server.
 */
export class ServerView {
  readonly #engine: RoomReader;
  readonly #head: RoomHead;
  readonly #serverName: string;

  constructor(engine: RoomReader, head: RoomHead, serverName: string) {
    this.#engine = engine;
    this.#head = head;
    this.#serverName = serverName;
  }

  /** The nids of the events that the server may see only in redacted form. */
  async hidden(events: readonly StoredEvent[]): Promise<Set<number>> {
    const visibilities = await this.#visibilities(events);
    const memberships = await this.#memberships(
      events.filter((stored) => dependsOnMemberships(visibilities.get(stored.nid), stored)),
    );
    const hidden = new Set<number>();
    for (const stored of events) {
      const visibility = visibilities.get(stored.nid);
      if (visibility === undefined) {
        // The state before the event is unknown. State events are returned to every server in the room anyway.
        if (stored.event.stateKey === undefined) hidden.add(stored.nid);
        continue;
      }
      const visibilityContext = {
        serverName: this.#serverName,
        visibility,
        memberships: memberships.get(stored.stateBefore) ?? [],
        // A user of the server is in the room, or was in it when a later event was sent.
        joinedLater: true,
      };
      if (!isVisibleToServer(stored.event, visibilityContext)) hidden.add(stored.nid);
    }
    // Events of erased users are returned in redacted form, because a new copy would undo the erasure (decision 0109).
    const erased = erasedEvents(events, await this.#engine.erased.positions());
    for (const { nid } of erased.keys()) hidden.add(nid);
    const expiredBefore = await this.#engine.retention.expiredBefore(this.#head);
    for (const stored of events) if (isExpired(stored, expiredBefore)) hidden.add(stored.nid);
    return hidden;
  }

  /** Whether a user of the server was joined before each of these events. */
  async wasJoined(events: readonly StoredEvent[]): Promise<boolean> {
    if (events.some(({ stateBefore }) => stateBefore === undefined)) return false;
    const memberships = await this.#memberships(events, await this.#memberKeysIn(events));
    return events.every(({ stateBefore }) => memberships.get(stateBefore)?.has('join'));
  }

  /** The history visibility before each event whose state is known, by nid of the event. */
  async #visibilities(events: readonly StoredEvent[]): Promise<Map<number, HistoryVisibility>> {
    const placed = events.filter(({ stateBefore }) => stateBefore !== undefined);
    const keyNid = await this.#engine.stateKeys.find(visibilityKey);
    const states =
      keyNid === undefined
        ? undefined
        : await this.#engine.groups.entries(
            placed.map(({ stateBefore }) => stateBefore!),
            [keyNid],
          );
    const entryBefore = ({ stateBefore }: StoredEvent) => states?.get(stateBefore!)?.get(keyNid!);
    const visibilityEvents = await this.#engine.events.getMany(
      placed.map(entryBefore).filter((nid) => nid !== undefined),
    );
    return new Map(
      placed.map((stored) => {
        const entry = entryBefore(stored);
        return [
          stored.nid,
          historyVisibilityOf(entry === undefined ? undefined : visibilityEvents.get(entry)?.event.content),
        ];
      }),
    );
  }

  /** The memberships of the server's users in the state before each event, by state group. */
  async #memberships(
    events: readonly StoredEvent[],
    more: Iterable<number> = [],
  ): Promise<Map<number | undefined, ReadonlySet<Membership>>> {
    const groups = new Set(events.map(({ stateBefore }) => stateBefore!));
    if (groups.size === 0) return new Map();
    const states = await this.#memberEvents(groups, new Set([...(await this.#memberKeys()), ...more]));
    const memberEvents = await this.#engine.events.getMany([...states.values()].flat());
    return new Map(
      [...states].map(([group, nids]) => [
        group,
        new Set(nids.map((nid) => membershipOf(memberEvents.get(nid)?.event.content))),
      ]),
    );
  }

  /** The nids of the state keys of the server's member events. */
  async #memberKeys(): Promise<Set<number>> {
    const { stateKeys } = this.#engine;
    const users = [...this.#head.members.keys()].filter((user) => serverOfUser(user) === this.#serverName);
    const keys = await Promise.all(users.map((user) => stateKeys.find(stateMapKey('m.room.member', user))));
    return new Set(keys.filter((nid) => nid !== undefined));
  }

  /**
   * The nids of the state keys of the server's member events in the states before some events. They include users
   * without an entry in the current state, whose joins state resolution removed. Reads small rooms only, to bound
   * the cost.
   */
  async #memberKeysIn(events: readonly StoredEvent[]): Promise<Set<number>> {
    const keys = new Set<number>();
    if (this.#head.state.size > maxEntriesRead) return keys;
    const groups = new Set(events.slice(0, maxStatesRead).map(({ stateBefore }) => stateBefore!));
    for (const group of groups) {
      for (const [keyNid, nid] of await this.#engine.groups.load(group)) {
        const { type, stateKey = '' } = (await this.#engine.events.get(nid))?.event ?? {};
        if (type === 'm.room.member' && serverOfUser(stateKey) === this.#serverName) keys.add(keyNid);
      }
    }
    return keys;
  }

  /** The nids of the server's member events in each state, by state group. */
  async #memberEvents(
    groups: ReadonlySet<number>,
    keyNids: ReadonlySet<number>,
  ): Promise<Map<number, number[]>> {
    const members = new Map<number, number[]>();
    if (keyNids.size === 0) return members;
    if (keyNids.size <= maxUsersLookedUp) {
      const states = await this.#engine.groups.entries(groups, [...keyNids]);
      for (const [group, state] of states) members.set(group, [...state.values()]);
      return members;
    }
    for (const group of groups) {
      const state = await this.#engine.groups.load(group);
      members.set(
        group,
        [...state].filter(([key]) => keyNids.has(key)).map(([, nid]) => nid),
      );
    }
    return members;
  }
}

/** Whether the memberships of a server's users decide if the server may see the event. */
function dependsOnMemberships(
  visibility: HistoryVisibility | undefined,
  { stateBefore }: StoredEvent,
): boolean {
  return stateBefore !== undefined && (visibility === 'joined' || visibility === 'invited');
}
