import { createHash } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import type { Changes, Feed } from '../feeds/feed.ts';
import type { Feeds } from '../feeds/feeds.ts';
import type { SourceList } from '../sources/source-list.ts';
import { type Answer, type AnswerRange, type Answers, extensionsText } from './answers.ts';
import type { Connection } from './connections/connection.ts';
import type { ConnectedRequest, Connections } from './connections/connections.ts';
import { decodeConnectionPosition, encodeConnectionPosition, unknownPos } from './connections/position.ts';
import type { ExtensionAnswer } from './extensions/extension.ts';
import type { Extensions } from './extensions/extensions.ts';
import { enabledIn, type SlidingSyncRequest } from './request.ts';

export interface SlidingSyncDeps {
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly feeds: Feeds;
  readonly connections: Connections;
  readonly answers: Answers;
  readonly extensions: Extensions;
  readonly sources: SourceList;
}

/** Maximum wait in milliseconds, whatever the client requests. */
const maxWait = 5 * 60 * 1000;

/** A request on its connection. */
interface ConnectionRequest extends ConnectedRequest {
  /** Position of the client; `undefined` on a new connection. */
  readonly since: number | undefined;
  /** Aborts when the client has disconnected or has sent another request. */
  readonly signal: AbortSignal;
}

/** Simplified sliding sync. Source: MSC4186. */
export class SlidingSync {
  readonly #deps: SlidingSyncDeps;

  constructor(deps: SlidingSyncDeps) {
    this.#deps = deps;
  }

  /**
   * Answers a request. Waits while there is no new data, at most for `timeout`.
   * @returns the answer as JSON text
   * @throws MatrixError M_UNKNOWN_POS when the client must start a new connection
   */
  async sync(request: SlidingSyncRequest): Promise<string> {
    const connectionRequest = await this.#begin(request);
    try {
      const answer = await this.#answer(request, connectionRequest);
      // A client that has disconnected or has sent another request does not receive this answer, so it must not count
      // as sent.
      if (connectionRequest.signal.aborted) return emptyAnswer(request.pos);
      const generation = await this.#deps.connections.save(connectionRequest, answer.sent);
      if (generation === undefined || connectionRequest.superseded.aborted) return emptyAnswer(request.pos);
      return this.#recordSent(request, connectionRequest.connection, answer, generation);
    } finally {
      connectionRequest.end();
    }
  }

  /** Records in the connection which data the client receives with an answer. @returns the answer as JSON text */
  #recordSent(
    request: SlidingSyncRequest,
    connection: Connection,
    answer: Answer,
    generation: number,
  ): string {
    const { sentDetails } = connection;
    for (const { request: roomRequest, result } of answer.relevantRooms) {
      const { roomNid } = roomRequest.room;
      if (result.isInitial) sentDetails.deleteRoom(roomNid);
      if (result.details) sentDetails.set(roomNid, result.details);
      sentDetails.addMembers(roomNid, result.members);
    }
    // The lists of the next answer do not contain a room that the user has left, so these lists must not be repeated.
    const hasLeave = answer.relevantRooms.some(
      ({ request: { room }, result }) => room.membership === 'leave' && result.text !== undefined,
    );
    connection.lastAnswer = hasLeave ? undefined : { request: digestOf(request), lists: answer.lists };
    this.#deps.connections.remeasure(connection);
    const pos = encodeConnectionPosition({ connection: connection.id, generation, stream: answer.upTo });
    return `{"pos":"${pos}","lists":${answer.lists},"rooms":${answer.rooms},"extensions":${answer.extensions}}`;
  }

  async #begin({ userId, deviceId, body, pos, signal }: SlidingSyncRequest): Promise<ConnectionRequest> {
    const { connections, streams } = this.#deps;
    const address = { userId, deviceId: deviceId ?? '', name: body.conn_id ?? '' };
    if (pos === undefined) {
      const connectionRequest = connections.begin(address);
      return {
        ...connectionRequest,
        since: undefined,
        signal: AbortSignal.any([signal, connectionRequest.superseded]),
      };
    }
    const position = decodeConnectionPosition(pos);
    if (position.stream > streams.current) throw unknownPos();
    const connectionRequest = await connections.find(address, position);
    return {
      ...connectionRequest,
      since: position.stream,
      signal: AbortSignal.any([signal, connectionRequest.superseded]),
    };
  }

  async #answer(request: SlidingSyncRequest, connectionRequest: ConnectionRequest): Promise<Answer> {
    const { feeds, clock, streams, answers } = this.#deps;
    const { connection, since, signal } = connectionRequest;
    const deadline = clock.monotonic() + Math.min(request.timeout, maxWait);
    for (;;) {
      const feed = await feeds.open(request.userId);
      const upTo = streams.current;
      const changes = since === undefined ? undefined : feed.changes(since, upTo);
      const range = { connection, since, upTo, changes };
      const deviceAnswers = await this.#deviceAnswers(request, range);
      const answer =
        this.#quietAnswer(request, range, deviceAnswers) ??
        (await answers.make(request, range, deviceAnswers));
      if (answer === 'outdated') continue;
      if (answer.hasNewData || since === undefined) return answer;
      const hasMore = await this.#waitForMore(feed, upTo, deadline, signal);
      if (!hasMore) return answer;
    }
  }

  #deviceAnswers({ userId, deviceId = '', body }: SlidingSyncRequest, range: AnswerRange) {
    return this.#deps.extensions.ofDevice({ ...range, userId, deviceId }, body.extensions ?? {});
  }

  /**
   * Returns the answer to a client that repeats its last request when only presence has changed: then only the
   * extensions about the device may have new data.
   */
  #quietAnswer(
    request: SlidingSyncRequest,
    { connection: { lastAnswer }, upTo, changes }: AnswerRange,
    deviceAnswers: readonly ExtensionAnswer[],
  ): Answer | undefined {
    if (!changes || !this.#arePresenceOnly(changes) || lastAnswer?.request !== digestOf(request))
      return undefined;
    return {
      upTo,
      lists: lastAnswer.lists,
      rooms: '{}',
      extensions: extensionsText(deviceAnswers),
      hasNewData: deviceAnswers.some(({ hasNewData }) => hasNewData),
      sent: new Map(),
      relevantRooms: [],
    };
  }

  /** Whether there are no changes other than changes of presence, which sliding sync does not return. */
  #arePresenceOnly({ rooms, user }: Changes): boolean {
    return rooms.size === 0 && (user & ~this.#deps.sources.presenceBits) === 0;
  }

  /**
   * Waits for a change.
   * @returns whether there is a change after `upTo`; `false` when the time is up or the request was aborted
   */
  async #waitForMore(feed: Feed, upTo: number, deadline: number, signal: AbortSignal): Promise<boolean> {
    const { feeds, clock, streams } = this.#deps;
    for (;;) {
      const changes = feed.changes(upTo, streams.current);
      if (!changes || !this.#arePresenceOnly(changes)) return !signal.aborted;
      const remaining = deadline - clock.monotonic();
      if (remaining <= 0 || signal.aborted) return false;
      await feeds.wait(feed, remaining, signal);
      // A feed that was dropped meanwhile receives no more changes: the caller opens a new feed.
      if (feed !== (await feeds.open(feed.userId))) return !signal.aborted;
    }
  }
}

/** Returns a digest of the request without the client's positions. */
function digestOf({ body: { lists, room_subscriptions, extensions } }: SlidingSyncRequest): string {
  const { to_device, ...otherExtensions } = extensions ?? {};
  const isToDeviceEnabled = enabledIn(extensions ?? {}, 'to_device')?.enabled;
  const requestText = JSON.stringify([lists, room_subscriptions, otherExtensions, isToDeviceEnabled]);
  return createHash('sha256').update(requestText).digest('base64');
}

const emptyAnswer = (pos: string | undefined) =>
  JSON.stringify({ pos: pos ?? '', lists: {}, rooms: {}, extensions: {} });
