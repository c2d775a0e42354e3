import type { Appservice } from '../../appservice-registry/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { type Presence, type PresenceFact, statusContent } from '../../presence/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { Receipt, Receipts } from '../../receipts/index.ts';
import type { Typing } from '../../typing/index.ts';
import type { RoomInterest } from '../interest/room-interest.ts';

export interface EphemeralDataDeps {
  readonly services: readonly Appservice[];
  readonly rooms: RoomInterest;
  readonly typing: Pick<Typing, 'typingStream' | 'inRoom'>;
  readonly receipts: Pick<Receipts, 'receiptStream'>;
  readonly presence: Pick<Presence, 'presenceStream'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Resolves when the memberships so far are handled, or after some seconds. */
  readonly caughtUp: () => Promise<void>;
  /** Called with the services for which there is new data. */
  readonly onData: (services: Iterable<Appservice>) => void;
}

/** Maximum number of items for a service that is down or slow; older items are dropped. */
const maxItems = 1_000;

/**
 * Maximum number of facts that wait to be handled, while the services of a room are read from a slow database; further facts
 * are dropped.
 */
const maxWaiting = 1_000;

/** Milliseconds after which an unsent item is dropped, because it is outdated. */
const maxAge = 60_000;

/** An EDU for a service. */
interface Item {
  readonly data: JsonObject;
  /** When it was added, in milliseconds of the monotonic clock. */
  readonly at: number;
}

/**
 * Collects typing, receipts and presence in memory, for services with `receive_ephemeral`. An item replaces the earlier one
 * about the same room or user.
 */
export class EphemeralData {
  readonly #deps: EphemeralDataDeps;
  /** Items by service id, then by their subject, for instance a room or a user. */
  readonly #items = new Map<string, Map<string, Item>>();
  #working: Promise<void> = Promise.resolve();
  #waiting = 0;
  readonly #receivers: number;

  constructor(deps: EphemeralDataDeps) {
    this.#deps = deps;
    this.#receivers = deps.services.filter(({ registration }) => registration.receivesEphemeral).length;
    if (this.#receivers === 0) return;
    deps.typing.typingStream.subscribe(({ roomId }) => this.#work(() => this.#typing(roomId)));
    deps.receipts.receiptStream.subscribe((receipt) => this.#work(() => this.#receipt(receipt)));
    deps.presence.presenceStream.subscribe((fact) => this.#work(() => this.#presence(fact)));
  }

  /** Removes and returns the data for a service. */
  take(serviceId: string): readonly JsonObject[] {
    const items = this.#items.get(serviceId);
    if (!items) return [];
    this.#items.delete(serviceId);
    const oldest = this.#deps.clock.monotonic() - maxAge;
    return [...items.values()].flatMap(({ data, at }) => (at >= oldest ? [data] : []));
  }

  /** Resolves when all facts so far are handled. */
  idle(): Promise<void> {
    return this.#working;
  }

  #work(task: () => Promise<void>): void {
    if (this.#waiting >= maxWaiting) return;
    this.#waiting += 1;
    this.#working = this.#working
      .then(task)
      .finally(() => {
        this.#waiting -= 1;
      })
      .catch((error: unknown) =>
        this.#deps.log.error({ err: error }, 'Ephemeral data was not sent to application services'),
      );
  }

  async #typing(roomId: string): Promise<void> {
    const content = { user_ids: this.#deps.typing.inRoom(roomId) };
    await this.#add(roomId, `typing ${roomId}`, { type: 'm.typing', room_id: roomId, content });
  }

  async #receipt({ roomId, userId, type, threadId, eventId, ts }: Receipt): Promise<void> {
    if (type !== 'm.read') return;
    const seen = { ts, ...(threadId !== undefined && { thread_id: threadId }) };
    const content = { [eventId]: { [type]: { [userId]: seen } } };
    const about = `receipt ${roomId} ${userId} ${threadId ?? ''}`;
    await this.#add(roomId, about, { type: 'm.receipt', room_id: roomId, content });
  }

  async #presence({ changes, rooms }: PresenceFact): Promise<void> {
    // The services that have received the change, by user: one common room suffices.
    const receivers = new Map<string, Set<string>>();
    for (const [roomId, users] of rooms) {
      for (const userId of users) {
        const status = changes.get(userId);
        const done = receivers.get(userId) ?? new Set<string>();
        if (!status || done.size === this.#receivers) continue;
        receivers.set(userId, done);
        const content = statusContent(status, this.#deps.clock.now());
        const data = { type: 'm.presence', sender: userId, content };
        for (const id of await this.#add(roomId, `presence ${userId}`, data)) done.add(id);
      }
    }
  }

  /** Adds an item for the services of a room. @returns the ids of the services that receive it */
  async #add(roomId: string, about: string, data: JsonObject): Promise<readonly string[]> {
    const { rooms, caughtUp } = this.#deps;
    // Otherwise a service would not receive what happens in a room just after its user has joined.
    if (rooms.isChanging(roomId)) await caughtUp();
    const found = (await rooms.servicesOf(roomId)).filter(
      ({ registration }) => registration.receivesEphemeral,
    );
    if (found.length === 0) return [];
    for (const { id } of found) {
      const items = this.#items.get(id) ?? new Map<string, Item>();
      this.#items.set(id, items);
      items.delete(about);
      items.set(about, { data, at: this.#deps.clock.monotonic() });
      const [oldest] = items.keys();
      if (items.size > maxItems && oldest !== undefined) items.delete(oldest);
    }
    this.#deps.onData(found);
    return found.map(({ id }) => id);
  }
}
