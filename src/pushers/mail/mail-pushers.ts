import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter, Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import type { Mails } from '../../mail/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { Notifications } from '../http/notification.ts';
import type { Pusher } from '../pusher.ts';
import type { AddressOwners } from '../pushers.ts';
import { deletePending, type PendingPush, readPending } from '../queue/pending-pushes.ts';
import { deletePushers, readPusher } from '../store.ts';
import type { PusherTables } from '../tables.ts';
import { readThrottles, roomReadyAt, throttleAfter, writeThrottle } from './mail-throttle.ts';
import type { NotificationMails, UnreadEvent } from './notification-mail.ts';

export interface MailPushersDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly mails: Mails;
  readonly notifications: Notifications;
  readonly notificationMails: NotificationMails;
  readonly addresses: AddressOwners;
}

/** A room about which a user may get a mail. */
interface Payload extends JsonObject {
  readonly pusherId: number;
  readonly roomId: string;
}

const kind = 'pushers/mail';

/** Bounds the pending events that one mail considers. */
const maxPending = 1_000;

/**
 * Mails users the events that they have missed. Each event waits for `email.notif_delay_before_mail`, in case the user
 * reads it in the meantime; when one is due and its room is not throttled, one mail contains all that is pending.
 */
export class MailPushers {
  readonly #deps: MailPushersDeps;
  /** By pusher, so that rooms that are due at the same time cause one mail. */
  readonly #mutex = new KeyedMutex();
  /** `email.notif_delay_before_mail` in milliseconds. */
  readonly #delay: number;

  constructor(deps: MailPushersDeps) {
    this.#deps = deps;
    this.#delay = deps.mails.options.notif_delay_before_mail;
    deps.jobs.register<Payload>(kind, {
      run: ({ payload }) => this.#mutex.run(String(payload.pusherId), () => this.#run(payload)),
    });
  }

  /** Schedules the mail about an event, in the transaction that makes it pending. */
  added(writer: AnyWriter, { pusherId, roomId, addedAt }: PendingPush): Promise<void> {
    return this.#schedule(writer, { pusherId, roomId }, addedAt + this.#delay);
  }

  /** Mails the user if an event of the room is due, or else waits until one is. */
  async #run(room: Payload): Promise<void> {
    const { pusherId, roomId } = room;
    const { database, clock, addresses } = this.#deps;
    const reader = database.reader<PusherTables>();
    const pusher = await readPusher(reader, pusherId);
    const pending = await readPending(reader, pusherId, maxPending);
    const last = pending.at(-1);
    if (!last) return;
    if (pusher?.kind !== 'email' || !pusher.enabled) return this.#delete(pusherId, pending);
    if ((await addresses.findUser('email', pusher.pushkey)) !== pusher.userId) {
      await database.transaction<PusherTables, void>((writer) => deletePushers(writer, [pusherId]));
      return;
    }
    const unread = await this.#unread(pending);
    if (unread.length === 0) return this.#delete(pusherId, pending);
    const throttles = await readThrottles(reader, pusherId);
    const oldest = unread.find(({ push }) => push.roomId === roomId);
    if (!oldest) return;
    const readyAt = Math.max(oldest.push.addedAt + this.#delay, roomReadyAt(throttles.get(roomId)));
    if (readyAt > clock.now()) {
      await database.transaction<PusherTables, void>((writer) => this.#schedule(writer, room, readyAt));
      return;
    }
    await this.#mail(pusher, oldest, unread, throttles);
  }

  async #mail(
    pusher: Pusher,
    cause: UnreadEvent,
    unread: readonly UnreadEvent[],
    throttles: Awaited<ReturnType<typeof readThrottles>>,
  ): Promise<void> {
    const { database, clock, mails, notificationMails } = this.#deps;
    const { id: pusherId, userId } = pusher;
    const mail = await notificationMails.compose(pusher, cause, unread);
    const now = clock.now();
    await database.transaction<PusherTables, void>(async (writer) => {
      // The user may have unsubscribed meanwhile.
      if (!(await readPusher(writer, pusherId))) return;
      await deletePending(writer, pusherId, unread.at(-1)!.push.stream);
      for (const [roomId, events] of Map.groupBy(unread, ({ push }) => push.roomId)) {
        const addedAt = { oldest: events[0]!.push.addedAt, newest: events.at(-1)!.push.addedAt };
        const throttle = throttleAfter(throttles.get(roomId), now, addedAt);
        await writeThrottle(writer, { pusherId, userId, roomId }, throttle);
      }
      await mails.schedule(writer, mail);
    });
  }

  /** The events that still notify the user, in their order. */
  async #unread(pending: readonly PendingPush[]): Promise<UnreadEvent[]> {
    const unread: UnreadEvent[] = [];
    for (const push of pending) {
      const event = await this.#deps.notifications.event(push);
      if (event) unread.push({ push, stored: event.stored });
    }
    return unread;
  }

  async #delete(pusherId: number, pending: readonly PendingPush[]): Promise<void> {
    await this.#deps.database.transaction<PusherTables, number>((writer) =>
      deletePending(writer, pusherId, pending.at(-1)?.stream ?? 0),
    );
  }

  #schedule(writer: AnyWriter, room: Payload, runAt: number): Promise<void> {
    const key = `${room.pusherId} ${room.roomId}`;
    return this.#deps.jobs.schedule(writer, { kind, key, payload: room, runAt });
  }
}
