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

/** Maximum number of users of a server that are looked up in the states at all events of a response. */
const maxUsersLookedUp = 50;

/**
 * For a server with more users than that: number of membership events that are read together, until one of them is a
 * join.
 */
const membersAtOnce = 200;

/**
 * For a server with more users than that: maximum number of states that are searched for any joined user. In each other
 * state, no user counts as joined unless a looked-up user is.
 */
const maxStatesSearched = 10;

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
        // The state before the event is unknown: hidden, unless it is a state event, which every server in the room
        // receives anyway.
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

  /**
   * The memberships of the server's users in the state before each event, by state group.
   * @param more nids of further state keys of the server's member events
   */
  async #memberships(
    events: readonly StoredEvent[],
    more: Iterable<number> = [],
  ): Promise<Map<number | undefined, ReadonlySet<Membership>>> {
    const groups = new Set(events.map(({ stateBefore }) => stateBefore!));
    if (groups.size === 0) return new Map();
    const keyNids = [...new Set([...(await this.#memberKeys()), ...more])];
    const memberships = await this.#lookUp(groups, keyNids.slice(0, maxUsersLookedUp));
    if (keyNids.length > maxUsersLookedUp) await this.#search(memberships, new Set(keyNids));
    return memberships;
  }

  /** Returns the memberships of some users in each state, by state group. */
  async #lookUp(
    groups: ReadonlySet<number>,
    keyNids: readonly number[],
  ): Promise<Map<number, ReadonlySet<Membership>>> {
    if (keyNids.length === 0) return new Map();
    const states = await this.#engine.groups.entries(groups, keyNids);
    const nids = new Set([...states.values()].flatMap((state) => [...state.values()]));
    const events = await this.#engine.events.getMany(nids);
    return new Map(
      [...states].map(([group, state]) => [
        group,
        new Set(Array.from(state.values(), (nid) => membershipOf(events.get(nid)?.event.content))),
      ]),
    );
  }

  /**
   * Searches the states in which no user is known to be joined. Users who are joined in one of these states are looked up
   * in the others, because most of them are joined there, too.
   * @param memberships by state group; receives further memberships
   */
  async #search(
    memberships: Map<number, ReadonlySet<Membership>>,
    keyNids: ReadonlySet<number>,
  ): Promise<void> {
    const undecided = new Set(memberships.keys());
    const dropDecided = () => {
      for (const group of undecided) if (memberships.get(group)?.has('join')) undecided.delete(group);
    };
    dropDecided();
    for (let searched = 0; undecided.size > 0 && searched < maxStatesSearched; searched++) {
      const [group = 0] = undecided;
      undecided.delete(group);
      const { found, joined } = await this.#searchState(group, keyNids);
      memberships.set(group, found);
      if (joined.length === 0 || undecided.size === 0) continue;
      for (const [other, more] of await this.#lookUp(undecided, joined))
        memberships.set(other, memberships.get(other)?.union(more) ?? more);
      dropDecided();
    }
  }

  /** Returns the memberships of the users in a state, up to the first joins, and the state keys of joined users. */
  async #searchState(
    group: number,
    keyNids: ReadonlySet<number>,
  ): Promise<{ found: Set<Membership>; joined: number[] }> {
    const entries = [...(await this.#engine.groups.load(group))].filter(([key]) => keyNids.has(key));
    const found = new Set<Membership>();
    const joined: number[] = [];
    for (let start = 0; start < entries.length && joined.length === 0; start += membersAtOnce) {
      const chunk = entries.slice(start, start + membersAtOnce);
      const events = await this.#engine.events.getMany(chunk.map(([, nid]) => nid));
      for (const [key, nid] of chunk) {
        const membership = membershipOf(events.get(nid)?.event.content);
        found.add(membership);
        if (membership === 'join') joined.push(key);
      }
    }
    return { found, joined: joined.slice(0, maxUsersLookedUp) };
  }

  /** The nids of the state keys of the server's member events; the state keys of joined users come first. */
  async #memberKeys(): Promise<Set<number>> {
    const ofServer = [...this.#head.members].filter(([user]) => serverOfUser(user) === this.#serverName);
    const isJoined = ([, membership]: (typeof ofServer)[number]) => membership === 'join';
    const users = [...ofServer.filter(isJoined), ...ofServer.filter((member) => !isJoined(member))];
    const keys = users.map(([user]) => stateMapKey('m.room.member', user));
    const nids = await this.#engine.stateKeys.findMany(keys);
    return new Set(keys.map((key) => nids.get(key)).filter((nid) => nid !== undefined));
  }

  /**
   * The nids of the state keys of the server's member events in the states before some events. They include users who
   * have no entry in the current state because state resolution has removed their joins. Reads small rooms only, to
   * bound the cost.
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
}

/** Whether the memberships of a server's users decide if the server may see the event. */
function dependsOnMemberships(
  visibility: HistoryVisibility | undefined,
  { stateBefore }: StoredEvent,
): boolean {
  return stateBefore !== undefined && (visibility === 'joined' || visibility === 'invited');
}
