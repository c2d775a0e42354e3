import type { Appservice } from '../../appservice-registry/index.ts';
import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import { serverOfUser } from '../../protocol/index.ts';

const noServices: readonly Appservice[] = [];

/** Finds the services that have a user as sender or in their namespaces, and caches them by user. */
export class UserInterest {
  readonly #services: readonly Appservice[];
  readonly #serverName: string;
  /** The services by user id. */
  readonly #cache: Cache<string, readonly Appservice[]>;

  constructor(services: readonly Appservice[], serverName: string, caches: CacheRegistry) {
    this.#services = services;
    this.#serverName = serverName;
    this.#cache = caches.create('appservices_of_users', {
      size: services.length === 0 ? 1 : 10_000,
      maxBytes: MiB,
      sizeOf: (found, userId) => userId.length * 2 + found.length * 8 + 40,
    });
  }

  /** Returns the services that receive the events about a user: the services that have the user as sender or in a namespace. */
  servicesInterestedIn(userId: string): readonly Appservice[] {
    const cached = this.#cache.get(userId);
    if (cached) return cached;
    const matching = this.#services.filter(
      (service) => userId === service.sender || service.users.has(userId),
    );
    const found = matching.length === 0 ? noServices : matching;
    this.#cache.set(userId, found);
    return found;
  }

  /** Returns the services that may act as the user; none for users of other servers. */
  servicesOf(userId: string): readonly Appservice[] {
    return serverOfUser(userId) === this.#serverName ? this.servicesInterestedIn(userId) : noServices;
  }
}
