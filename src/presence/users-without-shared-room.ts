import { serverOfUser } from '../protocol/index.ts';

/** Maximum number of users of one server. */
const defaultMaxOfServer = 10_000;

/** Maximum number of users of all servers. */
const defaultMaxTotal = 50_000;

/**
 * The remote users who are not offline and share no room with a local user. Modules may route their presence. The number
 * of these users is bounded, because a server can report any number of users who do not exist.
 */
export class UsersWithoutSharedRoom {
  readonly #maxOfServer: number;
  readonly #maxTotal: number;
  readonly #byServer = new Map<string, Set<string>>();
  #total = 0;

  constructor(maxOfServer = defaultMaxOfServer, maxTotal = defaultMaxTotal) {
    this.#maxOfServer = maxOfServer;
    this.#maxTotal = maxTotal;
  }

  /** Whether the set contains a user. */
  has(userId: string): boolean {
    return this.#byServer.get(serverOfUser(userId))?.has(userId) === true;
  }

  /** Adds a user unless there are too many. @returns whether the set contains the user afterwards */
  add(userId: string): boolean {
    if (this.has(userId)) return true;
    const server = serverOfUser(userId);
    const users = this.#byServer.get(server) ?? new Set();
    if (users.size >= this.#maxOfServer || this.#total >= this.#maxTotal) return false;
    this.#byServer.set(server, users.add(userId));
    this.#total += 1;
    return true;
  }

  /** Removes a user, for instance because the user has begun to share a room. */
  delete(userId: string): void {
    const server = serverOfUser(userId);
    const users = this.#byServer.get(server);
    if (!users?.delete(userId)) return;
    this.#total -= 1;
    if (users.size === 0) this.#byServer.delete(server);
  }
}
