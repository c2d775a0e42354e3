import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Database, Writer } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { OutboundError } from '../../kernel/outbound/index.ts';
import type { UnreadTotals } from '../notified-users.ts';
import type { PushMetrics } from '../push-metrics.ts';
import type { Pusher } from '../pusher.ts';
import { deletePending, type PendingPush, readPending, trimPending } from '../queue/pending-pushes.ts';
import { deletePushers, readPusher } from '../store.ts';
import type { PusherTables } from '../tables.ts';
import type { Gateways } from './gateway.ts';
import { hidesCounts, type Notifications } from './notification.ts';

export interface HttpPusherDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly gateways: Gateways;
  readonly notifications: Notifications;
  readonly unread: UnreadTotals;
  readonly metrics: PushMetrics;
  readonly stopping: AbortSignal;
}

/**
 * Milliseconds of the first backoff. It doubles with each failure, as in the reference server
 * (`synapse/push/httppusher.py`).
 */
const minBackoff = 1_000;

/** Maximum milliseconds of a backoff. */
const maxBackoff = 3_600_000;

/** Returns the milliseconds of the backoff after a number of consecutive failures. */
const backoffAfter = (failures: number): number => Math.min(minBackoff * 2 ** (failures - 1), maxBackoff);

/** Milliseconds after the first failure to prepare a notification; a failure after that time drops the event. */
const maxPreparation = 10 * 60_000;

/** Maximum number of pending events of a pusher that stay stored after a failure. */
const maxPending = 1_000;

/** Maximum age, in milliseconds, of a pending event that stays stored after a failure. */
const maxAge = 7 * 24 * 3_600_000;

/** The result of a step: the next step follows at once, a timer starts the next step, or nothing remains to be done. */
type Step = 'go on' | 'wait' | 'done';

/**
 * Sends the notifications of one pusher, one after the other. Pending events are on disk, so that a crash loses none.
 */
export class HttpPusher {
  readonly #id: number;
  readonly #deps: HttpPusherDeps;
  readonly #onIdle: () => void;
  #running: Promise<void> | undefined;
  /** Whether work was added since the database was last read. */
  #hasWork = false;
  /** Whether the unread count may have changed since the gateway received it. */
  #badgeIsStale = false;
  /** Number of consecutive steps with an error of this server; failures of the gateway are counted in the database. */
  #failedSteps = 0;
  /** Position of the last event whose notification could not be prepared, and monotonic time of the first failure. */
  #unprepared: { readonly stream: number; readonly since: number } | undefined;
  #timer: Timer | undefined;
  /**
   * Position of the event that the gateway may have received already, because its request timed out. After a restart,
   * this may be the first pending event, whose position is not read yet.
   */
  #maybeReceived: number | 'first pending' | undefined;

  /**
   * @param onIdle called when no notification is pending and no attempt is planned
   * @param isRestored whether the server may have sent the first pending event before the restart
   */
  constructor(id: number, deps: HttpPusherDeps, { onIdle, isRestored = false }: HttpPusherOptions) {
    this.#id = id;
    this.#deps = deps;
    this.#onIdle = onIdle;
    if (isRestored) this.#maybeReceived = 'first pending';
  }

  /** Sends the pending events. */
  sendPending(): void {
    this.#hasWork = true;
    this.#run();
  }

  /** Sends the unread count if it has changed. */
  updateBadge(): void {
    this.#badgeIsStale = true;
    this.sendPending();
  }

  /** Resolves when everything is sent, or the pusher waits for its next attempt. */
  async paused(): Promise<void> {
    await this.#running;
  }

  /** Cancels the next attempt, and resolves when the request that is being sent has ended. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    await this.#running;
  }

  #run(): void {
    if (this.#running || this.#deps.stopping.aborted) return;
    this.#running = this.#work().finally(() => {
      this.#running = undefined;
      if (this.#hasWork) this.#run();
      else if (!this.#timer) this.#onIdle();
    });
  }

  async #work(): Promise<void> {
    while (!this.#deps.stopping.aborted) {
      this.#hasWork = false;
      this.#timer?.cancel();
      this.#timer = undefined;
      let step: Step;
      try {
        step = await this.#step();
        this.#failedSteps = 0;
      } catch (error) {
        if (this.#deps.stopping.aborted) return;
        this.#deps.log.error(
          { err: error, pusher: this.#id },
          'A notification could not be prepared, or its outcome could not be stored',
        );
        this.#failedSteps += 1;
        step = this.#wait(backoffAfter(this.#failedSteps));
      }
      // Work that was added during the step may end the wait: a client that sets its pusher again ends the backoff.
      if (step !== 'go on' && !this.#hasWork) return;
    }
  }

  async #step(): Promise<Step> {
    const { database, clock } = this.#deps;
    const reader = database.reader<PusherTables>();
    const pusher = await readPusher(reader, this.#id);
    if (pusher?.kind === 'email') return 'done';
    if (!pusher?.enabled) return this.#drop();
    const now = clock.now();
    if (pusher.retryAt !== undefined && pusher.retryAt > now) return this.#wait(pusher.retryAt - now);
    const [push] = await readPending(reader, this.#id, 1);
    if (!push) return this.#badgeIsStale ? this.#sendBadge(pusher) : 'done';
    if (push.dueAt > now) return this.#wait(push.dueAt - now);
    return this.#sendEvent(pusher, push);
  }

  async #sendEvent(pusher: Pusher, push: PendingPush): Promise<Step> {
    const { metrics } = this.#deps;
    let prepared: PreparedNotification | undefined;
    try {
      prepared = await this.#prepare(pusher, push);
      this.#unprepared = undefined;
    } catch (error) {
      if (!this.#isDropped(push)) throw error;
      return this.#dropUnprepared(push, error);
    }
    if (!prepared) {
      await this.#write((writer) => deletePending(writer, this.#id, push.stream));
      metrics.countOutcome('superseded');
      return 'go on';
    }
    if (this.#maybeReceived === 'first pending' || this.#maybeReceived === push.stream) metrics.countRepeat();
    this.#maybeReceived = undefined;
    return this.#send(pusher, prepared.notification, prepared.unread, push);
  }

  /** Composes the notification of an event; `undefined` when the event does not notify the user any more. */
  async #prepare(pusher: Pusher, push: PendingPush): Promise<PreparedNotification | undefined> {
    const { notifications } = this.#deps;
    const event = await notifications.event(push);
    if (!event) return undefined;
    const unread = await this.#unread(pusher);
    return { notification: await notifications.ofEvent(pusher, push, event, unread), unread };
  }

  /** Records that the notification of an event could not be prepared. @returns whether the event is dropped */
  #isDropped({ stream }: PendingPush): boolean {
    const now = this.#deps.clock.monotonic();
    if (this.#unprepared?.stream !== stream) this.#unprepared = { stream, since: now };
    return now - this.#unprepared.since >= maxPreparation;
  }

  /** Drops an event whose notification cannot be prepared, because it would block all later events. */
  async #dropUnprepared({ stream, nid, userId, roomId }: PendingPush, error: unknown): Promise<Step> {
    const { log, metrics } = this.#deps;
    await this.#write((writer) => deletePending(writer, this.#id, stream));
    log.error(
      { err: error, pusher: this.#id, userId, roomId, nid },
      'A notification was dropped, because it could not be prepared in ten minutes',
    );
    metrics.countOutcome('dropped');
    return 'go on';
  }

  async #sendBadge(pusher: Pusher): Promise<Step> {
    this.#badgeIsStale = false;
    const unread = await this.#unread(pusher);
    if (unread === undefined || unread === pusher.badge) return 'done';
    return this.#send(pusher, this.#deps.notifications.ofBadge(pusher, unread), unread, undefined);
  }

  async #send(
    pusher: Pusher,
    notification: PreparedNotification['notification'],
    unread: number | undefined,
    push: PendingPush | undefined,
  ): Promise<Step> {
    const { gateways, metrics, log, stopping } = this.#deps;
    let outcome: 'accepted' | 'rejected';
    try {
      outcome = await gateways.send(pusher, notification, stopping);
    } catch (error) {
      if (stopping.aborted) return 'done';
      if (push && error instanceof OutboundError && error.failure === 'timeout')
        this.#maybeReceived = push.stream;
      if (!push) this.#badgeIsStale = true;
      return this.#recordFailure(pusher, error);
    }
    metrics.countOutcome(outcome);
    if (outcome === 'rejected') {
      log.info(
        { userId: pusher.userId, appId: pusher.appId },
        'A push gateway rejected a push key: its pusher is deleted',
      );
      await this.#write(async (writer) => {
        const stored = await readPusher(writer, this.#id);
        // A client that has set the pusher again in the meantime may have made the push key valid.
        if (stored?.setAt === pusher.setAt) await deletePushers(writer, [this.#id]);
      });
      return 'go on';
    }
    await this.#write(async (writer) => {
      if (push) await deletePending(writer, this.#id, push.stream);
      const success = { failures: 0, failing_since: null, retry_at: null, badge: unread ?? null };
      if (pusher.failures > 0 || (unread ?? undefined) !== pusher.badge)
        await writer
          .updateTable('pushers')
          .set(success)
          .where('id', '=', this.#id)
          // A pusher that was set again in the meantime may have another gateway, which this result does not concern.
          .where('set_at', '=', pusher.setAt)
          .execute();
    });
    return 'go on';
  }

  async #recordFailure(pusher: Pusher, error: unknown): Promise<Step> {
    const { clock, log, metrics } = this.#deps;
    metrics.countOutcome('failed');
    const failures = pusher.failures + 1;
    const backoff = backoffAfter(failures);
    const now = clock.now();
    const { userId, appId, failingSince = now } = pusher;
    log.warn(
      { err: error, userId, appId, failures, retryIn: backoff },
      'A push gateway did not accept a notification, which is sent again later',
    );
    const dropped = await this.#write(async (writer) => {
      await writer
        .updateTable('pushers')
        .set({ failures, failing_since: failingSince, retry_at: now + backoff })
        .where('id', '=', this.#id)
        // A pusher that a client has set again in the meantime begins without failures.
        .where('set_at', '=', pusher.setAt)
        .execute();
      return trimPending(writer, this.#id, { max: maxPending, before: now - maxAge });
    });
    if (dropped > 0)
      log.warn({ userId, appId, dropped }, 'Notifications of a failing push gateway were dropped');
    metrics.countOutcome('dropped', dropped);
    return this.#wait(backoff);
  }

  /** Deletes the pending events of a pusher that was deleted or disabled. */
  async #drop(): Promise<Step> {
    this.#badgeIsStale = false;
    const [push] = await readPending(this.#deps.database.reader<PusherTables>(), this.#id, 1);
    if (push) await this.#write((writer) => deletePending(writer, this.#id, Number.MAX_SAFE_INTEGER));
    return 'done';
  }

  #unread(pusher: Pusher): Promise<number> | undefined {
    return hidesCounts(pusher) ? undefined : this.#deps.unread.of(pusher.userId);
  }

  #wait(delay: number): Step {
    this.#timer?.cancel();
    this.#timer = this.#deps.clock.setTimer(delay, () => {
      this.#timer = undefined;
      this.sendPending();
    });
    return 'wait';
  }

  #write<T>(work: (writer: Writer<PusherTables>) => Promise<T>): Promise<T> {
    return this.#deps.database.transaction<PusherTables, T>(work);
  }
}

/** A notification that is ready to be sent, and the unread count that it contains. */
interface PreparedNotification {
  readonly notification: Parameters<Gateways['send']>[1];
  readonly unread: number | undefined;
}

interface HttpPusherOptions {
  readonly onIdle: () => void;
  readonly isRestored?: boolean;
}
