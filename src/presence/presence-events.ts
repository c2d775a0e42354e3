import type { Clock } from '../kernel/clock.ts';
import { RecentChanges } from '../kernel/recent-changes.ts';
import type { JsonObject } from '../protocol/index.ts';
import type { IgnoredUserLists, MembershipChange, RoomReader, UserRoom } from '../room-engine/index.ts';
import type { PresenceSection, SenderFilter } from '../sync-contract/index.ts';
import { maxMembers } from './announcements.ts';
import type { Presence } from './presence.ts';
import type { PresenceFact } from './presence-fact.ts';
import { offline, type PresenceStatus, statusContent } from './presence-status.ts';

export interface PresenceEventsDeps {
  readonly presence: Presence;
  readonly engine: RoomReader;
  readonly streams: { readonly current: number };
  readonly clock: Clock;
  readonly ignored: IgnoredUserLists;
}

/** The user, range and filter of one sync. */
export interface PresenceRequest {
  readonly userId: string;
  /** The position of the last sync; `undefined` for a first sync, and with `full_state`. */
  readonly after: number | undefined;
  /** The position up to which changes are returned. */
  readonly upTo: number;
  readonly filter: SenderFilter;
}

/** Maximum number of users whose presence one response contains, unless the filter of the sync has a limit. */
const maxUsers = 5_000;

/**
 * Number of changes of presence, and number of joins, that `RecentChanges` keeps; up to twice as many are in memory. A
 * client whose token is older than the kept changes receives the presence of all users in its rooms, except users who
 * were never present.
 */
const maxRecentChanges = 50_000;

/** The `presence` section of a sync. Source: client-server API, `GET /sync`. */
export class PresenceEvents implements PresenceSection {
  readonly #deps: PresenceEventsDeps;
  readonly #recent: RecentChanges<PresenceFact>;
  readonly #joins: RecentChanges<{ readonly roomId: string; readonly users: readonly string[] }>;
  readonly #includeOffline: boolean;

  /** @param includeOffline whether a first sync, and a sync with `full_state`, contain offline users too */
  constructor(deps: PresenceEventsDeps, includeOffline: boolean) {
    this.#deps = deps;
    this.#includeOffline = includeOffline;
    this.#recent = new RecentChanges(deps.streams.current, maxRecentChanges, ({ changes }) => changes.size);
    deps.presence.presenceStream.subscribe((fact, position) => this.#recent.add(fact, position));
    this.#joins = new RecentChanges(deps.streams.current, maxRecentChanges, ({ users }) => users.length);
    if (!deps.presence.isEnabled) return;
    deps.engine.stream.subscribe(({ roomId, membershipChanges }, position) => {
      if (!hasJoin(membershipChanges)) return;
      const users = membershipChanges.filter(isJoin).map(({ userId }) => userId);
      this.#joins.add({ roomId, users }, position);
    });
  }

  /** Returns `m.presence` events. Costs no query, except for offline users. */
  async events({ userId, after, upTo, filter }: PresenceRequest): Promise<JsonObject[]> {
    const { presence, clock, ignored } = this.#deps;
    if (!presence.isEnabled || filter.passesNothing) return [];
    const statuses =
      after === undefined
        ? await this.#all(userId, this.#includeOffline ? 'all' : 'none')
        : await this.#changes(userId, after, upTo);
    if (statuses.size === 0) return [];
    const ignoredUsers = await ignored.of(userId);
    const events: JsonObject[] = [];
    for (const [sender, status] of statuses) {
      if (ignoredUsers.has(sender) || !filter.passes({ type: 'm.presence', sender })) continue;
      if (events.length >= (filter.limit ?? maxUsers)) break;
      events.push({ type: 'm.presence', sender, content: statusContent(status, clock.now()) });
    }
    return events;
  }

  async #changes(userId: string, after: number, upTo: number): Promise<Map<string, PresenceStatus>> {
    const facts = this.#recent.between(after, upTo);
    // The client must learn which users have become offline since the last sync.
    if (!facts) return this.#all(userId, 'stored');
    const rooms = await this.#deps.engine.userRooms.of(userId);
    const newRooms = joinedRoomsOf(rooms.values()).filter(({ stream }) => stream > after);
    const statuses = await this.#notOffline(newRooms);
    for (const fact of facts) {
      const own = fact.changes.get(userId);
      if (own) statuses.set(userId, own);
      for (const user of fact.routed?.get(userId) ?? []) {
        const status = this.#deps.presence.peek(user) ?? fact.changes.get(user);
        if (status) statuses.set(user, status);
      }
      for (const [roomId, users] of fact.rooms) {
        if (rooms.get(roomId)?.membership !== 'join') continue;
        for (const user of users) {
          const status = this.#deps.presence.peek(user) ?? fact.changes.get(user);
          if (status) statuses.set(user, status);
        }
      }
    }
    await this.#addOffline(statuses, await this.#newlySharing(userId, rooms, newRooms, { after, upTo }));
    return statuses;
  }

  /**
   * Returns the users who have begun to share a room with a user since the last sync: the members of rooms that the
   * user has joined, and users who have joined the user's rooms.
   */
  async #newlySharing(
    userId: string,
    rooms: ReadonlyMap<string, UserRoom>,
    newRooms: readonly UserRoom[],
    { after, upTo }: { after: number; upTo: number },
  ): Promise<Set<string>> {
    const newlySharing = new Set<string>();
    for (const { roomId } of newRooms) {
      for (const [member, membership] of (await this.#head(roomId))?.members ?? []) {
        if (membership === 'join' && member !== userId) newlySharing.add(member);
        if (newlySharing.size >= maxUsers) return newlySharing;
      }
    }
    for (const { roomId, users } of this.#joins.between(after, upTo) ?? []) {
      if (rooms.get(roomId)?.membership !== 'join') continue;
      const head = await this.#head(roomId);
      for (const user of users) {
        if (user !== userId && head?.membership(user) === 'join') newlySharing.add(user);
        if (newlySharing.size >= maxUsers) return newlySharing;
      }
    }
    return newlySharing;
  }

  /**
   * Adds users with their last known presence; users who are not in memory are offline.
   * @param onlyStored whether to leave out users who were never present
   */
  async #addOffline(
    found: Map<string, PresenceStatus>,
    users: ReadonlySet<string>,
    onlyStored = false,
  ): Promise<void> {
    const missing = [...users].filter((user) => !found.has(user));
    if (missing.length === 0) return;
    const remembered = await this.#deps.presence.lastKnown(missing);
    for (const user of missing) {
      const known = this.#deps.presence.peek(user);
      if (onlyStored && !known && !remembered.has(user)) continue;
      found.set(user, known ?? { ...offline, ...remembered.get(user), presence: 'offline' });
    }
  }

  /**
   * Returns the presence of all users whom a user may see, up to a bound for offline ones.
   * @param offlineUsers which offline users are included; `stored`: users who were present before
   */
  async #all(userId: string, offlineUsers: 'none' | 'stored' | 'all'): Promise<Map<string, PresenceStatus>> {
    const rooms = joinedRoomsOf((await this.#deps.engine.userRooms.of(userId)).values());
    const statuses = await this.#notOffline(rooms);
    for (const [user, status] of await this.#deps.presence.routedTo(userId)) statuses.set(user, status);
    const own = this.#deps.presence.peek(userId);
    if (own) statuses.set(userId, own);
    if (offlineUsers === 'none') return statuses;
    const missing = new Set<string>();
    for (const { roomId } of rooms) {
      for (const [member, membership] of (await this.#head(roomId))?.members ?? []) {
        if (missing.size >= maxUsers) break;
        if (membership === 'join' && member !== userId && !statuses.has(member)) missing.add(member);
      }
    }
    await this.#addOffline(statuses, missing, offlineUsers === 'stored');
    return statuses;
  }

  /** Returns the presence of the members of some rooms who are not offline, by user id. */
  async #notOffline(rooms: readonly UserRoom[]): Promise<Map<string, PresenceStatus>> {
    const { presence } = this.#deps;
    const statuses = new Map<string, PresenceStatus>();
    for (const { roomId } of rooms) {
      const head = await this.#head(roomId);
      if (!head) continue;
      const candidates =
        presence.usersNotOffline.size < head.members.size ? presence.usersNotOffline : head.members;
      for (const user of candidates.keys()) {
        if (statuses.has(user) || head.membership(user) !== 'join') continue;
        const status = presence.peek(user);
        if (status && status.presence !== 'offline') statuses.set(user, status);
      }
    }
    return statuses;
  }

  /** Returns the head of a room; `undefined` for unknown rooms, and for rooms too large for presence. */
  async #head(roomId: string) {
    const head = await this.#deps.engine.heads.get(roomId);
    return head && head.memberCount('join') <= maxMembers ? head : undefined;
  }
}

const isJoin = ({ from, to }: MembershipChange) => to === 'join' && from !== 'join';

/** Whether any user joins. The length is checked first, because most facts change no membership. */
export const hasJoin = (changes: readonly MembershipChange[]) => changes.length > 0 && changes.some(isJoin);

const joinedRoomsOf = (rooms: Iterable<UserRoom>): UserRoom[] =>
  [...rooms].filter(({ membership }) => membership === 'join');
