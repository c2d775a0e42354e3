import { type Membership, membershipOf, serverOfUser, splitStateMapKey } from '../../protocol/index.ts';
import type { StoredEvent } from '../stored-event.ts';

/** An entry of the current state. */
export interface StateEntry {
  readonly nid: number;
  readonly eventId: string;
  /** For `m.room.member` entries. */
  readonly membership: Membership | undefined;
  /** Position on the stream at which the entry was set. */
  readonly stream: number;
}

/** The current state of a room in memory, with the number of members by membership and by server. */
export class HeadState {
  readonly #entries = new Map<string, StateEntry>();
  readonly #members = new Map<string, Membership>();
  readonly #counts = new Map<Membership, number>();
  readonly #servers = new Map<string, number>();
  #changes = 0;

  /** `stateMapKey(type, stateKey)` to its entry. */
  get entries(): ReadonlyMap<string, StateEntry> {
    return this.#entries;
  }

  /** Users with a membership event, and their membership. */
  get members(): ReadonlyMap<string, Membership> {
    return this.#members;
  }

  /** Number of joined users by server. */
  get servers(): ReadonlyMap<string, number> {
    return this.#servers;
  }

  /** Number of changes so far: when it is the same at two times, the state has not changed in between. */
  get changes(): number {
    return this.#changes;
  }

  /** Counts the users with this membership. */
  memberCount(membership: Membership): number {
    return this.#counts.get(membership) ?? 0;
  }

  /** Replaces or removes an entry. @returns the previous entry */
  set(key: string, entry: StateEntry | undefined): StateEntry | undefined {
    const previous = this.#entries.get(key);
    if (entry) this.#entries.set(key, entry);
    else this.#entries.delete(key);
    this.#changes++;
    this.#count(key, previous?.membership, entry?.membership);
    return previous;
  }

  #count(key: string, from: Membership | undefined, to: Membership | undefined): void {
    if (from === undefined && to === undefined) return;
    const [, userId] = splitStateMapKey(key);
    if (from !== to) {
      if (from === 'join') this.#countServer(userId, -1);
      if (to === 'join') this.#countServer(userId, 1);
    }
    if (from) this.#counts.set(from, this.memberCount(from) - 1);
    if (to) {
      this.#counts.set(to, this.memberCount(to) + 1);
      this.#members.set(userId, to);
    } else this.#members.delete(userId);
  }

  #countServer(userId: string, change: number): void {
    const server = serverOfUser(userId);
    const count = (this.#servers.get(server) ?? 0) + change;
    if (count > 0) this.#servers.set(server, count);
    else this.#servers.delete(server);
  }
}

/** Returns the entry of the current state that a state event sets. @param position on the stream */
export function stateEntry(stored: StoredEvent, position: number): StateEntry {
  const { type, eventId, content } = stored.event;
  const membership = type === 'm.room.member' ? membershipOf(content) : undefined;
  return { nid: stored.nid, eventId, membership, stream: position };
}
