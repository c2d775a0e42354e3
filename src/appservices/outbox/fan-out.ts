import type { Appservice } from '../../appservice-registry/index.ts';
import { type Database, writerFor } from '../../kernel/database/index.ts';
import type { UserInterest } from '../interest/user-interest.ts';
import { insertOutbox, type OutboxRow, readProgress, writeProgress } from '../store.ts';
import type { AppserviceTables } from '../tables.ts';
import {
  DeviceListChanges,
  type DeviceListChangesDeps,
  entriesFor,
  type ServiceEntry,
} from './device-list-changes.ts';
import type { Fact, MembershipStep } from './fact.ts';
import type { FactBuffer } from './fact-buffer.ts';
import { type StoredFactsDeps, storedFacts } from './stored-facts.ts';

type MembershipFact = Extract<Fact, { kind: 'memberships' }>;

export interface FanOutDeps extends StoredFactsDeps, DeviceListChangesDeps {
  readonly database: Database;
  readonly users: UserInterest;
  readonly buffer: FactBuffer;
  /** Called with the user for each membership event of a user of a service. */
  readonly onMember: (userId: string) => void;
  /** Called after each transaction that writes entries, also a failed one, with the services of these entries. */
  readonly onEntries: (services: Iterable<Appservice>) => void;
}

/**
 * Writes an entry into the outbox for each fact that a service has to receive. Entries and progress are written in one
 * transaction, so that a crash neither loses nor doubles an entry.
 */
export class FanOut {
  readonly #deps: FanOutDeps;
  /** Position up to which the outbox is complete; `undefined` when it must be read from the database. */
  #progress: number | undefined;
  /** The facts that are being handled, and the index of the current one. */
  #current: { readonly facts: readonly Fact[]; index: number } = { facts: [], index: 0 };
  /** Membership changes of users of services in stored facts after `#current`, for `membersBefore`. */
  #laterMemberships: readonly MembershipFact[] = [];
  readonly #deviceLists: DeviceListChanges;

  constructor(deps: FanOutDeps) {
    this.#deps = deps;
    this.#deviceLists = new DeviceListChanges(deps);
  }

  /**
   * Returns, for the users of a room whose membership is changed by facts that are not handled yet, whether they were
   * joined before these facts.
   */
  membersBefore(roomId: string): ReadonlyMap<string, boolean> {
    const { facts, index } = this.#current;
    return membersBefore(roomId, [
      ...facts.slice(index),
      ...this.#laterMemberships,
      ...this.#deps.buffer.rest,
    ]);
  }

  /** Handles the facts in `(after, upTo]` that were not handled before. */
  async follow(after: number, upTo: number): Promise<void> {
    this.#progress ??= (await readProgress(this.#deps.database.reader<AppserviceTables>())) ?? 0;
    const from = Math.max(after, this.#progress);
    if (from >= upTo) return;
    const buffered = this.#deps.buffer.take(from, upTo);
    if (buffered) return this.#handle(buffered, buffered.at(-1)?.position ?? upTo);
    try {
      this.#laterMemberships = await this.#membershipFacts(from, upTo);
      for await (const facts of storedFacts(this.#deps, from, upTo)) {
        const end = facts.at(-1)?.position ?? upTo;
        this.#laterMemberships = this.#laterMemberships.filter(({ position }) => position > end);
        await this.#handle(facts, end);
      }
    } finally {
      this.#laterMemberships = [];
    }
  }

  /** Reads the stored membership events in `(from, upTo]` that concern users of services. */
  async #membershipFacts(from: number, upTo: number): Promise<MembershipFact[]> {
    const found: MembershipFact[] = [];
    for await (const facts of storedFacts(this.#deps, from, upTo)) {
      for (const fact of facts) {
        if (fact.kind !== 'event') continue;
        const memberships = fact.memberships.filter(
          ({ userId }) => this.#deps.users.servicesOf(userId).length > 0,
        );
        if (memberships.length === 0) continue;
        const { roomId } = fact.stored.event;
        found.push({ kind: 'memberships', position: fact.position, roomId, memberships });
      }
    }
    return found;
  }

  async #handle(facts: readonly Fact[], upTo: number): Promise<void> {
    const rows: OutboxRow[] = [];
    const services = new Set<Appservice>();
    for (const [index, fact] of facts.entries()) {
      this.#current = { facts, index };
      for (const [service, entry] of await this.#entriesOf(fact)) {
        if (service.registration.url === undefined) continue;
        services.add(service);
        rows.push({ ...entry, service_id: service.id, position: fact.position });
      }
    }
    this.#current = { facts: [], index: 0 };
    if (rows.length === 0) return;
    // The commit may succeed although its confirmation is lost: then the progress is read again.
    this.#progress = undefined;
    try {
      await this.#deps.database.transaction<AppserviceTables, void>(async (writer) => {
        await insertOutbox(writer, rows);
        await writeProgress(writerFor<AppserviceTables>(writer), upTo);
      });
      this.#progress = upTo;
    } finally {
      this.#deps.onEntries(services);
    }
  }

  /** Returns the outbox entries of a fact, and updates the cached services of rooms. */
  async #entriesOf(fact: Fact): Promise<ServiceEntry[]> {
    if (fact.kind === 'event') return this.#ofEvent(fact);
    if (fact.kind === 'memberships') return this.#applyMemberships(fact.roomId, fact.memberships);
    if (fact.kind === 'device list') {
      const found = await this.#deviceLists.receiversOf(fact.userId);
      return entriesFor(found, { kind: 'device list', event_nid: 0, subject: fact.userId });
    }
    const { kind, userId, deviceId } = fact;
    const found = this.#deps.users
      .servicesOf(userId)
      .filter(({ registration }) =>
        kind === 'to-device' ? registration.receivesEphemeral : registration.receivesDeviceChanges,
      );
    return entriesFor(found, { kind, event_nid: 0, subject: `${userId} ${deviceId}` });
  }

  async #ofEvent({ stored, memberships }: Extract<Fact, { kind: 'event' }>): Promise<ServiceEntry[]> {
    const { users, rooms, onMember } = this.#deps;
    const { roomId, sender, type, stateKey } = stored.event;
    const found = new Set<Appservice>(users.about(sender));
    if (type === 'm.room.member' && stateKey !== undefined) {
      for (const service of users.about(stateKey)) found.add(service);
      if (users.servicesOf(stateKey).length > 0) onMember(stateKey);
    }
    if (!stored.outOfBand) {
      for (const service of await rooms.servicesOf(roomId)) found.add(service);
    }
    for (const step of memberships) {
      // The service receives the join itself as the first event of the room.
      if (step.isJoined) for (const service of users.servicesOf(step.userId)) found.add(service);
    }
    const lists = await this.#applyMemberships(roomId, memberships);
    return [...entriesFor(found, { kind: 'event', event_nid: stored.nid, subject: '' }), ...lists];
  }

  /** Updates the cached services of a room. @returns the entries about device lists */
  async #applyMemberships(roomId: string, steps: readonly MembershipStep[]): Promise<ServiceEntry[]> {
    const lists = await this.#deviceLists.afterMemberships(roomId, steps);
    for (const step of steps) this.#deps.rooms.change(roomId, step);
    // Excludes this fact from `membersBefore`: the services of the room, when they are loaded again, include its changes.
    this.#current.index++;
    return lists;
  }
}

/** Returns whether users were joined to a room before the first of the facts that changes their membership. */
function membersBefore(roomId: string, facts: readonly Fact[]): ReadonlyMap<string, boolean> {
  const before = new Map<string, boolean>();
  const decided = new Set<string>();
  for (const fact of facts) {
    if (fact.kind !== 'event' && fact.kind !== 'memberships') continue;
    if ((fact.kind === 'event' ? fact.stored.event.roomId : fact.roomId) !== roomId) continue;
    for (const { userId, wasJoined } of fact.memberships) {
      if (!decided.has(userId) && wasJoined !== undefined) before.set(userId, wasJoined);
      decided.add(userId);
    }
  }
  return before;
}
