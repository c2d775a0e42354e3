import type { Clock } from '../../kernel/clock.ts';
import { TimeSlices } from '../../kernel/time-slices.ts';
import { whenReady } from '../../kernel/when-ready.ts';
import type { PushOutcome } from '../../protocol/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { InvitePolicy } from '../../rooms/index.ts';
import { AnsweredEvents } from './answered-events.ts';
import { isReadOnMainTimeline, type NotifiedMember } from './member.ts';
import { outcomeFor } from './outcome.ts';
import type { PushEvaluation } from './push-evaluation.ts';
import type { PreparedEvent } from './push-events.ts';

export interface EventNotificationsDeps {
  readonly engine: RoomReader;
  readonly clock: Clock;
  readonly evaluation: PushEvaluation;
  /** The users' permissions for invites. */
  readonly invitePolicy: InvitePolicy;
  /** `push.enabled`: when false no event notifies any user. */
  readonly enabled: boolean;
}

/**
 * How an event notifies a user: the actions and tweaks of the rule that matched, and whether the event is a highlight.
 */
export interface EventNotification extends PushOutcome {
  /** The root of the event's thread; `undefined` on the main timeline. */
  readonly threadId: string | undefined;
}

/** Number of users whose data are read from the database at the same time. */
const loadedAtOnce = 32;

/** Decides which users a new event notifies, by the same rules as the unread counts. */
export class EventNotifications {
  readonly #deps: EventNotificationsDeps;
  readonly #slices: TimeSlices;
  readonly #answeredEvents: AnsweredEvents;

  constructor(deps: EventNotificationsDeps) {
    this.#deps = deps;
    this.#answeredEvents = new AnsweredEvents(deps.engine, deps.evaluation.events);
    this.#slices = new TimeSlices(deps.clock);
  }

  /**
   * Returns the notifications of an event by user; users whom it does not notify are absent. An event notifies users if
   * they joined before it, and the user whom it invites. Events that are read, redacted or backfilled notify no user.
   * Of the events outside of the timeline, only out-of-band invites notify a user. History visibility is not checked,
   * because joined users may see every event since their join.
   * @param stored an event of the timeline, or an out-of-band invite
   * @param userIds local users; users outside of the room are left out, except the user whom the event invites
   */
  async of(stored: StoredEvent, userIds: Iterable<string>): Promise<Map<string, EventNotification>> {
    const notifications = new Map<string, EventNotification>();
    const { engine, enabled, evaluation } = this.#deps;
    const { roomId } = stored.event;
    const isNew = stored.outOfBand || (stored.stream ?? -1) > 0;
    if (!enabled || !isNew || stored.redactedBy !== undefined) return notifications;
    const head = engine.heads.peek(roomId) ?? (await engine.heads.get(roomId));
    if (!head) return notifications;
    const prepared = await evaluation.events.get(head, stored);
    const add = (userId: string, outcome: PushOutcome | undefined) => {
      if (outcome?.notify) notifications.set(userId, { ...outcome, threadId: prepared.threadId });
    };
    let loading: Promise<void>[] = [];
    for (const userId of userIds) {
      const outcome = this.#evaluate(head, stored, prepared, userId);
      if (!(outcome instanceof Promise)) add(userId, outcome);
      else loading.push(withHandledRejection(outcome.then((loaded) => add(userId, loaded))));
      if (loading.length === loadedAtOnce) {
        await Promise.all(loading);
        loading = [];
      }
      const pause = this.#slices.pauseIfDue();
      if (pause) await pause;
    }
    await Promise.all(loading);
    return notifications;
  }

  /**
   * Returns the notification of an event whose push was delayed, for one user; `undefined` also when the user has sent
   * an event in the same thread since then, and so has read this one.
   */
  async ofPending(stored: StoredEvent, userId: string): Promise<EventNotification | undefined> {
    const notification = (await this.of(stored, [userId])).get(userId);
    if (!notification || (await this.#answeredEvents.has(userId, stored))) return undefined;
    return notification;
  }

  #evaluate(
    head: RoomHead,
    stored: StoredEvent,
    prepared: PreparedEvent,
    userId: string,
  ): PushOutcome | undefined | Promise<PushOutcome | undefined> {
    if (stored.event.sender === userId) return undefined;
    const { members } = this.#deps.evaluation;
    const membership = head.membership(userId);
    if (membership === 'join') {
      if (stored.outOfBand) return undefined;
      return whenReady(members.of(head, userId), (member) => {
        if (isRead(stored, prepared, member)) return undefined;
        const outcome = outcomeFor(member, stored, prepared);
        if (!outcome.notify || head.changedAt <= (stored.stream ?? 0)) return outcome;
        return this.#hasJoinedBefore(stored, userId).then((joined) => (joined ? outcome : undefined));
      });
    }
    if (stored.event.stateKey !== userId || stored.event.content['membership'] !== 'invite') return undefined;
    return this.#inviteOutcome(head, stored, prepared, userId);
  }

  async #inviteOutcome(
    head: RoomHead,
    stored: StoredEvent,
    prepared: PreparedEvent,
    userId: string,
  ): Promise<PushOutcome | undefined> {
    const { engine, invitePolicy, evaluation } = this.#deps;
    const userRoom = (await engine.userRooms.of(userId)).get(head.roomId);
    if (userRoom?.membership !== 'invite' || userRoom.eventNid !== stored.nid) return undefined;
    if ((await invitePolicy.decide(userId, stored.event.sender)) !== 'allow') return undefined;
    return outcomeFor(await evaluation.members.of(head, userId), stored, prepared);
  }

  /** Reports whether the user joined the room before the event. */
  async #hasJoinedBefore({ event, stream = 0 }: StoredEvent, userId: string): Promise<boolean> {
    const userRoom = (await this.#deps.engine.userRooms.of(userId)).get(event.roomId);
    return userRoom?.membership === 'join' && userRoom.stream < stream;
  }
}

/** Returns the promise, which the caller awaits later. Until then its rejection must not count as unhandled. */
function withHandledRejection(promise: Promise<void>): Promise<void> {
  promise.catch(() => undefined);
  return promise;
}

const isRead = (stored: StoredEvent, { threadId }: PreparedEvent, { read }: NotifiedMember): boolean =>
  isReadOnMainTimeline(stored, read) || (stored.stream ?? 0) <= read.thread(threadId);
