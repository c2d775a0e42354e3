import type { Clock } from '../../kernel/clock.ts';
import type { Database, Writer } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { type Randomness, randomFraction } from '../../kernel/randomness.ts';
import { Follower, type StreamReader } from '../../kernel/streams/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { NotifiedUsers } from '../notified-users.ts';
import type { Pusher } from '../pusher.ts';
import type { Pushers } from '../pushers.ts';
import { readExistingIds } from '../store.ts';
import type { PusherTables } from '../tables.ts';
import { invitedUser, type NewEvent, NewEvents } from './new-events.ts';
import { addPending, type PendingPush } from './pending-pushes.ts';

export interface PushQueueingDeps {
  readonly database: Database;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
  readonly engine: RoomReader;
  readonly pushers: Pushers;
  readonly notified: NotifiedUsers;
  /** `push.jitter_delay` in milliseconds. */
  readonly jitter: number;
  /**
   * Runs in the transaction that adds pending events for pushers that send mails; receives the oldest of these events for each
   * pusher and room. Absent on a server that mails no notifications.
   */
  readonly scheduleMails:
    | ((writer: Writer<PusherTables>, pushes: readonly PendingPush[]) => Promise<void>)
    | undefined;
  /**
   * Runs for each pusher that sends to a gateway, after the transaction that adds its pending events; also when the
   * transaction failed, because the commit may have succeeded.
   */
  readonly onPushAdded: (pusher: Pusher) => void;
}

/** An event, and the users whom it notifies. */
interface NotifyingEvent {
  readonly event: NewEvent;
  readonly users: readonly string[];
}

/** The name of the follower's stored cursor. */
export const queueName = 'pushers';

/** The key of the only row of `pusher_progress`. */
const progressId = 1;

/** Number of pending pushes that one statement adds. */
const rowsAtOnce = 500;

/** When this number of users is notified, pending pushes are stored before further events are evaluated. */
const maxUsersAtOnce = 5_000;

/**
 * Makes events pending for the pushers of the users whom they notify. Each event becomes pending exactly once, although
 * the follower repeats work after a crash: the position is stored in the same transaction.
 */
export class PushQueueing {
  readonly #deps: PushQueueingDeps;
  readonly #events: NewEvents;
  readonly #follower: Follower;
  /** Events up to this position are pending; `undefined` until the stored position is read, at first and after a failed transaction. */
  #queued: number | undefined;

  constructor(deps: PushQueueingDeps) {
    this.#deps = deps;
    this.#events = new NewEvents(deps.engine, deps.streams, deps.pushers.users);
    this.#follower = new Follower(deps, {
      name: queueName,
      follow: (after, upTo) => this.#follow(after, upTo),
    });
  }

  /** Follows the stream of rooms, from the last stored position on. */
  async start(): Promise<void> {
    await this.#follower.start();
  }

  /** Stops following; the next start continues. */
  stop(): Promise<void> {
    return this.#follower.stop();
  }

  /** Resolves when all events so far are pending for the pushers that they concern. */
  caughtUp(): Promise<void> {
    return this.#follower.caughtUp();
  }

  async #follow(after: number, upTo: number): Promise<void> {
    for await (const events of this.#events.between(after, upTo)) {
      this.#queued ??= await this.#readProgress();
      const queued = this.#queued;
      const unqueued = events.filter(({ position }) => position > queued);
      if (unqueued.length > 0 && this.#deps.pushers.users.size > 0) await this.#addAll(unqueued);
    }
  }

  async #readProgress(): Promise<number> {
    const reader = this.#deps.database.reader<PusherTables>();
    return (await reader.selectFrom('pusher_progress').select('position').executeTakeFirst())?.position ?? 0;
  }

  /** Adds events in parts, so that events in large rooms need a bounded amount of memory and short transactions. */
  async #addAll(events: readonly NewEvent[]): Promise<void> {
    let notifyingEvents: NotifyingEvent[] = [];
    let count = 0;
    for (const [index, event] of events.entries()) {
      const candidates = await this.#candidates(event);
      const users =
        candidates.length === 0 ? [] : [...(await this.#deps.notified.of(event.stored, candidates)).keys()];
      if (users.length > 0) notifyingEvents.push({ event, users });
      count += users.length;
      const isLast = index === events.length - 1;
      // Events at one position are stored together, since progress is stored as a position.
      if (!isLast && (count < maxUsersAtOnce || events[index + 1]!.position === event.position)) continue;
      if (notifyingEvents.length > 0) await this.#add(notifyingEvents, event.position);
      notifyingEvents = [];
      count = 0;
    }
  }

  async #add(notifyingEvents: readonly NotifyingEvent[], position: number): Promise<void> {
    const { pushers, clock } = this.#deps;
    const pushersOfUsers = await pushers.ofUsers([...new Set(notifyingEvents.flatMap(({ users }) => users))]);
    const addedAt = clock.now();
    const pending: PendingPush[] = [];
    const pushersById = new Map<number, Pusher>();
    for (const { event, users } of notifyingEvents) {
      for (const userId of users) {
        for (const pusher of pushersOfUsers.get(userId) ?? []) {
          if (!pusher.enabled || (pusher.kind === 'email' && !this.#deps.scheduleMails)) continue;
          pushersById.set(pusher.id, pusher);
          pending.push({
            ...eventFields(event),
            pusherId: pusher.id,
            userId,
            addedAt,
            dueAt: this.#dueAt(addedAt),
          });
        }
      }
    }
    if (pending.length === 0) return;
    await this.#store(pending, pushersById, position);
  }

  async #store(
    pending: readonly PendingPush[],
    pushersById: ReadonlyMap<number, Pusher>,
    position: number,
  ): Promise<void> {
    const { database, scheduleMails, onPushAdded } = this.#deps;
    // The commit may have succeeded although its confirmation was lost, so the position is read again.
    this.#queued = undefined;
    try {
      await database.transaction<PusherTables, void>(async (writer) => {
        // Pushers that were deleted in the meantime must leave no rows behind.
        const existing = await readExistingIds(writer, [...pushersById.keys()]);
        const pushesOfExisting = pending.filter(({ pusherId }) => existing.has(pusherId));
        for (let start = 0; start < pushesOfExisting.length; start += rowsAtOnce)
          await addPending(writer, pushesOfExisting.slice(start, start + rowsAtOnce));
        await writer
          .insertInto('pusher_progress')
          .values({ id: progressId, position })
          .onConflict((conflict) => conflict.column('id').doUpdateSet({ position }))
          .execute();
        const oldestPushes = new Map<string, PendingPush>();
        for (const push of pushesOfExisting) {
          // The oldest event of a room schedules the mail about the room.
          const key = `${push.pusherId} ${push.roomId}`;
          if (pushersById.get(push.pusherId)?.kind === 'email' && !oldestPushes.has(key))
            oldestPushes.set(key, push);
        }
        if (oldestPushes.size > 0) await scheduleMails?.(writer, [...oldestPushes.values()]);
      });
      this.#queued = position;
    } finally {
      for (const pusher of pushersById.values()) if (pusher.kind === 'http') onPushAdded(pusher);
    }
  }

  /** Returns the users with pushers whom an event may notify: joined members, and the user whom it invites. */
  async #candidates({ stored }: NewEvent): Promise<string[]> {
    const { engine, pushers } = this.#deps;
    const invited = invitedUser(stored);
    const candidates = invited !== undefined && pushers.users.has(invited) ? [invited] : [];
    const head = engine.heads.peek(stored.event.roomId) ?? (await engine.heads.get(stored.event.roomId));
    if (!head || stored.outOfBand) return candidates;
    if (pushers.users.size < head.members.size) {
      for (const userId of pushers.users) if (head.membership(userId) === 'join') candidates.push(userId);
    } else {
      for (const [userId, membership] of head.members)
        if (membership === 'join' && pushers.users.has(userId)) candidates.push(userId);
    }
    return candidates;
  }

  /** Returns a random time within the jitter, so that simultaneous notifications do not reveal which users share a room. */
  #dueAt(addedAt: number): number {
    const { jitter, randomness } = this.#deps;
    return jitter === 0 ? addedAt : addedAt + Math.floor(randomFraction(randomness) * jitter);
  }
}

const eventFields = ({ stored, position }: NewEvent) => ({
  roomId: stored.event.roomId,
  nid: stored.nid,
  stream: position,
});
