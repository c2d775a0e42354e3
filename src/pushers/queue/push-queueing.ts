import type { Clock } from '../../kernel/clock.ts';
import type { Database, Writer } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { type Randomness, randomFraction } from '../../kernel/randomness.ts';
import { Follower, type StreamReader } from '../../kernel/streams/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { NotifiedUsers } from '../notified-users.ts';
import type { Pusher } from '../pusher.ts';
import type { Pushers } from '../pushers.ts';
import { readPresentPushers } from '../store.ts';
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
   * Runs in the transaction that adds a pending event for a pusher that sends mails; absent on a server that mails no
   * notifications.
   */
  readonly mailAdded: ((writer: Writer<PusherTables>, push: PendingPush) => Promise<void>) | undefined;
  /** Runs after the commit, for a pusher that sends to a gateway. */
  readonly pushAdded: (pusher: Pusher) => void;
}

/** The name of the follower. */
export const queueName = 'pushers';

/** The key of the only row of `pusher_progress`. */
const progressId = 1;

/** Number of pending pushes that one statement adds. */
const rowsAtOnce = 500;

/**
 * Makes events pending for the pushers of the users whom they notify: each exactly once, although the follower repeats
 * work after a crash, because the position is stored in the same transaction.
 */
export class PushQueueing {
  readonly #deps: PushQueueingDeps;
  readonly #events: NewEvents;
  readonly #follower: Follower;
  /** Position up to which events were added. */
  #queued = 0;

  constructor(deps: PushQueueingDeps) {
    this.#deps = deps;
    this.#events = new NewEvents(deps.engine, deps.streams, deps.pushers.users);
    this.#follower = new Follower(deps, {
      name: queueName,
      follow: (after, upTo) => this.#follow(after, upTo),
    });
  }

  async start(): Promise<void> {
    const reader = this.#deps.database.reader<PusherTables>();
    this.#queued =
      (await reader.selectFrom('pusher_progress').select('position').executeTakeFirst())?.position ?? 0;
    await this.#follower.start();
  }

  stop(): Promise<void> {
    return this.#follower.stop();
  }

  /** Resolves when all events so far are pending for the pushers that they concern. */
  caughtUp(): Promise<void> {
    return this.#follower.caughtUp();
  }

  async #follow(after: number, upTo: number): Promise<void> {
    for await (const events of this.#events.between(after, upTo)) {
      const unqueued = events.filter(({ position }) => position > this.#queued);
      if (unqueued.length > 0 && this.#deps.pushers.users.size > 0) await this.#add(unqueued);
    }
  }

  async #add(events: readonly NewEvent[]): Promise<void> {
    const { notified, pushers, clock } = this.#deps;
    const found: { event: NewEvent; users: readonly string[] }[] = [];
    const userIds = new Set<string>();
    for (const event of events) {
      const candidates = await this.#candidates(event);
      if (candidates.length === 0) continue;
      const users = [...(await notified.of(event.stored, candidates)).keys()];
      for (const userId of users) userIds.add(userId);
      if (users.length > 0) found.push({ event, users });
    }
    if (found.length === 0) return;
    const ofUsers = await pushers.ofUsers([...userIds]);
    const addedAt = clock.now();
    const pending: PendingPush[] = [];
    const concerned = new Map<number, Pusher>();
    for (const { event, users } of found) {
      for (const userId of users) {
        for (const pusher of ofUsers.get(userId) ?? []) {
          if (!pusher.enabled || (pusher.kind === 'email' && !this.#deps.mailAdded)) continue;
          concerned.set(pusher.id, pusher);
          pending.push({
            ...placeOf(event),
            pusherId: pusher.id,
            userId,
            addedAt,
            dueAt: this.#dueAt(addedAt),
          });
        }
      }
    }
    if (pending.length === 0) return;
    await this.#store(pending, concerned, events.at(-1)?.position ?? 0);
  }

  async #store(
    pending: readonly PendingPush[],
    concerned: ReadonlyMap<number, Pusher>,
    position: number,
  ): Promise<void> {
    const { database, mailAdded, pushAdded } = this.#deps;
    await database.transaction<PusherTables, void>(async (writer) => {
      // Pushers that were deleted in the meantime must leave no rows behind.
      const present = await readPresentPushers(writer, [...concerned.keys()]);
      const kept = pending.filter(({ pusherId }) => present.has(pusherId));
      for (let start = 0; start < kept.length; start += rowsAtOnce)
        await addPending(writer, kept.slice(start, start + rowsAtOnce));
      await writer
        .insertInto('pusher_progress')
        .values({ id: progressId, position })
        .onConflict((conflict) => conflict.column('id').doUpdateSet({ position }))
        .execute();
      for (const push of kept)
        if (concerned.get(push.pusherId)?.kind === 'email') await mailAdded?.(writer, push);
    });
    this.#queued = position;
    for (const pusher of concerned.values()) if (pusher.kind === 'http') pushAdded(pusher);
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

const placeOf = ({ stored, position }: NewEvent) => ({
  roomId: stored.event.roomId,
  nid: stored.nid,
  stream: position,
});
