import type { Appservice } from '../../appservice-registry/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { type Presence, type PresenceFact, statusContent } from '../../presence/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { Receipt, Receipts } from '../../receipts/index.ts';
import type { Typing } from '../../typing/index.ts';
import type { RoomInterest } from '../interest/room-interest.ts';
import type { UserInterest } from '../interest/user-interest.ts';

export interface EphemeralDataDeps {
  readonly services: readonly Appservice[];
  readonly rooms: RoomInterest;
  readonly users: Pick<UserInterest, 'servicesInterestedIn'>;
  readonly typing: Pick<Typing, 'typingStream' | 'inRoom'>;
  readonly receipts: Pick<Receipts, 'receiptStream'>;
  readonly presence: Pick<Presence, 'presenceStream'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Resolves when all changes of memberships so far are handled, or after some seconds. */
  readonly caughtUp: () => Promise<void>;
  /** Called with the services that have new data to receive. */
  readonly onData: (services: Iterable<Appservice>) => void;
}

/** Maximum number of items for a service that is down or slow; older items are dropped. */
const maxItems = 1_000;

/**
 * Maximum number of changes that wait to be handled. Changes wait while the services of a room are read from a slow
 * database. Changes above the maximum are dropped.
 */
const maxWaiting = 1_000;

/** Milliseconds after which an unsent item is dropped, because it is outdated. */
const maxAge = 60_000;

/** An EDU for a service. */
interface Item {
  readonly data: JsonObject;
  /** When the item was added, in milliseconds of the monotonic clock. */
  readonly addedAt: number;
}

/**
 * Collects typing, receipts and presence in memory, for services with `receive_ephemeral`. An item replaces the earlier one
 * about the same room or user.
 */
export class EphemeralData {
  readonly #deps: EphemeralDataDeps;
  /** Items by service id, then by their subject, for instance a room or a user. */
  readonly #items = new Map<string, Map<string, Item>>();
  /** Resolves when all queued changes are handled. */
  #working: Promise<void> = Promise.resolve();
  /** Number of queued changes. */
  #waiting = 0;
  /** Number of services that receive ephemeral data. */
  readonly #receiverCount: number;

  constructor(deps: EphemeralDataDeps) {
    this.#deps = deps;
    this.#receiverCount = deps.services.filter(receivesEphemeral).length;
    if (this.#receiverCount === 0) return;
    deps.typing.typingStream.subscribe(({ roomId }) => this.#queue(() => this.#typing(roomId)));
    deps.receipts.receiptStream.subscribe((receipt) => this.#queue(() => this.#receipt(receipt)));
    deps.presence.presenceStream.subscribe((fact) => this.#queue(() => this.#presence(fact)));
  }

  /** Removes all data for a service, and returns those items that are at most `maxAge` old. */
  take(serviceId: string): readonly JsonObject[] {
    const items = this.#items.get(serviceId);
    if (!items) return [];
    this.#items.delete(serviceId);
    const oldest = this.#deps.clock.monotonic() - maxAge;
    return [...items.values()].flatMap(({ data, addedAt }) => (addedAt >= oldest ? [data] : []));
  }

  /** Resolves when all changes so far are handled. */
  idle(): Promise<void> {
    return this.#working;
  }

  #queue(task: () => Promise<void>): void {
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
    const data = { type: 'm.typing', room_id: roomId, content };
    this.#add(await this.#receiversIn(roomId), `typing ${roomId}`, data);
  }

  /** Sends a receipt to the services of the room; a private receipt only to services that have the user in a namespace. */
  async #receipt({ roomId, userId, type, threadId, eventId, ts }: Receipt): Promise<void> {
    const isPublic = type === 'm.read';
    const ofUser = this.#receiversOf(userId);
    if (!isPublic && ofUser.length === 0) return;
    const ofRoom = await this.#receiversIn(roomId);
    const receivers = isPublic ? ofRoom : ofRoom.filter((service) => ofUser.includes(service));
    const receipt = { ts, ...(threadId !== undefined && { thread_id: threadId }) };
    const content = { [eventId]: { [type]: { [userId]: receipt } } };
    const subject = `receipt ${roomId} ${userId} ${type} ${threadId ?? ''}`;
    this.#add(receivers, subject, { type: 'm.receipt', room_id: roomId, content });
  }

  /** Sends the presence of a user to the services of the user's rooms, and to services that have the user in a namespace. */
  async #presence({ changes, rooms }: PresenceFact): Promise<void> {
    // The services that receive the presence of a user, by user: one common room suffices.
    const receivers = new Map<string, Set<Appservice>>();
    for (const userId of changes.keys()) receivers.set(userId, new Set(this.#receiversOf(userId)));
    for (const [roomId, users] of rooms) {
      for (const userId of users) {
        const found = receivers.get(userId);
        if (!found || found.size === this.#receiverCount) continue;
        for (const service of await this.#receiversIn(roomId)) found.add(service);
      }
    }
    for (const [userId, status] of changes) {
      const content = statusContent(status, this.#deps.clock.now());
      const data = { type: 'm.presence', sender: userId, content };
      this.#add([...(receivers.get(userId) ?? [])], `presence ${userId}`, data);
    }
  }

  /** Returns the services of a room that receive ephemeral data. */
  async #receiversIn(roomId: string): Promise<readonly Appservice[]> {
    const { rooms, caughtUp } = this.#deps;
    // Waits for changes of memberships, so that a service receives ephemeral data from just after the join of its user.
    if (rooms.isChanging(roomId)) await caughtUp();
    return (await rooms.servicesOf(roomId)).filter(receivesEphemeral);
  }

  /** Returns the services that receive ephemeral data and have a user in their namespaces. */
  #receiversOf(userId: string): readonly Appservice[] {
    return this.#deps.users.servicesInterestedIn(userId).filter(receivesEphemeral);
  }

  /** Adds an item for services. */
  #add(receivers: readonly Appservice[], subject: string, data: JsonObject): void {
    if (receivers.length === 0) return;
    for (const { id } of receivers) {
      const items = this.#items.get(id) ?? new Map<string, Item>();
      this.#items.set(id, items);
      items.delete(subject);
      items.set(subject, { data, addedAt: this.#deps.clock.monotonic() });
      const [oldest] = items.keys();
      if (items.size > maxItems && oldest !== undefined) items.delete(oldest);
    }
    this.#deps.onData(receivers);
  }
}

const receivesEphemeral = ({ registration }: Appservice): boolean => registration.receivesEphemeral;
