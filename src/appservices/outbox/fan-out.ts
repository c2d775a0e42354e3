import type { Appservice } from '../../appservice-registry/index.ts';
import { type Database, writerFor } from '../../kernel/database/index.ts';
import type { FactBuffer } from '../../kernel/streams/index.ts';
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
import { type StoredFactsDeps, storedFacts, storedMemberships } from './stored-facts.ts';
import { UnhandledFacts } from './unhandled-facts.ts';

export interface FanOutDeps extends StoredFactsDeps, DeviceListChangesDeps {
  readonly database: Database;
  readonly users: UserInterest;
  readonly buffer: FactBuffer<Fact>;
  /** Called for each membership event about a user of a service, with this user. */
  readonly onMember: (userId: string) => void;
  /**
   * Called with the services of the entries after each transaction that writes entries. Called even when the
   * transaction fails, because it may have been committed.
   */
  readonly onEntries: (services: Iterable<Appservice>) => void;
}

/**
 * Writes an entry into the outbox for each fact (an event or another change) that a service has to receive. Entries and
 * progress are written in one transaction, so that a crash loses no entry and writes none twice.
 */
export class FanOut {
  readonly #deps: FanOutDeps;
  /** Position up to which the outbox is complete; `undefined` when it must be read from the database. */
  #progress: number | undefined;
  readonly #unhandled: UnhandledFacts;
  readonly #deviceLists: DeviceListChanges;

  constructor(deps: FanOutDeps) {
    this.#deps = deps;
    this.#unhandled = new UnhandledFacts(deps.buffer);
    this.#deviceLists = new DeviceListChanges(deps);
  }

  /**
   * Returns the memberships in a room before the facts that are not handled yet, for the users with a membership that
   * these facts change.
   * @returns user id to whether the user was joined
   */
  membersBeforeUnhandledFacts(roomId: string): ReadonlyMap<string, boolean> {
    return this.#unhandled.membersBeforeUnhandledFacts(roomId);
  }

  /** Handles the facts in `(after, upTo]` that were not handled before. */
  async follow(after: number, upTo: number): Promise<void> {
    this.#progress ??= (await readProgress(this.#deps.database.reader<AppserviceTables>())) ?? 0;
    const from = Math.max(after, this.#progress);
    if (from >= upTo) return;
    const buffered = this.#deps.buffer.take(from, upTo);
    if (buffered) return this.#handle(buffered, buffered.at(-1)?.position ?? upTo);
    try {
      // For `membersBeforeUnhandledFacts`: the stored members of a room already include changes whose facts are still
      // to be handled.
      this.#unhandled.setStored(await storedMemberships(this.#deps, from, upTo));
      for await (const facts of storedFacts(this.#deps, from, upTo)) {
        await this.#handle(facts, facts.at(-1)?.position ?? upTo);
      }
    } finally {
      this.#unhandled.setStored([]);
    }
  }

  async #handle(facts: readonly Fact[], upTo: number): Promise<void> {
    const rows: OutboxRow[] = [];
    const services = new Set<Appservice>();
    for (const fact of this.#unhandled.handle(facts, upTo)) {
      for (const [service, entry] of await this.#entriesOf(fact)) {
        if (service.registration.url === undefined) continue;
        services.add(service);
        rows.push({ ...entry, service_id: service.id, position: fact.position });
      }
    }
    if (rows.length === 0) return;
    // The commit may succeed although its confirmation is lost. The progress is therefore read again after a failure.
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
    if (fact.kind === 'event') return this.#entriesOfEvent(fact);
    if (fact.kind === 'memberships') return this.#applyMemberships(fact.roomId, fact.memberships);
    if (fact.kind === 'device list') {
      const receivingServices = await this.#deviceLists.receiversOf(fact.userId);
      return entriesFor(receivingServices, { kind: 'device list', event_nid: 0, subject: fact.userId });
    }
    const { kind, userId, deviceId } = fact;
    const receivingServices = this.#deps.users
      .servicesOf(userId)
      .filter(({ registration }) =>
        kind === 'to-device' ? registration.receivesEphemeral : registration.receivesDeviceChanges,
      );
    return entriesFor(receivingServices, { kind, event_nid: 0, subject: `${userId} ${deviceId}` });
  }

  async #entriesOfEvent({ stored, memberships }: Extract<Fact, { kind: 'event' }>): Promise<ServiceEntry[]> {
    const { users, rooms, onMember } = this.#deps;
    const { roomId, sender, type, stateKey } = stored.event;
    const receivingServices = new Set<Appservice>(users.servicesInterestedIn(sender));
    if (type === 'm.room.member' && stateKey !== undefined) {
      for (const service of users.servicesInterestedIn(stateKey)) receivingServices.add(service);
      if (users.servicesOf(stateKey).length > 0) onMember(stateKey);
    }
    if (!stored.outOfBand) {
      for (const service of await rooms.servicesOf(roomId)) receivingServices.add(service);
    }
    for (const step of memberships) {
      // The service receives the join itself as the first event of the room.
      if (step.isJoined) for (const service of users.servicesOf(step.userId)) receivingServices.add(service);
    }
    const deviceListEntries = await this.#applyMemberships(roomId, memberships);
    return [
      ...entriesFor(receivingServices, { kind: 'event', event_nid: stored.nid, subject: '' }),
      ...deviceListEntries,
    ];
  }

  /** Updates the cached services of a room. @returns the entries about device lists */
  async #applyMemberships(roomId: string, steps: readonly MembershipStep[]): Promise<ServiceEntry[]> {
    const entries = await this.#deviceLists.afterMemberships(roomId, steps);
    for (const step of steps) this.#deps.rooms.change(roomId, step);
    // Excludes this fact from `membersBeforeUnhandledFacts`: if the services of the room are loaded again, they must
    // include its changes.
    this.#unhandled.membershipsApplied();
    return entries;
  }
}
