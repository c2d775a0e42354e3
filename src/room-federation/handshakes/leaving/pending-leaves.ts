import type { Clock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/database/index.ts';
import type { JobAttempt, Jobs } from '../../../kernel/jobs/index.ts';
import type { KeyedMutex } from '../../../kernel/keyed-mutex.ts';
import type { Logger } from '../../../kernel/observability/index.ts';
import type { BuiltEvent } from '../../../protocol/index.ts';
import type { RoomWriter } from '../../../room-engine/index.ts';
import { isResident } from '../../../room-engine/index.ts';
import { type LeaveRecipients, type LeaveToSend, type SendLeaveDeps, sendLeave } from './send-leave.ts';

export interface PendingLeavesDeps extends SendLeaveDeps {
  readonly engine: Pick<RoomWriter, 'heads' | 'events' | 'userRooms' | 'timeline'>;
  readonly database: Database;
  readonly jobs: Jobs;
  /** Shared with joins of the same room: a leave must not reach a server after a later join. */
  readonly roomMutex: Pick<KeyedMutex, 'run'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly serverName: string;
}

/** A leave that some servers have not received. Stored as the payload of a job. */
export type PendingLeave = LeaveToSend &
  LeaveRecipients & {
    /** The nid of the latest invite or knock that this leave ends. */
    readonly ended: number;
    /** When this server gives up the leave, in milliseconds since the epoch. */
    readonly until: number;
  };

/** The kind of the jobs; the payload is a `PendingLeave`. */
export const sendLeaveJob = 'rooms/send-leave';

/** Milliseconds before the first retry, doubled for each further retry. */
const minBackoff = 60_000;

/** Maximum milliseconds before a retry. */
const maxBackoff = 4 * 3_600_000;

/**
 * Servers are retried for this many milliseconds. A server that is unreachable for longer does not receive the leave.
 */
const maxAge = 26 * 3_600_000;

/** Maximum number of attempts. `maxAge` ends the attempts earlier. */
const maxAttempts = 20;

/** Milliseconds for the first attempt: for all its requests, and for each request. Joins of the room wait meanwhile. */
const firstTimeouts = { totalTimeout: 10_000, timeout: 10_000 };

/** Milliseconds for all requests of a later attempt. Joins of the room wait meanwhile. */
const attemptTimeout = 20_000;

/** Milliseconds for each request of a later attempt. */
const requestTimeout = 10_000;

/**
 * Milliseconds between the time when a server is reachable again and the retry, so that a new invite which the server
 * may send meanwhile is processed before.
 */
const delayOnceReachable = 3_000;

/** Maximum number of pending jobs that are read when a server is reachable again; further jobs run at their time. */
const maxJobsRead = 100;

/**
 * Retries leaves (rejected invites and retracted knocks) that servers did not receive: otherwise the
 * invite would stay in the room for ever. Survives restarts. A leave is given up after `maxAge`, or when the user's
 * membership in the room has changed again.
 */
export class PendingLeaves {
  readonly #deps: PendingLeavesDeps;

  constructor(deps: PendingLeavesDeps) {
    this.#deps = deps;
    deps.jobs.register<PendingLeave>(sendLeaveJob, {
      run: (attempt) => this.#attempt(attempt),
      parallel: 2,
      maxAttempts,
      backoff: (attempts) => Math.min(minBackoff * 2 ** attempts, maxBackoff),
    });
  }

  /**
   * Queues a leave on disk, replacing an older leave of the same user and room, and begins to send it. Joins of
   * the room wait meanwhile.
   * @param ended as in `PendingLeave`
   * @returns `sent` settles when all servers have answered or timed out, with the event that the first server accepted;
   * `undefined` when none did
   */
  async begin(
    leave: LeaveToSend,
    ended: number,
    recipients: LeaveRecipients,
  ): Promise<{ readonly sent: Promise<BuiltEvent | undefined> }> {
    await this.#replace(leave, ended, recipients);
    const send = () => sendLeave(this.#deps, leave, recipients, firstTimeouts);
    const sent = this.#deps.roomMutex
      .run(leave.roomId, async () => {
        const { event, remaining } = await send();
        await this.#replace(leave, ended, remaining);
        return event;
      })
      .catch((error: unknown) => {
        const { roomId, userId } = leave;
        this.#deps.log.warn(
          { err: error, roomId, userId },
          'A leave could not be sent, and is retried later',
        );
        return undefined;
      });
    return { sent };
  }

  async #replace(leave: LeaveToSend, ended: number, remaining: LeaveRecipients): Promise<void> {
    const { clock, jobs, database } = this.#deps;
    const now = clock.now();
    if (!isEmpty(remaining)) {
      return this.#schedule({ ...leave, ...remaining, ended, until: now + maxAge }, now + minBackoff);
    }
    await database.transaction((writer) => jobs.cancel(writer, sendLeaveJob, keyOf(leave)));
  }

  /** Retries the pending leaves of a server after a few seconds. */
  async retrySoonFor(server: string): Promise<void> {
    const { jobs, clock, log } = this.#deps;
    try {
      for (const { payload } of await jobs.list({
        kind: sendLeaveJob,
        state: 'waiting',
        limit: maxJobsRead,
      })) {
        const pending = payload as unknown as PendingLeave;
        const isRecipient = pending.each.includes(server) || pending.others.includes(server);
        if (isRecipient) await this.#schedule(pending, clock.now() + delayOnceReachable);
      }
    } catch (error) {
      log.warn(
        { err: error, server },
        'Pending leaves for a server that is reachable again could not be rescheduled',
      );
    }
  }

  async #schedule(pending: PendingLeave, runAt: number): Promise<void> {
    const { jobs, database } = this.#deps;
    const job = { kind: sendLeaveJob, key: keyOf(pending), payload: pending, runAt, replace: true };
    await database.transaction((writer) => jobs.schedule(writer, job));
  }

  /** Sends a pending leave again. @throws Error when servers are still unreachable */
  #attempt(attempt: JobAttempt<PendingLeave>): Promise<void> {
    return this.#deps.roomMutex.run(attempt.payload.roomId, () => this.#send(attempt));
  }

  async #send({ payload, signal, progress }: JobAttempt<PendingLeave>): Promise<void> {
    const { clock } = this.#deps;
    const { each, others, ...leave } = payload;
    if (clock.now() >= leave.until || !(await this.#mustStillLeave(payload))) return;
    const { remaining } = await sendLeave(this.#deps, leave, payload, {
      signal,
      timeout: requestTimeout,
      totalTimeout: attemptTimeout,
      // Attempts are rare, so they do not burden a server that is in backoff.
      ignoreBackoff: true,
    });
    if (isEmpty(remaining)) return;
    await progress({ ...payload, ...remaining });
    throw new Error(`unreachable servers: ${[...remaining.each, ...remaining.others].join(', ')}`);
  }

  /**
   * Returns whether the leave must still be sent to other servers: the user is still outside of the room, and no local
   * user is in it. When a local user has joined meanwhile, sends the leave as an event of the room instead.
   */
  async #mustStillLeave({ userId, roomId, ended }: PendingLeave): Promise<boolean> {
    const { engine, serverName } = this.#deps;
    const room = (await engine.userRooms.of(userId)).get(roomId);
    const head = await engine.heads.get(roomId);
    if (!isResident(head, serverName) || !head.servers.has(serverName)) {
      return room === undefined || room.membership === 'leave';
    }
    // The leave is sent only if the user's membership event in the room is still the out-of-band invite or knock.
    const entry = head.entry('m.room.member', userId);
    const inviteEvent = entry && (await engine.events.get(entry.nid));
    const outOfBand =
      inviteEvent && (await engine.events.getOutOfBand(head.roomNid, inviteEvent.event.eventId));
    if (outOfBand && outOfBand.nid <= ended) {
      const leave = { type: 'm.room.member', stateKey: userId, sender: userId };
      await engine.timeline.append(roomId, { ...leave, content: { membership: 'leave' } });
    }
    return false;
  }
}

const keyOf = ({ userId, roomId }: LeaveToSend) => JSON.stringify([userId, roomId]);

const isEmpty = ({ each, others }: LeaveRecipients) => each.length + others.length === 0;
