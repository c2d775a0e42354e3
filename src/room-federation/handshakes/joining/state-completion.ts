import type { Clock, Timer } from '../../../kernel/clock.ts';
import type { Logger } from '../../../kernel/observability/index.ts';
import { serverOfUser } from '../../../protocol/index.ts';
import type { RoomHead, RoomWriter, ServerAcls } from '../../../room-engine/index.ts';
import { defaultMaxMissing, type StateOptions } from '../../fetching/state-fetcher.ts';
import type { Incoming } from '../../incoming.ts';
import { FetchFailed } from '../../querying/server-query.ts';
import type { ServerHealth } from '../../remote-servers.ts';

export interface StateCompletionDeps {
  readonly engine: Pick<RoomWriter, 'heads' | 'placement' | 'stream' | 'partialRooms' | 'timeline'>;
  readonly serverAcls: Pick<ServerAcls, 'allows'>;
  readonly incoming: Pick<Incoming, 'stateBefore'>;
  readonly serverName: string;
  readonly health: Pick<ServerHealth, 'onReturn'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Maximum number of rooms that are completed at the same time. */
const maxAtOnce = 3;

/** Milliseconds of the first pause before a retry. */
const minBackoff = 10_000;

/** Maximum milliseconds of a pause before a retry. */
const maxBackoff = 1_800_000;

/**
 * Number of attempts at the beginning that require the full state; they take about ten minutes. Later attempts accept a
 * state with missing events, because possibly no server has them. Events whose keys cannot be fetched are required for
 * longer (`MissingKeys`).
 */
const fullStateAttempts = 6;

/** Number of attempts at the beginning that require at least nine tenths of the state; they take about two hours. */
const nearlyFullStateAttempts = 12;

/**
 * Number of attempts in a row (about two hours) that all servers refuse before the local users leave the room. Servers
 * refuse after state resolution has removed the joins of the local users; no event that this server can check proves
 * such a removal.
 */
const maxRefusals = 12;

/**
 * Number of attempts at the beginning that request the state only at the previous events of the join. Later attempts
 * request it also at the join itself.
 */
const attemptsAtPrevEvents = 3;

interface WaitOptions {
  readonly timeout?: number;
  readonly signal?: AbortSignal;
}

interface Completion {
  readonly roomId: string;
  /** The join: the state before it is requested. Undefined until the first attempt after a restart. */
  joinEventId: string | undefined;
  /** Number of failed attempts, without those that `retrySoon` made before their due time. */
  failures: number;
  /** Number of attempts in a row that all servers refused, without early ones as in `failures`. */
  refusals: number;
  pause: Timer | undefined;
  /** When the last attempt ended, in milliseconds since the epoch. */
  triedAt: number;
  /** When the next attempt is due, in milliseconds since the epoch. */
  dueAt: number;
  /** Whether a server that failed in the last attempt may answer now, because something has changed since. */
  mayAnswerNow: boolean;
  /** Resolves when the state is complete or the local users have left, and on shutdown. */
  readonly done: Promise<void>;
  readonly resolve: () => void;
  /** Resolves like `done`, or earlier: when only events whose keys could not be fetched are missing. */
  readonly membersKnown: Promise<void>;
  readonly resolveMembers: () => void;
}

/**
 * Completes the partial state of rooms that were joined without their members. Partial rooms are on disk, so
 * that completion resumes after a restart. Retries until it succeeds or no local user is in the room. Local users leave
 * a room whose servers refuse again and again to return the state.
 * Source: server-server API, `PUT /v2/send_join`, `omit_members`.
 */
export class StateCompletion {
  readonly #deps: StateCompletionDeps;
  readonly #rooms = new Map<string, Completion>();
  readonly #waiting: Completion[] = [];
  readonly #running = new Set<Promise<void>>();
  #isClosed = false;

  constructor(deps: StateCompletionDeps) {
    this.#deps = deps;
  }

  /**
   * Resumes completing the rooms that were partial at the last shutdown, and subscribes to changes that may make a retry
   * succeed.
   */
  async start(): Promise<void> {
    const { engine, health } = this.#deps;
    engine.stream.subscribe(({ roomId, stored, stateChanges }) => {
      if (this.#rooms.size === 0) return;
      // A changed server ACL may admit this server again.
      const isAclChange = [stored.event, ...stateChanges].some(({ type }) => type === 'm.room.server_acl');
      if (isAclChange) this.retrySoon(roomId);
    });
    health.onReturn((server) => void this.#retryForServer(server));
    for (const { roomId } of await this.#deps.engine.partialRooms()) this.begin(roomId);
  }

  /**
   * Completes a room that was joined. If its completion is waiting for a retry, retries soon, because the new join
   * shows that a server answers. After the room was left or deleted, and joined again, begins at once: earlier answers
   * were about another join.
   * @param joinEventId the join, where the caller knows it: the state before it is requested
   */
  begin(roomId: string, joinEventId?: string): void {
    if (this.#isClosed) return;
    const running = this.#rooms.get(roomId);
    if (running && (running.joinEventId === joinEventId || joinEventId === undefined)) {
      this.retrySoon(roomId);
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const { promise: membersKnown, resolve: resolveMembers } = Promise.withResolvers<void>();
    void promise.then(resolveMembers);
    const members = { membersKnown, resolveMembers };
    const initial = { failures: 0, refusals: 0, triedAt: 0, dueAt: 0, pause: undefined };
    const mayAnswerNow = running !== undefined;
    const completion = { roomId, joinEventId, ...initial, mayAnswerNow, done: promise, resolve, ...members };
    this.#rooms.set(roomId, completion);
    if (running) {
      running.pause?.cancel();
      void promise.then(running.resolve);
      void membersKnown.then(running.resolveMembers);
    }
    this.#enqueue(completion);
  }

  /**
   * Shortens the pause before the next attempt because another server may answer. Attempts are still some seconds
   * apart, and attempts before their due time do not count as failures.
   */
  retrySoon(roomId: string): void {
    const completion = this.#rooms.get(roomId);
    if (!completion) return;
    completion.mayAnswerNow = true;
    if (!completion.pause) return;
    completion.pause.cancel();
    this.#pause(completion, completion.triedAt + minBackoff);
  }

  async #retryForServer(server: string): Promise<void> {
    const { engine, log } = this.#deps;
    try {
      for (const roomId of [...this.#rooms.keys()]) {
        const head = await engine.heads.get(roomId);
        const { from, servers = [] } = head?.partial ?? {};
        if (from === server || servers.includes(server) || head?.servers.has(server)) this.retrySoon(roomId);
      }
    } catch (error) {
      if (!this.#isClosed)
        log.warn(
          { err: error, server },
          'Failed to retry the completion of partial rooms after one of their servers became reachable again',
        );
    }
  }

  /**
   * Resolves when the state of the room is complete or its local users have left, and on shutdown; at once for rooms that
   * are not partial.
   * @param timeout milliseconds after which it resolves in any case; by default it waits for as long as it takes
   * @param signal when it aborts, the promise resolves
   */
  whenComplete(roomId: string, options: WaitOptions = {}): Promise<void> {
    return this.#wait(this.#rooms.get(roomId)?.done, options);
  }

  /** Resolves like `whenComplete`, or earlier: when only events whose keys could not be fetched are missing. */
  whenMembersKnown(roomId: string, options: WaitOptions = {}): Promise<void> {
    return this.#wait(this.#rooms.get(roomId)?.membersKnown, options);
  }

  async #wait(done: Promise<void> | undefined, { timeout, signal }: WaitOptions): Promise<void> {
    if (!done || signal?.aborted) return;
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const end = () => resolve();
    const timer = timeout === undefined ? undefined : this.#deps.clock.setTimer(timeout, end);
    signal?.addEventListener('abort', end, { once: true });
    await Promise.race([done, ended]);
    timer?.cancel();
    signal?.removeEventListener('abort', end);
  }

  /** Stops all completions; the next `start` resumes them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { pause, resolve } of this.#rooms.values()) {
      pause?.cancel();
      resolve();
    }
    await Promise.all(this.#running);
  }

  #next(): void {
    while (!this.#isClosed && this.#running.size < maxAtOnce) {
      const completion = this.#waiting.shift();
      if (!completion) return;
      if (!this.#isCurrent(completion)) continue;
      const run = this.#run(completion).finally(() => {
        this.#running.delete(run);
        this.#next();
      });
      this.#running.add(run);
    }
  }

  /** Whether no later join of the room has replaced this completion. */
  #isCurrent(completion: Completion): boolean {
    return this.#rooms.get(completion.roomId) === completion;
  }

  #enqueue(completion: Completion): void {
    completion.pause = undefined;
    this.#waiting.push(completion);
    this.#next();
  }

  /** @param until milliseconds since the epoch */
  #pause(completion: Completion, until: number): void {
    const { clock } = this.#deps;
    completion.pause = clock.setTimer(until - clock.now(), () => this.#enqueue(completion));
  }

  async #run(completion: Completion): Promise<void> {
    const { roomId, mayAnswerNow } = completion;
    const { clock, log } = this.#deps;
    const isEarly = clock.now() < completion.dueAt;
    completion.mayAnswerNow = false;
    try {
      const { failures } = completion;
      await this.#complete(completion, {
        maxMissing: maxMissingAt(failures),
        ignoreBackoff: mayAnswerNow,
        fallsBackToEvent: failures >= attemptsAtPrevEvents,
      });
      if (this.#isCurrent(completion)) this.#end(completion);
    } catch (error) {
      if (this.#isClosed || !this.#isCurrent(completion)) return;
      const now = clock.now();
      completion.triedAt = now;
      if (!isEarly) {
        completion.dueAt = now + Math.min(minBackoff * 2 ** completion.failures++, maxBackoff);
        const outcome = error instanceof FetchFailed ? error.outcome : 'mixed';
        if (outcome === 'all refuse') completion.refusals++;
        else if (outcome !== 'no request') completion.refusals = 0;
        if (completion.refusals >= maxRefusals && (await this.#leaveRefused(roomId))) {
          this.#end(completion);
          return;
        }
      }
      const soonest = now + minBackoff;
      const until = completion.mayAnswerNow ? soonest : Math.max(completion.dueAt, soonest);
      log.info(
        { err: error, roomId, pause: until - now },
        'The state of a partial room could not be completed',
      );
      this.#pause(completion, until);
    }
  }

  #end({ roomId, resolve }: Completion): void {
    this.#rooms.delete(roomId);
    resolve();
  }

  /**
   * Makes the local users leave a room whose servers all refuse to return its state, unless the server ACL of the room
   * denies this server: a later ACL may allow it again.
   * @returns whether the local users have left
   */
  async #leaveRefused(roomId: string): Promise<boolean> {
    const { engine, serverAcls, serverName, log } = this.#deps;
    try {
      const head = await engine.heads.get(roomId);
      if (!head || !(await serverAcls.allows(head, serverName))) return false;
      log.warn(
        { roomId },
        'All servers of a partial room refuse to return its state: the local users leave the room',
      );
      for (const userId of joinedUsersOf(head, serverName)) {
        const content = { membership: 'leave', reason: 'The servers of the room have removed the join' };
        await engine.timeline.append(roomId, {
          type: 'm.room.member',
          stateKey: userId,
          sender: userId,
          content,
        });
      }
      return true;
    } catch (error) {
      if (!this.#isClosed) log.warn({ err: error, roomId }, 'The local users could not leave a partial room');
      return false;
    }
  }

  async #complete(completion: Completion, options: StateOptions): Promise<void> {
    const { engine, incoming, serverName } = this.#deps;
    const { roomId } = completion;
    while (this.#isCurrent(completion)) {
      const head = await engine.heads.get(roomId);
      if (!head?.partial || !head.servers.has(serverName)) return;
      const { from, servers, joinEventId } = head.partial;
      completion.joinEventId = joinEventId;
      // After the room was left and joined again, the state before the earlier join is not needed.
      const isLatestJoin = async () => (await engine.heads.get(roomId))?.partial?.joinEventId === joinEventId;
      let lacksKeys = false;
      const onMissingKeys = () => {
        lacksKeys = true;
      };
      try {
        const state = await incoming.stateBefore(roomId, [from, ...servers], joinEventId, {
          ...options,
          ...(head.lacksMembers && { onMissingKeys }),
        });
        if (!(await isLatestJoin())) continue;
        await engine.placement.completeState(roomId, state, { lacksKeys });
        if (!lacksKeys) return;
        completion.resolveMembers();
        throw new FetchFailed('the state lacks events whose keys could not be fetched');
      } catch (error) {
        if (await isLatestJoin()) throw error;
      }
    }
  }
}

function maxMissingAt(failures: number): number {
  if (failures < fullStateAttempts) return 0;
  return failures < nearlyFullStateAttempts ? defaultMaxMissing : 1;
}

function joinedUsersOf({ members }: RoomHead, serverName: string): string[] {
  const isJoined = ([userId, membership]: readonly [string, string]) =>
    membership === 'join' && serverOfUser(userId) === serverName;
  return [...members].filter(isJoined).map(([userId]) => userId);
}
