import type { Appservice } from '../../appservice-registry/index.ts';
import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { HeadReader } from '../../room-engine/index.ts';
import type { UserInterest } from './user-interest.ts';

/** The membership of a user in a room after a change. */
export interface MembershipEntry {
  readonly userId: string;
  readonly isJoined: boolean;
}

/** The services that receive the events of a room. */
interface InterestedServices {
  /** The services that have the room id or an alias in a namespace. */
  readonly byName: readonly Appservice[];
  /** The services with joined users, and the ids of these users. */
  readonly users: Map<Appservice, Set<string>>;
}

export interface RoomInterestDeps {
  readonly services: readonly Appservice[];
  readonly users: UserInterest;
  readonly heads: HeadReader;
  readonly caches: CacheRegistry;
  /** Returns the local aliases of a room. */
  readonly aliasesOf: (roomId: string) => Promise<readonly string[]>;
  /**
   * Returns whether users were joined to a room before the unhandled facts: changes that `FanOut` has still to handle.
   * Contains only users whose membership these facts change, by user id. Needed because the stored members of the room
   * already include the changes.
   */
  readonly membersBeforeUnhandledFacts: (roomId: string) => ReadonlyMap<string, boolean>;
}

/**
 * Finds the services that receive the events of a room. The services of a room are cached, and each change of a
 * membership updates them, so that an event does not require a look at all members of its room.
 */
export class RoomInterest {
  readonly #deps: RoomInterestDeps;
  /** By room id. */
  readonly #rooms: Cache<string, InterestedServices>;
  /** Whether a service has a namespace of aliases, so that the aliases of rooms matter. */
  readonly #readsAliases: boolean;
  /** The running loads. `isOutdated`: the services of the room have changed since the load began. */
  readonly #loading = new Set<{ readonly roomId: string; isOutdated: boolean }>();

  constructor(deps: RoomInterestDeps) {
    this.#deps = deps;
    this.#readsAliases = deps.services.some(({ aliases }) => !aliases.isEmpty);
    this.#rooms = deps.caches.create('appservices_of_rooms', {
      size: deps.services.length === 0 ? 1 : 10_000,
      maxBytes: 4 * MiB,
      sizeOf: ({ users }) => users.values().reduce((size, joined) => size + 100 + joined.size * 60, 200),
    });
  }

  /** Returns the services of a room. */
  async servicesOf(roomId: string): Promise<readonly Appservice[]> {
    const interested = this.#rooms.get(roomId) ?? (await this.#load(roomId));
    if (interested.byName.length === 0) return [...interested.users.keys()];
    return [...new Set([...interested.byName, ...interested.users.keys()])];
  }

  /** Reports whether unhandled facts change the membership of a service's user in a room. */
  isChanging(roomId: string): boolean {
    const { users, membersBeforeUnhandledFacts } = this.#deps;
    return membersBeforeUnhandledFacts(roomId)
      .keys()
      .some((userId) => users.servicesOf(userId).length > 0);
  }

  /** Reports whether the services of a room are cached. */
  isCached(roomId: string): boolean {
    return this.#rooms.peek(roomId) !== undefined;
  }

  /** Applies a change of a membership to the cached services of the room. */
  change(roomId: string, { userId, isJoined }: MembershipEntry): void {
    const services = this.#deps.users.servicesOf(userId);
    if (services.length === 0) return;
    this.#outdate(roomId);
    const interested = this.#rooms.get(roomId);
    if (!interested) return;
    for (const service of services) setJoined(interested, service, userId, isJoined);
    this.#rooms.remeasure(roomId);
  }

  /** Removes a room from the cache, for instance after a change of its aliases. */
  forget(roomId: string): void {
    this.#outdate(roomId);
    this.#rooms.delete(roomId);
  }

  /** Prevents the running loads of a room from caching their results. */
  #outdate(roomId: string): void {
    for (const load of this.#loading) if (load.roomId === roomId) load.isOutdated = true;
  }

  async #load(roomId: string): Promise<InterestedServices> {
    const load = { roomId, isOutdated: false };
    this.#loading.add(load);
    try {
      const interested = await this.#find(roomId);
      if (!load.isOutdated) this.#rooms.set(roomId, interested);
      return interested;
    } finally {
      this.#loading.delete(load);
    }
  }

  async #find(roomId: string): Promise<InterestedServices> {
    const { services, users, heads, aliasesOf, membersBeforeUnhandledFacts } = this.#deps;
    const aliases = this.#readsAliases ? await aliasesOf(roomId) : [];
    const interested: InterestedServices = {
      byName: services.filter(
        (service) => service.rooms.has(roomId) || aliases.some((alias) => service.aliases.has(alias)),
      ),
      users: new Map(),
    };
    const head = heads.peek(roomId) ?? (await heads.get(roomId));
    for (const [userId, membership] of head?.members ?? []) {
      if (membership !== 'join') continue;
      for (const service of users.servicesOf(userId)) setJoined(interested, service, userId, true);
    }
    for (const [userId, isJoined] of membersBeforeUnhandledFacts(roomId)) {
      for (const service of users.servicesOf(userId)) setJoined(interested, service, userId, isJoined);
    }
    return interested;
  }
}

function setJoined(
  { users }: InterestedServices,
  service: Appservice,
  userId: string,
  isJoined: boolean,
): void {
  const joined = users.get(service);
  if (isJoined) {
    if (joined) joined.add(userId);
    else users.set(service, new Set([userId]));
  } else if (joined?.delete(userId) && joined.size === 0) users.delete(service);
}
