import type { LongText } from '../../kernel/http/index.ts';
import type { SyncPosition } from '../../kernel/streams/index.ts';
import { allReady, whenReady } from '../../kernel/when-ready.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { RoomReader, UserRoom } from '../../room-engine/index.ts';
import type { AccountDataItem } from '../../sync-contract/index.ts';
import type { Feed } from '../feeds/feed.ts';
import type { SourceList } from '../sources/source-list.ts';
import { accountDataSince } from './account-data.ts';
import { answerText } from './answer-text.ts';
import type { DeviceAnswer, DeviceFields } from './device-fields.ts';
import type { AnswerRange, Recipient } from './recipient.ts';
import type { RoomEntries, RoomSections } from './rooms/room-entries.ts';

/**
 * The answer as JSON text; `undefined` when there is no new data; `outdated` when a membership has changed after the
 * range, so that the caller must choose a new range.
 */
export type Answer = string | LongText | 'outdated' | undefined;

export interface AnswersDeps {
  readonly engine: RoomReader;
  readonly sources: SourceList;
  readonly deviceFields: DeviceFields;
  readonly roomEntries: RoomEntries;
}

/**
 * Makes answers. Reads only the sources that may have new data, and awaits nothing that is in memory, so that the
 * answer for a client that syncs often is made without waiting for the event loop.
 */
export class Answers {
  readonly #deps: AnswersDeps;

  constructor(deps: AnswersDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the answer for a range of the streams; without a promise when everything is in memory.
   * @param from the client's `since` token
   */
  make(
    recipient: Recipient,
    feed: Feed,
    from: SyncPosition | undefined,
    range: AnswerRange,
  ): Answer | Promise<Answer> {
    const { engine, sources, roomEntries } = this.#deps;
    const { userId } = recipient;
    const inputs = allReady<[readonly AccountDataItem[], ReadonlyMap<string, UserRoom>]>([
      accountDataSince(sources, userId, range),
      engine.userRooms.peek(userId) ?? engine.userRooms.of(userId),
    ]);
    return whenReady(inputs, ([accountData, userRooms]) => {
      const rooms = roomEntries.candidates(userRooms, recipient, range);
      for (const { stream } of rooms) if (stream > range.upTo) return 'outdated';
      const sections = allReady<[RoomSections, readonly JsonObject[], DeviceAnswer]>([
        roomEntries.render(recipient, rooms, range, accountData),
        this.#presence(recipient, range, rooms),
        this.#devices(recipient, feed, from, range),
      ]);
      return whenReady(sections, ([entries, presence, devices]) =>
        answerText(recipient, { rooms: entries, accountData, presence }, devices, range),
      );
    });
  }

  /**
   * Returns `m.presence` events: of users whose presence has changed, and of the members of rooms that the
   * user has joined since the token.
   */
  #presence(
    { userId, filter }: Recipient,
    { since, upTo, changes, fullState }: AnswerRange,
    rooms: readonly UserRoom[],
  ): readonly JsonObject[] | Promise<readonly JsonObject[]> {
    const { presence, presenceBits } = this.#deps.sources;
    const after = fullState ? undefined : since;
    const hasNewRoom = rooms.some(({ membership, stream }) => membership === 'join' && stream > (after ?? 0));
    const bits = changes && !hasNewRoom ? changes.user : presenceBits;
    if (!(bits & presenceBits)) return noEvents;
    const changedSources = presence.filter(({ bit }) => (bits & bit) !== 0);
    const request = { userId, after, upTo, filter: filter.presence };
    return Promise.all(changedSources.map(({ section }) => section.events(request))).then((lists) =>
      lists.flat(),
    );
  }

  /** Returns the fields about the device: from memory if nothing about the device has changed. */
  #devices(
    recipient: Recipient,
    feed: Feed,
    from: SyncPosition | undefined,
    { upTo, changes }: AnswerRange,
  ): DeviceAnswer | Promise<DeviceAnswer> {
    const { deviceFields } = this.#deps;
    if (!from || !changes || changes.user & deviceFields.bits || !deviceFields.isQuiet(from)) {
      return deviceFields.render(recipient, from, upTo, changes);
    }
    const text = deviceFields.quietFields(recipient, feed);
    return text === undefined
      ? deviceFields.render(recipient, from, upTo, changes)
      : { text, hasNewData: false, toDevice: upTo };
  }
}

const noEvents: readonly JsonObject[] = [];
