import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter, Database, Writer } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { Mails } from '../../mail/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { Notifications } from '../http/notification.ts';
import type { Pusher } from '../pusher.ts';
import type { AddressOwners } from '../pushers.ts';
import {
  deletePending,
  deletePendingOfRoom,
  type PendingPush,
  readPending,
  readPendingOfRoom,
} from '../queue/pending-pushes.ts';
import { deletePushers, readPusher } from '../store.ts';
import type { PusherTables } from '../tables.ts';
import { readThrottles, roomReadyAt, throttleAfter, writeThrottle } from './mail-throttle.ts';
import type { NotificationMails, UnreadEvent } from './notification-mail.ts';

export interface MailPushersDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly log: Logger;
  readonly mails: Mails;
  readonly notifications: Notifications;
  readonly notificationMails: NotificationMails;
  readonly addresses: AddressOwners;
}

/** A room about which a user may receive a mail. */
interface MailJobPayload extends JsonObject {
  readonly pusherId: number;
  readonly roomId: string;
}

const kind = 'pushers/mail';

/**
 * One mail considers at most this many pending events of all rooms, and at most this many of the room that causes the
 * mail.
 */
const maxPending = 1_000;

/** The first attempt of a job that drops events that cannot be read, about nine minutes after the first attempt. */
const droppingAttempt = 10;

/** The pending events that one mail considers. */
interface ConsideredEvents {
  /** The oldest pending events of all rooms, then the newer pending events of the room that causes the mail. */
  readonly pushes: readonly PendingPush[];
  /** Position of the last of the oldest pending events of all rooms. */
  readonly upTo: number;
  /** Position of the last considered event of the room that causes the mail. */
  readonly upToOfRoom: number;
  /** Whether the room that causes the mail may have further pending events. */
  readonly mayRoomHaveMore: boolean;
}

/**
 * Mails users the events that they have missed. Each event waits for `email.notif_delay_before_mail`, in case the user
 * reads it in the meantime; when one is due and its room is not throttled, one mail contains all pending events.
 */
export class MailPushers {
  readonly #deps: MailPushersDeps;
  /**
   * Runs one job of a pusher at a time, so that rooms that are due at the same time cause one mail. The key is the id
   * of the pusher.
   */
  readonly #mutex = new KeyedMutex();
  /** `email.notif_delay_before_mail` in milliseconds. */
  readonly #delay: number;

  constructor(deps: MailPushersDeps) {
    this.#deps = deps;
    this.#delay = deps.mails.options.notif_delay_before_mail;
    deps.jobs.register<MailJobPayload>(kind, {
      run: ({ payload, attempt }) =>
        this.#mutex.run(String(payload.pusherId), () => this.#run(payload, attempt >= droppingAttempt)),
    });
  }

  /**
   * Schedules the mails about events, in the transaction that makes them pending.
   * @param pushes at most one for each pusher and room
   */
  scheduleMails(writer: AnyWriter, pushes: readonly PendingPush[]): Promise<void> {
    const requests = pushes.map(({ pusherId, roomId, addedAt }) =>
      requestOf({ pusherId, roomId }, addedAt + this.#delay),
    );
    return this.#deps.jobs.scheduleAll(writer, requests);
  }

  /**
   * Mails the user if an event of the room is due; otherwise schedules the job again for when one is due.
   * @param dropsUnreadable whether events that cannot be read are dropped; otherwise the job fails
   */
  async #run(room: MailJobPayload, dropsUnreadable: boolean): Promise<void> {
    const { pusherId, roomId } = room;
    const { database, clock, addresses } = this.#deps;
    const reader = database.reader<PusherTables>();
    const pusher = await readPusher(reader, pusherId);
    // When the pusher was changed into one that sends to a gateway, its pending events are sent to the
    // gateway.
    if (pusher?.kind === 'http') return;
    if (!pusher?.enabled) return this.#deleteAll(pusherId);
    const pending = await this.#readConsideredEvents(room);
    if (pending.pushes.length === 0) return;
    if ((await addresses.findUser('email', pusher.pushkey)) !== pusher.userId) {
      await database.transaction<PusherTables, void>((writer) => deletePushers(writer, [pusherId]));
      return;
    }
    const unread = await this.#unreadEvents(pending.pushes, dropsUnreadable);
    if (unread.length === 0) return this.#delete(room, pending);
    const throttles = await readThrottles(reader, pusherId);
    const oldest = unread.find(({ push }) => push.roomId === roomId);
    // No event of this room is unread: only the events of this room are deleted.
    if (!oldest) return this.#delete(room, { ...pending, upTo: 0 });
    const readyAt = Math.max(oldest.push.addedAt + this.#delay, roomReadyAt(throttles.get(roomId)));
    if (readyAt > clock.now()) {
      await database.transaction<PusherTables, void>((writer) => this.#schedule(writer, room, readyAt));
      return;
    }
    await this.#mail(pusher, { room, pending, cause: oldest, unread, throttles });
  }

  async #mail(
    pusher: Pusher,
    {
      room,
      pending,
      cause,
      unread,
      throttles,
    }: {
      readonly room: MailJobPayload;
      readonly pending: ConsideredEvents;
      readonly cause: UnreadEvent;
      readonly unread: readonly UnreadEvent[];
      readonly throttles: Awaited<ReturnType<typeof readThrottles>>;
    },
  ): Promise<void> {
    const { database, clock, mails, notificationMails } = this.#deps;
    const { id: pusherId, userId } = pusher;
    const mail = await notificationMails.compose(pusher, cause, unread);
    const now = clock.now();
    await database.transaction<PusherTables, void>(async (writer) => {
      // The user may have unsubscribed in the meantime.
      if (!(await readPusher(writer, pusherId))) return;
      await this.#deleteIn(writer, room, pending);
      for (const [roomId, events] of Map.groupBy(unread, ({ push }) => push.roomId)) {
        const addedAt = { oldest: events[0]!.push.addedAt, newest: events.at(-1)!.push.addedAt };
        const throttle = throttleAfter(throttles.get(roomId), now, addedAt);
        await writeThrottle(writer, { pusherId, userId, roomId }, throttle);
      }
      await mails.schedule(writer, mail);
    });
  }

  /** Returns the pending events that still notify the user, in the same order. */
  async #unreadEvents(pending: readonly PendingPush[], dropsUnreadable: boolean): Promise<UnreadEvent[]> {
    const { notifications, log } = this.#deps;
    const unread: UnreadEvent[] = [];
    for (const push of pending) {
      try {
        const event = await notifications.event(push);
        if (event) unread.push({ push, stored: event.stored });
      } catch (error) {
        if (!dropsUnreadable) throw error;
        const { pusherId, userId, roomId, nid } = push;
        log.error(
          { err: error, pusher: pusherId, userId, roomId, nid },
          'A mail leaves out an event that could not be read in several attempts',
        );
      }
    }
    return unread;
  }

  /**
   * Reads the oldest pending events of all rooms; when there may be more, also the oldest pending events of the room
   * that causes the mail.
   */
  async #readConsideredEvents(room: MailJobPayload): Promise<ConsideredEvents> {
    const reader = this.#deps.database.reader<PusherTables>();
    const oldest = await readPending(reader, room.pusherId, maxPending);
    const upTo = oldest.at(-1)?.stream ?? 0;
    const considered = { pushes: oldest, upTo, upToOfRoom: upTo, mayRoomHaveMore: false };
    if (oldest.length < maxPending) return considered;
    const pendingOfRoom = await readPendingOfRoom(reader, room, maxPending);
    return {
      pushes: [...oldest, ...pendingOfRoom.filter(({ stream }) => stream > upTo)],
      upTo,
      upToOfRoom: pendingOfRoom.at(-1)?.stream ?? 0,
      mayRoomHaveMore: pendingOfRoom.length === maxPending,
    };
  }

  #delete(room: MailJobPayload, pending: ConsideredEvents): Promise<void> {
    return this.#deps.database.transaction<PusherTables, void>((writer) =>
      this.#deleteIn(writer, room, pending),
    );
  }

  /**
   * Deletes the considered events, and schedules the next mail about the room if it may have further pending
   * events.
   */
  async #deleteIn(
    writer: Writer<PusherTables>,
    room: MailJobPayload,
    pending: ConsideredEvents,
  ): Promise<void> {
    await deletePending(writer, room.pusherId, pending.upTo);
    await deletePendingOfRoom(writer, room, pending.upToOfRoom);
    if (pending.mayRoomHaveMore) await this.#schedule(writer, room, this.#deps.clock.now());
  }

  async #deleteAll(pusherId: number): Promise<void> {
    await this.#deps.database.transaction<PusherTables, number>((writer) =>
      deletePending(writer, pusherId, Number.MAX_SAFE_INTEGER),
    );
  }

  #schedule(writer: AnyWriter, room: MailJobPayload, runAt: number): Promise<void> {
    return this.#deps.jobs.schedule(writer, requestOf(room, runAt));
  }
}

const requestOf = (room: MailJobPayload, runAt: number) => ({
  kind,
  key: `${room.pusherId} ${room.roomId}`,
  payload: room,
  runAt,
});
