import type { Appservice } from '../../appservice-registry/index.ts';
import { type Database, writerFor } from '../../kernel/database/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { RoomInterest } from '../interest/room-interest.ts';
import type { UserInterest } from '../interest/user-interest.ts';
import { insertOutbox, type OutboxRow, readProgress, writeProgress } from '../store.ts';
import type { AppserviceTables } from '../tables.ts';
import type { Fact } from './fact.ts';
import type { FactBuffer } from './fact-buffer.ts';
import { type StoredFactsDeps, storedFacts } from './stored-facts.ts';

export interface FanOutDeps extends StoredFactsDeps {
  readonly database: Database;
  readonly users: UserInterest;
  readonly rooms: RoomInterest;
  readonly buffer: FactBuffer;
  readonly userRooms: Pick<RoomReader['userRooms'], 'of'>;
  /** Called for each user of a service who is invited, joins or leaves. */
  readonly onMember: (userId: string) => void;
  /** Called with the services that have new entries, after these are on disk. */
  readonly onEntries: (services: Iterable<Appservice>) => void;
}

/**
 * Writes into the outbox what each service has to receive. Entries and progress are written in one transaction, so that a
 * crash neither loses nor doubles one.
 */
export class FanOut {
  readonly #deps: FanOutDeps;
  /** Position up to which the outbox is complete; `undefined` until it is read. */
  #progress: number | undefined;

  constructor(deps: FanOutDeps) {
    this.#deps = deps;
  }

  /** Handles the facts in `(after, upTo]` that were not handled before. */
  async follow(after: number, upTo: number): Promise<void> {
    this.#progress ??= (await readProgress(this.#deps.database.reader<AppserviceTables>())) ?? 0;
    const from = Math.max(after, this.#progress);
    if (from >= upTo) return;
    const buffered = this.#deps.buffer.take(from, upTo);
    if (buffered) return this.#handle(buffered, buffered.at(-1)?.position ?? upTo);
    for await (const facts of storedFacts(this.#deps, from, upTo)) {
      await this.#handle(facts, facts.at(-1)?.position ?? upTo);
    }
  }

  async #handle(facts: readonly Fact[], upTo: number): Promise<void> {
    const rows: OutboxRow[] = [];
    const services = new Set<Appservice>();
    for (const [index, fact] of facts.entries()) {
      for (const service of await this.#servicesOf(fact, facts, index)) {
        if (service.registration.url === undefined) continue;
        services.add(service);
        rows.push(rowOf(service.id, fact));
      }
    }
    if (rows.length === 0) return;
    await this.#deps.database.transaction<AppserviceTables, void>(async (writer) => {
      await insertOutbox(writer, rows);
      await writeProgress(writerFor<AppserviceTables>(writer), upTo);
    });
    this.#progress = upTo;
    this.#deps.onEntries(services);
  }

  /** Returns the services that have to receive a fact, and updates the cached services of rooms. */
  async #servicesOf(fact: Fact, facts: readonly Fact[], index: number): Promise<Iterable<Appservice>> {
    const { users, rooms } = this.#deps;
    if (fact.kind === 'event') return this.#ofEvent(fact, facts, index);
    if (fact.kind === 'memberships') {
      for (const step of fact.memberships) rooms.change(fact.roomId, step);
      return [];
    }
    if (fact.kind === 'device list') return this.#ofDeviceList(fact.userId);
    return users
      .of(fact.userId)
      .filter(({ registration }) =>
        fact.kind === 'to-device' ? registration.receivesEphemeral : registration.receivesDeviceChanges,
      );
  }

  async #ofEvent(
    { stored, memberships }: Extract<Fact, { kind: 'event' }>,
    facts: readonly Fact[],
    index: number,
  ): Promise<Iterable<Appservice>> {
    const { users, rooms, onMember } = this.#deps;
    const { roomId, sender, type, stateKey } = stored.event;
    const found = new Set<Appservice>(users.of(sender));
    if (type === 'm.room.member' && stateKey !== undefined) {
      const targets = users.of(stateKey);
      for (const service of targets) found.add(service);
      if (targets.length > 0) onMember(stateKey);
    }
    if (!stored.outOfBand) {
      const former = () => leavers(roomId, [...facts.slice(index), ...this.#deps.buffer.rest]);
      for (const service of await rooms.of(roomId, former)) found.add(service);
    }
    for (const step of memberships) {
      rooms.change(roomId, step);
      // The service receives the join itself as the first event of the room.
      if (step.isJoined) for (const service of users.of(step.userId)) found.add(service);
    }
    return found;
  }

  /** Returns the services that receive changes of device lists and share a room with a user. */
  async #ofDeviceList(userId: string): Promise<Iterable<Appservice>> {
    const { users, rooms, userRooms } = this.#deps;
    const found = new Set<Appservice>(users.of(userId));
    for (const [roomId, { membership }] of await userRooms.of(userId)) {
      if (membership !== 'join') continue;
      for (const service of await rooms.of(roomId)) found.add(service);
    }
    return [...found].filter(({ registration }) => registration.receivesDeviceChanges);
  }
}

/** Returns the users who leave a room by one of the facts: they are joined until then. */
function leavers(roomId: string, facts: readonly Fact[]): string[] {
  return facts.flatMap((fact) => {
    if (fact.kind !== 'event' && fact.kind !== 'memberships') return [];
    const factRoom = fact.kind === 'event' ? fact.stored.event.roomId : fact.roomId;
    if (factRoom !== roomId) return [];
    return fact.memberships.filter((step) => step.wasJoined && !step.isJoined).map(({ userId }) => userId);
  });
}

function rowOf(serviceId: string, fact: Fact): OutboxRow {
  const row = { service_id: serviceId, position: fact.position, event_nid: 0, subject: '' };
  if (fact.kind === 'event') return { ...row, kind: 'event', event_nid: fact.stored.nid };
  if (fact.kind === 'device list') return { ...row, kind: 'device list', subject: fact.userId };
  if (fact.kind === 'memberships') throw new Error('Memberships alone are not sent');
  return { ...row, kind: fact.kind, subject: `${fact.userId} ${fact.deviceId}` };
}
