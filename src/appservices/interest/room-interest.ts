import type { Appservice } from '../../appservice-registry/index.ts';
import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { HeadReader } from '../../room-engine/index.ts';
import type { UserInterest } from './user-interest.ts';

/** The membership of a user in a room after a change. */
export interface MembershipEntry {
  readonly userId: string;
  readonly isJoined: boolean;
}

/** The services of a room: those that have its id or an alias in a namespace, and those with joined users. */
interface Interested {
  readonly byName: readonly Appservice[];
  readonly users: Map<Appservice, Set<string>>;
}

export interface RoomInterestDeps {
  readonly services: readonly Appservice[];
  readonly users: UserInterest;
  readonly heads: HeadReader;
  readonly caches: CacheRegistry;
  /** Returns the local aliases of a room. */
  readonly aliasesOf: (roomId: string) => Promise<readonly string[]>;
}

/**
 * Finds the services that receive the events of a room. They are cached by room and updated by each change of a
 * membership, so that an event is not matched against the members of its room.
 */
export class RoomInterest {
  readonly #deps: RoomInterestDeps;
  readonly #rooms: Cache<string, Interested>;
  readonly #readsAliases: boolean;

  constructor(deps: RoomInterestDeps) {
    this.#deps = deps;
    this.#readsAliases = deps.services.some(({ aliases }) => !aliases.isEmpty);
    this.#rooms = deps.caches.create('appservices_of_rooms', {
      size: deps.services.length === 0 ? 1 : 10_000,
      maxBytes: 2 * MiB,
      sizeOf: ({ users }) => users.values().reduce((size, joined) => size + 100 + joined.size * 60, 200),
    });
  }

  /**
   * Returns the services of a room.
   * @param formerMembers returns users who were joined at the time of the event and may have left since
   */
  async of(
    roomId: string,
    formerMembers: () => readonly string[] = () => [],
  ): Promise<readonly Appservice[]> {
    const known = this.#rooms.get(roomId) ?? (await this.#load(roomId, formerMembers()));
    if (known.byName.length === 0) return [...known.users.keys()];
    return [...new Set([...known.byName, ...known.users.keys()])];
  }

  /** Applies a change of a membership to the cached services of the room. */
  change(roomId: string, { userId, isJoined }: MembershipEntry): void {
    const services = this.#deps.users.of(userId);
    if (services.length === 0) return;
    const known = this.#rooms.get(roomId);
    if (known) for (const service of services) setJoined(known, service, userId, isJoined);
  }

  /** Removes a room from the cache, for instance after a change of its aliases. */
  forget(roomId: string): void {
    this.#rooms.delete(roomId);
  }

  async #load(roomId: string, formerMembers: readonly string[]): Promise<Interested> {
    const { services, users, heads, aliasesOf } = this.#deps;
    const aliases = this.#readsAliases ? await aliasesOf(roomId) : [];
    const found: Interested = {
      byName: services.filter(
        (service) => service.rooms.has(roomId) || aliases.some((alias) => service.aliases.has(alias)),
      ),
      users: new Map(),
    };
    const head = heads.peek(roomId) ?? (await heads.get(roomId));
    for (const [userId, membership] of head?.members ?? []) {
      if (membership !== 'join') continue;
      for (const service of users.of(userId)) setJoined(found, service, userId, true);
    }
    for (const userId of formerMembers) {
      for (const service of users.of(userId)) setJoined(found, service, userId, true);
    }
    this.#rooms.set(roomId, found);
    return found;
  }
}

function setJoined({ users }: Interested, service: Appservice, userId: string, isJoined: boolean): void {
  const joined = users.get(service);
  if (isJoined) {
    if (joined) joined.add(userId);
    else users.set(service, new Set([userId]));
  } else if (joined?.delete(userId) && joined.size === 0) users.delete(service);
}
