import type { Clock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/database/index.ts';
import type { JobAttempt, Jobs } from '../../../kernel/jobs/index.ts';
import type { KeyedMutex } from '../../../kernel/keyed-mutex.ts';
import type { Logger } from '../../../kernel/observability/index.ts';
import type { RoomWriter } from '../../../room-engine/index.ts';
import { isResident } from '../../../room-engine/index.ts';
import { type LeaveRecipients, type LeaveToSend, type SendLeaveDeps, sendLeave } from './send-leave.ts';
import { withinTime } from './within-time.ts';

export interface PendingLeavesDeps extends SendLeaveDeps {
  readonly engine: Pick<RoomWriter, 'heads' | 'events' | 'userRooms' | 'timeline'>;
  readonly database: Database;
  readonly jobs: Jobs;
  /** In which others get into rooms: a leave must not reach a server after the join that came later. */
  readonly roomMutex: Pick<KeyedMutex, 'run'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly serverName: string;
}

/** A leave of which servers have not heard. */
export type PendingLeave = LeaveToSend &
  LeaveRecipients & {
    /** Invites and knocks up to this one, by nid, were ended. */
    readonly ended: number;
    /** When it is given up, in milliseconds since the epoch. */
    readonly until: number;
  };

const kind = 'rooms/tell-leave';

/** Milliseconds before the first attempt, which doubles for each further one, and at most. */
const [firstPause, longestPause] = [60_000, 4 * 3_600_000];

/** Milliseconds for which servers are tried: who is away for longer finds out by asking. */
const maxAge = 26 * 3_600_000;

/** More attempts than fit into that time. */
const maxAttempts = 20;

/** Milliseconds for one attempt at all servers, and for a request: whoever joins the room meanwhile waits. */
const [attemptTime, requestTime] = [20_000, 10_000];

/** Milliseconds after a server has shown that it is back: it may do so by another invite, which is taken first. */
const afterReturn = 3_000;

/** Such jobs that are looked through when a server is back; the others come in their time. */
const maxLookedAt = 100;

/**
 * Tells servers that could not be reached then that a user has turned their invite down or taken a knock back: an
 * invite that nobody ends stays in the room for ever. Goes on after a restart; given up after a day, and when the user
 * has become something else to the room in the meantime.
 */
export class PendingLeaves {
  readonly #deps: PendingLeavesDeps;

  constructor(deps: PendingLeavesDeps) {
    this.#deps = deps;
    deps.jobs.register<PendingLeave>(kind, {
      run: (attempt) => this.#attempt(attempt),
      parallel: 2,
      maxAttempts: maxAttempts,
      backoff: (attempts) => Math.min(firstPause * 2 ** attempts, longestPause),
    });
  }

  /** Will tell those who are `left`, if anybody is. Of one user and room the last leave counts. @param ended see `UntoldLeave` */
  async replace(leave: LeaveToSend, ended: number, left: LeaveRecipients): Promise<void> {
    const { clock, jobs, database } = this.#deps;
    const now = clock.now();
    if (!isNobody(left)) {
      return this.#schedule({ ...leave, ...left, ended, until: now + maxAge }, now + firstPause);
    }
    await database.transaction((writer) => jobs.cancel(writer, kind, keyOf(leave)));
  }

  /** Goes on soon with what that server has not heard. */
  async retrySoonFor(server: string): Promise<void> {
    const { jobs, clock, log } = this.#deps;
    try {
      for (const { payload } of await jobs.list({ kind, state: 'waiting', limit: maxLookedAt })) {
        const pending = payload as unknown as PendingLeave;
        const isMeant = pending.each.includes(server) || pending.others.includes(server);
        if (isMeant) await this.#schedule(pending, clock.now() + afterReturn);
      }
    } catch (error) {
      log.warn({ err: error, server }, 'What a server that is back has not heard waits for its time');
    }
  }

  async #schedule(pending: PendingLeave, runAt: number): Promise<void> {
    const { jobs, database } = this.#deps;
    const order = { kind, key: keyOf(pending), payload: pending, runAt, replace: true };
    await database.transaction((writer) => jobs.schedule(writer, order));
  }

  /** @throws when servers could still not be reached */
  #attempt(attempt: JobAttempt<PendingLeave>): Promise<void> {
    return this.#deps.roomMutex.run(attempt.payload.roomId, () => this.#tell(attempt));
  }

  async #tell({ payload, signal, progress }: JobAttempt<PendingLeave>): Promise<void> {
    const { clock } = this.#deps;
    const { each, others, ...leave } = payload;
    if (clock.now() >= leave.until || !(await this.#isStillSo(payload))) return;
    const { left } = await withinTime(clock, attemptTime, signal, (within) =>
      // There are few attempts, so servers are asked that could not be reached lately, too.
      sendLeave(this.#deps, leave, payload, { signal: within, timeout: requestTime, ignoreBackoff: true }),
    );
    if (isNobody(left)) return;
    await progress({ ...payload, ...left });
    throw new Error(`can not be reached: ${[...left.each, ...left.others].join(', ')}`);
  }

  /** Whether the user is still out, so that it is right to say so. */
  async #isStillSo({ userId, roomId, ended }: PendingLeave): Promise<boolean> {
    const { engine, serverName } = this.#deps;
    const room = (await engine.userRooms.of(userId)).get(roomId);
    const head = await engine.heads.get(roomId);
    if (!isResident(head, serverName) || !head.servers.has(serverName)) {
      return room === undefined || room.membership === 'leave';
    }
    // Somebody else of this server has got in, and nobody there had heard it: the invite is shown again.
    const entry = head.entry('m.room.member', userId);
    const present = entry && (await engine.events.get(entry.nid));
    const fromOutside = present && (await engine.events.getOutOfBand(head.roomNid, present.event.eventId));
    if (fromOutside && fromOutside.nid <= ended) {
      const leave = { type: 'm.room.member', stateKey: userId, sender: userId };
      await engine.timeline.append(roomId, { ...leave, content: { membership: 'leave' } });
    }
    return false;
  }
}

const keyOf = ({ userId, roomId }: LeaveToSend) => JSON.stringify([userId, roomId]);

const isNobody = ({ each, others }: LeaveRecipients) => each.length + others.length === 0;
