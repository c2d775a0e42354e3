import { hash } from 'node:crypto';
import type { Clock } from '../kernel/clock.ts';
import { type Database, type Reader, UniqueViolation, type Writer } from '../kernel/database/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import { type Randomness, randomString } from '../kernel/randomness.ts';
import {
  badJson,
  invalidParam,
  type JsonObject,
  limitExceeded,
  MAX_EVENT_BYTES,
  MatrixError,
  notFound,
  suspended,
  tooLarge,
} from '../protocol/index.ts';
import { delayedEventsDevice, isStorableText } from '../room-engine/index.ts';
import type { DelayedSending, EventToDelay, Rooms, Sender } from '../rooms/index.ts';
import type { DelayedEvent, Finalised } from './delayed-event.ts';
import * as store from './store.ts';
import type { DelayedEventTables } from './tables.ts';

export interface DelayedEventsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly jobs: Jobs;
  readonly rooms: Pick<Rooms, 'sending' | 'throttle'>;
  /** Whether an account is suspended or shadow-banned. Absent: no account is. */
  readonly restrictions?: (userId: string) => Promise<Pick<Sender, 'isSuspended' | 'isShadowBanned'>>;
  /** Checks, when a delayed event is sent, whether its user may still send events. Absent: all users may. @throws MatrixError */
  readonly checkSender?: ((userId: string) => Promise<void>) | undefined;
  /** `max_event_delay_duration` in milliseconds; null: delayed events are disabled. */
  readonly maxDelay: number | null;
}

export type Action = 'send' | 'cancel' | 'restart';

const job = 'delayed-events/send';

/** Maximum number of scheduled events per user. */
export const maxScheduled = 100;

/** Maximum characters of the contents and state keys of all scheduled events of a user together. */
const maxScheduledLength = 1024 * 1024;

/** Maximum number of delayed events in one response. */
const maxListed = 1_000;

/** Characters of the contents and state keys of ended events after which a response contains no more of them. */
const maxEndedLength = 1024 * 1024;

/** Milliseconds for which ended delayed events are stored. */
const retention = 7 * 24 * 3_600_000;

const hour = 3_600_000;

/** Characters of an id: about 190 bits of entropy, because the id authorizes requests that manage the delayed event. */
const idLength = 32;

/** Schedules and sends delayed events. Source: MSC4140, "Cancellable delayed events". */
export class DelayedEvents implements DelayedSending {
  readonly #deps: DelayedEventsDeps;
  readonly #reader: Reader<DelayedEventTables>;

  constructor(deps: DelayedEventsDeps) {
    this.#deps = deps;
    this.#reader = deps.database.reader<DelayedEventTables>();
    deps.jobs.register<string>(job, { run: ({ payload }) => this.#sendDue(payload) });
    deps.jobs.every('delayed-events/clean', hour, {
      run: () => this.#write((writer) => store.deleteFinalised(writer, this.#deps.clock.now() - retention)),
    });
  }

  /**
   * Schedules an event for a request in the form of the first proposal: the send endpoint with a query parameter.
   * @returns the delay id
   */
  async schedule(sender: Sender, event: EventToDelay, delay: number): Promise<string> {
    const earlier = await this.earlierDelayId(sender, event);
    if (earlier !== undefined) return earlier;
    this.#checkDelay(delay, 400, 'M_UNKNOWN');
    return this.#schedule(sender, event, delay);
  }

  /**
   * Schedules an event for a request in the form of the accepted proposal: an endpoint of its own. Rejects delays with
   * other errors than `schedule`.
   * @returns the delay id
   */
  async scheduleByOwnEndpoint(sender: Sender, event: EventToDelay, delay: number): Promise<string> {
    this.#checkDelay(delay, 403, 'M_FORBIDDEN');
    return this.#schedule(sender, event, delay);
  }

  /**
   * Returns the delay id of an earlier request of the same device with the same room, event type and transaction id, even
   * if the contents of the two requests differ.
   */
  async earlierDelayId(
    sender: Sender,
    event: Pick<EventToDelay, 'roomId' | 'type' | 'txnId'>,
  ): Promise<string | undefined> {
    const request = requestOf(sender, event);
    if (request === undefined) return undefined;
    return (await store.readDelayedEvent(this.#reader, { request }))?.delayId;
  }

  async #schedule(sender: Sender, event: EventToDelay, delay: number): Promise<string> {
    const { clock, jobs, randomness, rooms } = this.#deps;
    if (sender.isSuspended) throw suspended();
    const { userId } = sender;
    if (![event.roomId, event.type, event.stateKey ?? ''].every(isStorableText)) {
      throw badJson('Invalid characters in a room id, type or state key');
    }
    const request = requestOf(sender, event);
    // Scheduling an event counts towards the rate limit of sending.
    rooms.throttle.message(sender);
    await this.#checkScheduled(userId, event);
    const delayId = randomString(randomness, idLength);
    const since = clock.now();
    const { roomId, type, stateKey, content } = event;
    const added = { delayId, userId, roomId, type, stateKey, content, delay, since, request };
    try {
      await this.#write(async (writer) => {
        await store.insertDelayedEvent(writer, added);
        await jobs.schedule(writer, { kind: job, key: delayId, payload: delayId, runAt: since + delay });
      });
    } catch (error) {
      if (!(error instanceof UniqueViolation) || request === undefined) throw error;
      const other = await store.readDelayedEvent(this.#reader, { request });
      if (!other) throw error;
      return other.delayId;
    }
    return delayId;
  }

  /** Returns a delayed event of the user. @throws MatrixError M_NOT_FOUND */
  async one(userId: string, delayId: string): Promise<DelayedEvent> {
    const event = await this.#get(delayId);
    if (event.userId !== userId) throw unknownDelay();
    return event;
  }

  /**
   * Returns the scheduled events of the user and the delayed events that ended last, in the order of their sending
   * times: at most 1,000 events, and about 1 MiB of ended ones.
   */
  async list(userId: string): Promise<DelayedEvent[]> {
    const scheduled = await store.readScheduledEventsOf(this.#reader, userId, maxListed);
    const limits = { limit: maxListed - scheduled.length, maxLength: maxEndedLength };
    const ended = await store.readEndedEventsOf(this.#reader, userId, limits);
    return [...scheduled, ...ended].sort(
      (a, b) => a.since + a.delay - (b.since + b.delay) || (a.delayId < b.delayId ? -1 : 1),
    );
  }

  /**
   * Sends, cancels or restarts a delayed event; idempotent.
   * @throws MatrixError M_NOT_FOUND; M_UNKNOWN (409) when the event has ended in another way; the errors of sending it
   */
  async act(delayId: string, action: Action): Promise<void> {
    const event = await this.#get(delayId);
    if (event.finalised) return checkRepeated(event.finalised, action);
    if (action === 'restart') await this.#restart(event);
    else if (action === 'send') await this.#send(event, 'action');
    else if (!(await this.#finalise(event, { outcome: 'cancel', reason: 'action' }))) {
      // The event was sent, cancelled or refused at the same time.
      const { finalised } = await this.#get(delayId);
      if (finalised) checkRepeated(finalised, action);
    }
  }

  async #restart({ delayId, delay }: DelayedEvent): Promise<void> {
    const { clock, jobs } = this.#deps;
    const since = clock.now();
    await this.#write(async (writer) => {
      if (!(await store.restartDelayedEvent(writer, delayId, since))) return;
      const delayedJob = { kind: job, key: delayId, payload: delayId, runAt: since + delay };
      await jobs.schedule(writer, { ...delayedJob, replace: true });
    });
  }

  /** Sends an event whose delay is over. */
  async #sendDue(delayId: string): Promise<void> {
    const event = await store.readDelayedEvent(this.#reader, { delayId });
    if (!event || event.finalised) return;
    try {
      await this.#send(event, 'delay');
    } catch (error) {
      if (!(error instanceof MatrixError)) throw error;
      await this.#finalise(event, { outcome: 'error', reason: 'delay', error: error.toJSON() as JsonObject });
    }
  }

  async #send(event: DelayedEvent, reason: Finalised['reason']): Promise<void> {
    const { restrictions, rooms, checkSender } = this.#deps;
    const { sending } = rooms;
    const { delayId, userId, roomId, type, stateKey, content } = event;
    await checkSender?.(userId);
    const sender = {
      userId,
      deviceId: delayedEventsDevice,
      ...(await restrictions?.(userId)),
    };
    const eventId =
      stateKey === undefined
        ? await sending.message(sender, roomId, { type, content }, delayId)
        : await sending.state(sender, roomId, { type, stateKey }, content);
    await this.#finalise(event, { outcome: 'send', reason, eventId });
  }

  /** @returns whether the event was still scheduled */
  async #finalise(
    { delayId }: DelayedEvent,
    result: Pick<Finalised, 'outcome' | 'reason'> & Partial<Finalised>,
  ): Promise<boolean> {
    const { clock, jobs } = this.#deps;
    const finalised = { eventId: undefined, error: undefined, ...result, ts: clock.now() };
    return this.#write(async (writer) => {
      const wasScheduled = await store.finaliseDelayedEvent(writer, delayId, finalised);
      if (wasScheduled) await jobs.cancel(writer, job, delayId);
      return wasScheduled;
    });
  }

  #checkDelay(delay: number, status: number, errcode: 'M_UNKNOWN' | 'M_FORBIDDEN'): void {
    const { maxDelay } = this.#deps;
    if (!Number.isSafeInteger(delay) || delay <= 0)
      throw invalidParam('The delay must be a whole number above 0');
    if (maxDelay === null) {
      throw new MatrixError(status, errcode, 'Delayed events are disabled on this server', {
        'org.matrix.msc4140.errcode': 'M_MAX_DELAY_UNSUPPORTED',
      });
    }
    if (delay > maxDelay) {
      throw new MatrixError(status, errcode, 'The delay is too long', {
        max_delay: maxDelay,
        'org.matrix.msc4140.errcode': 'M_MAX_DELAY_EXCEEDED',
        'org.matrix.msc4140.max_delay': maxDelay,
      });
    }
  }

  /** Refuses events above the maximum size of events, and more scheduled events than a user may have. */
  async #checkScheduled(userId: string, { type, stateKey, content }: EventToDelay): Promise<void> {
    const text = JSON.stringify({ type, state_key: stateKey, content });
    if (Buffer.byteLength(text) > MAX_EVENT_BYTES)
      throw tooLarge(`An event may have at most ${MAX_EVENT_BYTES} bytes`);
    const { count, length, nextAt } = await store.readScheduledTotals(this.#reader, userId);
    if (nextAt === undefined || (count < maxScheduled && length + text.length <= maxScheduledLength)) return;
    throw limitExceeded(Math.max(0, nextAt - this.#deps.clock.now()));
  }

  async #get(delayId: string): Promise<DelayedEvent> {
    const event = await store.readDelayedEvent(this.#reader, { delayId });
    if (!event) throw unknownDelay();
    return event;
  }

  #write<T>(work: (writer: Writer<DelayedEventTables>) => Promise<T>): Promise<T> {
    return this.#deps.database.transaction(work);
  }
}

const unknownDelay = () => notFound('There is no such delayed event');

function checkRepeated({ outcome }: Finalised, action: Action): void {
  const isSameOutcome = action === 'send' ? outcome === 'send' : action === 'cancel' && outcome !== 'send';
  if (!isSameOutcome)
    throw new MatrixError(409, 'M_UNKNOWN', 'The delayed event has already been sent, cancelled or refused');
}

/** Returns a text that identifies the request of a device; `undefined` for a request without transaction id. */
function requestOf(
  sender: Sender,
  { roomId, type, txnId }: Pick<EventToDelay, 'roomId' | 'type' | 'txnId'>,
): string | undefined {
  if (txnId === undefined) return undefined;
  return hash('sha256', JSON.stringify([sender.userId, sender.deviceId, roomId, type, txnId]), 'base64url');
}
