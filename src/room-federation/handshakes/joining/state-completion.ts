import type { Clock, Timer } from '../../../kernel/clock.ts';
import type { Logger } from '../../../kernel/observability/index.ts';
import type { RoomWriter } from '../../../room-engine/index.ts';
import { defaultMaxMissing, type StateOptions } from '../../fetching/state-fetcher.ts';
import type { Incoming } from '../../incoming.ts';
import type { ServerHealth } from '../../remote-servers.ts';

export interface StateCompletionDeps {
  readonly engine: Pick<RoomWriter, 'heads' | 'placement' | 'stream' | 'partialRooms'>;
  readonly incoming: Pick<Incoming, 'stateBefore'>;
  readonly serverName: string;
  readonly health: Pick<ServerHealth, 'onReturn'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Rooms that are completed at a time. */
const maxAtOnce = 3;

/** Milliseconds before another attempt: at first, and at most. */
const [firstPause, longestPause] = [10_000, 1_800_000];

/**
 * Attempts, within ten minutes, at which the state has to be whole, and within two hours, at which most of it has to be
 * there. A server whose keys can not be had at the moment would else be missing in it for ever. Those of servers that
 * are gone will never be had, and an old room may have many of them: a room that is joined with all of its members
 * lacks them as well.
 */
const [wholeAttempts, usualAttempts] = [6, 12];

interface Completion {
  readonly roomId: string;
  failures: number;
  pause: Timer | undefined;
  /** When the last attempt ended, and when the next one is due, in milliseconds since the epoch. */
  triedAt: number;
  dueAt: number;
  /** Something has happened after which a server may help that did not before. */
  isEncouraged: boolean;
  /** Resolves when the room is complete. */
  readonly done: Promise<void>;
  readonly resolve: () => void;
}

/**
 * Completes the state of rooms that were joined without their members. Which rooms those are is on disk, so that it
 * goes on where it was when the server starts again; it is tried until it succeeds, or nobody is in the room any more.
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

  /** Takes up the rooms that were not complete when the program ended, and looks out for what may help. */
  async start(): Promise<void> {
    const { engine, health } = this.#deps;
    engine.stream.subscribe(({ roomId, stored, stateChanges }) => {
      if (this.#rooms.size === 0) return;
      // The other servers may let this one in again.
      const ofAcl = [stored.event, ...stateChanges].some(({ type }) => type === 'm.room.server_acl');
      if (ofAcl) this.retrySoon(roomId);
    });
    health.onReturn((server) => void this.#serverIsBack(server));
    for (const { roomId } of await this.#deps.engine.partialRooms()) this.begin(roomId);
  }

  /** Completes a room that has been joined. Where that is waited with, it is tried at once: a server has helped. */
  begin(roomId: string): void {
    if (this.#isClosed) return;
    if (this.#rooms.has(roomId)) {
      this.retrySoon(roomId);
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const times = { failures: 0, triedAt: 0, dueAt: 0, pause: undefined, isEncouraged: false };
    const completion = { roomId, ...times, done: promise, resolve };
    this.#rooms.set(roomId, completion);
    this.#takeUp(completion);
  }

  /**
   * Does not wait any longer with a room: there is a chance that another server helps now. Some seconds pass between
   * two attempts all the same, and those that come out of turn do not count.
   */
  retrySoon(roomId: string): void {
    const completion = this.#rooms.get(roomId);
    if (!completion) return;
    completion.isEncouraged = true;
    if (!completion.pause) return;
    completion.pause.cancel();
    this.#pause(completion, completion.triedAt + firstPause);
  }

  async #serverIsBack(server: string): Promise<void> {
    const { engine, log } = this.#deps;
    try {
      for (const roomId of [...this.#rooms.keys()]) {
        const head = await engine.heads.get(roomId);
        const { from, servers = [] } = head?.partial ?? {};
        if (from === server || servers.includes(server) || head?.servers.has(server)) this.retrySoon(roomId);
      }
    } catch (error) {
      if (!this.#isClosed) log.warn({ err: error, server }, 'Rooms to complete wait for their time');
    }
  }

  /** Resolves when the room's state is whole, at once for those that need no completion; also when the server stops. */
  async whenComplete(roomId: string): Promise<void> {
    await this.#rooms.get(roomId)?.done;
  }

  /** Gives up what is under way, to be taken up by the next `start`. */
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
      const run = this.#run(completion).finally(() => {
        this.#running.delete(run);
        this.#next();
      });
      this.#running.add(run);
    }
  }

  #takeUp(completion: Completion): void {
    completion.pause = undefined;
    this.#waiting.push(completion);
    this.#next();
  }

  /** @param until milliseconds since the epoch */
  #pause(completion: Completion, until: number): void {
    const { clock } = this.#deps;
    completion.pause = clock.setTimer(until - clock.now(), () => this.#takeUp(completion));
  }

  async #run(completion: Completion): Promise<void> {
    const { roomId, isEncouraged } = completion;
    const { clock, log } = this.#deps;
    const isOutOfTurn = clock.now() < completion.dueAt;
    completion.isEncouraged = false;
    try {
      await this.#complete(roomId, {
        maxMissing: lackAfter(completion.failures),
        ignoreBackoff: isEncouraged,
      });
      this.#rooms.delete(roomId);
      completion.resolve();
    } catch (error) {
      if (this.#isClosed) return;
      const now = clock.now();
      completion.triedAt = now;
      if (!isOutOfTurn) {
        completion.dueAt = now + Math.min(firstPause * 2 ** completion.failures++, longestPause);
      }
      const soonest = now + firstPause;
      const until = completion.isEncouraged ? soonest : Math.max(completion.dueAt, soonest);
      log.info({ err: error, roomId, pause: until - now }, 'The state of a room could not be completed yet');
      this.#pause(completion, until);
    }
  }

  async #complete(roomId: string, options: StateOptions): Promise<void> {
    const { engine, incoming, serverName } = this.#deps;
    const head = await engine.heads.get(roomId);
    if (!head?.partial || !head.servers.has(serverName)) return;
    const { from, servers, joinEventId } = head.partial;
    const state = await incoming.stateBefore(roomId, [from, ...servers], joinEventId, options);
    await engine.placement.completeState(roomId, state);
  }
}

function lackAfter(failures: number): number {
  if (failures < wholeAttempts) return 0;
  return failures < usualAttempts ? defaultMaxMissing : 1;
}
