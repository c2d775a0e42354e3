import type { Clock } from '../../kernel/clock.ts';
import type { LongText } from '../../kernel/http/index.ts';
import { decodeSyncPosition, type StreamReader, type SyncPosition } from '../../kernel/streams/index.ts';
import { invalidParam } from '../../protocol/index.ts';
import type { Changes, Feed } from '../feeds/feed.ts';
import type { Feeds } from '../feeds/feeds.ts';
import { quietAnswerText } from './answer-text.ts';
import type { Answers } from './answers.ts';
import type { DeviceFields } from './device-fields.ts';
import type { Recipient } from './recipient.ts';

/** A request of the classic sync. */
export interface SyncRequest extends Recipient {
  readonly since: string | undefined;
  /** Maximum milliseconds to wait while there is no new data. */
  readonly timeout: number;
  readonly fullState: boolean;
  /** The signal aborts when the client disconnects; it is created only for requests that wait. */
  readonly client: { readonly signal: AbortSignal };
}

/** The answer to a classic sync. */
export interface SyncAnswer {
  /** The answer as JSON text. */
  readonly text: string | LongText;
  /** Whether the answer has any new data. */
  readonly hasNewData: boolean;
}

export interface SyncDeps {
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly feeds: Feeds;
  readonly deviceFields: DeviceFields;
  readonly answers: Answers;
}

/** Maximum wait in milliseconds, whatever the client requests. */
const maxWait = 5 * 60 * 1000;

/** The classic sync. Source: client-server API, `GET /sync`. */
export class Sync {
  readonly #deps: SyncDeps;

  constructor(deps: SyncDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the answer without new data for a client that does not want to wait, from memory and without a promise;
   * `undefined` when there may be new data.
   * @throws MatrixError M_INVALID_PARAM for an unknown token
   */
  quietAnswer({ since, timeout, fullState, userId, deviceId }: SyncRequest): string | undefined {
    if (since === undefined || timeout > 0 || fullState) return undefined;
    const { feeds, streams, deviceFields } = this.#deps;
    const from = decodeSyncPosition(since);
    const upTo = streams.current;
    const feed = from.position <= upTo ? feeds.peek(userId) : undefined;
    const changes = feed?.changes(from.position, upTo);
    if (!feed || !changes || !isNothing(changes) || !deviceFields.isQuiet(from)) return undefined;
    const text = deviceFields.quietFields({ userId, deviceId }, feed);
    return text === undefined ? undefined : quietAnswerText(upTo, text);
  }

  /**
   * Returns the answer. Waits while there is no new data, at most for `timeout`.
   * @throws MatrixError M_INVALID_PARAM for an unknown token
   */
  async sync(request: SyncRequest): Promise<SyncAnswer> {
    const { feeds, clock, streams, deviceFields } = this.#deps;
    const since = request.since === undefined ? undefined : decodeSyncPosition(request.since);
    if (since && since.position > streams.current)
      throw invalidParam('The token is ahead of the current stream position');
    const acknowledging = since && deviceFields.acknowledge(request, since);
    if (acknowledging) await acknowledging;
    const deadline = clock.monotonic() + Math.min(request.timeout, maxWait);
    for (;;) {
      const feed = feeds.peek(request.userId) ?? (await feeds.open(request.userId));
      const upTo = streams.current;
      const answer = this.#answer(request, feed, since, upTo);
      const text = answer instanceof Promise ? await answer : answer;
      if (text === 'outdated') continue;
      if (text !== undefined) return { text, hasNewData: true };
      const remaining = deadline - clock.monotonic();
      if (remaining <= 0 || request.fullState || request.client.signal.aborted) {
        const fields = await deviceFields.constant(request);
        return { text: quietAnswerText(upTo, fields), hasNewData: false };
      }
      // A change may have come while the answer was being made.
      const meanwhile = feed.changes(upTo, streams.current);
      if (meanwhile && isNothing(meanwhile)) await feeds.wait(feed, remaining, request.client.signal);
    }
  }

  #answer(request: SyncRequest, feed: Feed, from: SyncPosition | undefined, upTo: number) {
    const { answers, deviceFields } = this.#deps;
    const { fullState } = request;
    const changes = from && feed.changes(from.position, upTo);
    const isQuiet = from && changes && isNothing(changes) && deviceFields.isQuiet(from);
    if (isQuiet && !fullState) return undefined;
    return answers.make(request, feed, from, { since: from?.position, upTo, changes, fullState });
  }
}

function isNothing(changes: Changes): boolean {
  return changes.rooms.size === 0 && changes.user === 0;
}
