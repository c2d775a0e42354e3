import type { Clock } from '../../kernel/clock.ts';
import { decodeSyncPosition, type StreamReader, type SyncPosition } from '../../kernel/streams/index.ts';
import { invalidParam, type JsonObject } from '../../protocol/index.ts';
import type { ReceiptContent } from '../../receipts/index.ts';
import type { RoomEngine, UserRoom } from '../../room-engine/index.ts';
import type { Departures } from '../departures.ts';
import { type Changes, type Feed, RoomPart, UserPart } from '../feeds/feed.ts';
import type { Feeds } from '../feeds/feeds.ts';
import type { SyncSources } from '../sources.ts';
import type { ToldInvites } from '../told-invites.ts';
import { answerText, nothingUpTo, type Pieces } from './answer-text.ts';
import { accountDataIn, accountDataSince, type ClientAccountData } from './client-account-data.ts';
import type { DevicePart } from './device-part.ts';
import type { PromptAnswers } from './prompt-answers.ts';
import type { JoinedRooms } from './rooms/joined-room.ts';
import type { OtherRooms } from './rooms/other-rooms.ts';
import type { Subject } from './subject.ts';

export interface SyncRequest extends Subject {
  readonly since: string | undefined;
  /** Milliseconds to wait when there is nothing to say. */
  readonly timeout: number;
  readonly fullState: boolean;
  /** Its signal aborts when the client goes away; it is made only for those who wait. */
  readonly client: { readonly signal: AbortSignal };
}

export interface SyncAnswer {
  /** JSON. */
  readonly text: string;
  /** It says more than that nothing has happened. */
  readonly isNews: boolean;
}

export interface SyncDeps {
  readonly engine: RoomEngine;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly feeds: Feeds;
  readonly joinedRooms: JoinedRooms;
  readonly otherRooms: OtherRooms;
  readonly toldInvites: ToldInvites;
  readonly departures: Departures;
  readonly devicePart: DevicePart;
  readonly promptAnswers: PromptAnswers;
  readonly sources: SyncSources;
  /** Rooms that no sync mentions (`exclude_rooms_from_sync`). */
  readonly excludedRooms: ReadonlySet<string>;
}

/** Longest wait, whatever the client asks for, in milliseconds. */
const longestWait = 5 * 60 * 1000;

/** How many rooms are made ready at the same time: bounds memory, and lets other requests in between. */
const roomsAtOnce = 16;

/** The classic sync. Source: client-server API, `GET /sync`. */
export class Sync {
  readonly #deps: SyncDeps;

  constructor(deps: SyncDeps) {
    this.#deps = deps;
  }

  /**
   * The answer when nothing has happened and the client does not want to wait for more: at once, from memory.
   * `undefined` when there may be something to say.
   * @throws MatrixError M_INVALID_PARAM for a foreign token
   */
  quietAnswer({ since, timeout, fullState, userId, deviceId }: SyncRequest): string | undefined {
    if (since === undefined || timeout > 0 || fullState) return undefined;
    const { feeds, streams, devicePart } = this.#deps;
    const from = decodeSyncPosition(since);
    const upTo = streams.current;
    const feed = from.position <= upTo ? feeds.peek(userId) : undefined;
    const changes = feed?.changes(from.position, upTo);
    if (!feed || !changes || !isNothing(changes) || !devicePart.isQuiet(from)) return undefined;
    const known = feed.quiet(deviceId);
    if (known !== undefined) return nothingUpTo(upTo, known);
    const text = devicePart.quietNow(userId, deviceId);
    if (text === undefined) return undefined;
    feed.remember(deviceId, text);
    return nothingUpTo(upTo, text);
  }

  /** @throws MatrixError M_INVALID_PARAM for a foreign token */
  async sync(request: SyncRequest): Promise<SyncAnswer> {
    const { feeds, clock, streams, devicePart } = this.#deps;
    const since = request.since === undefined ? undefined : decodeSyncPosition(request.since);
    if (since && since.position > streams.current) throw invalidParam('This token is from the future');
    const acknowledging = since && devicePart.acknowledge(request.userId, request.deviceId, since);
    if (acknowledging) await acknowledging;
    const deadline = clock.monotonic() + Math.min(request.timeout, longestWait);
    for (let isPrepared = false; ; ) {
      const feed = feeds.peek(request.userId) ?? (await feeds.open(request.userId));
      const prompt = since && this.#promptAnswer(request, feed, since);
      if (typeof prompt === 'string') return { text: prompt, isNews: true };
      if (prompt && !isPrepared) {
        isPrepared = true;
        await prompt;
        continue;
      }
      isPrepared = false;
      const upTo = streams.current;
      const answer = await this.#answer(request, feed, since, upTo);
      if (answer === 'outdated') continue;
      if (answer !== undefined) return { text: answer.text, isNews: true };
      const remaining = deadline - clock.monotonic();
      if (remaining <= 0 || request.fullState || request.client.signal.aborted) {
        const keys = await devicePart.keys(request.userId, request.deviceId);
        return { text: nothingUpTo(upTo, keys), isNews: false };
      }
      // Something may have come while the answer was being made.
      const meanwhile = feed.changes(upTo, streams.current);
      if (meanwhile && isNothing(meanwhile)) await feeds.wait(feed, remaining, request.client.signal);
    }
  }

  /** See `PromptAnswers`. */
  #promptAnswer(request: SyncRequest, feed: Feed, since: SyncPosition): string | Promise<void> | undefined {
    const { streams, devicePart, promptAnswers } = this.#deps;
    const upTo = streams.current;
    const changes = feed.changes(since.position, upTo);
    if (!changes || request.fullState || !devicePart.isQuiet(since)) return undefined;
    return promptAnswers.answer(request, changes, { after: since.position, upTo });
  }

  /** `undefined`: there is nothing to say; `outdated`: a membership changed just now, so look again. */
  async #answer(
    request: SyncRequest,
    feed: Feed,
    from: SyncPosition | undefined,
    upTo: number,
  ): Promise<{ text: string } | 'outdated' | undefined> {
    const { devicePart } = this.#deps;
    const since = from?.position;
    const changes = since === undefined ? undefined : feed.changes(since, upTo);
    const isQuiet = changes && isNothing(changes) && from && devicePart.isQuiet(from);
    if (isQuiet && !request.fullState) return undefined;
    const accountData = await accountDataSince(this.#deps.sources, request.userId, { since, upTo, changes });
    const rooms = await this.#candidates(request, since, request.fullState ? undefined : changes?.rooms);
    if (rooms.some(({ stream }) => stream > upTo)) return 'outdated';
    const presence = await this.#presence(request, { since, upTo, changes, rooms });
    const pieces: Pieces = { rooms: { join: [], invite: [], leave: [], knock: [] }, accountData, presence };
    const parts = changes?.rooms ?? (since === undefined ? undefined : await this.#partsSince(rooms, since));
    for (let start = 0; start < rooms.length; start += roomsAtOnce) {
      if (start > 0) await new Promise(setImmediate);
      const some = rooms.slice(start, start + roomsAtOnce);
      const receipts = await this.#receiptsOfNew(request, some, since);
      await Promise.all(
        some.map((room) => this.#room(request, room, { since, upTo, parts, receipts }, pieces)),
      );
    }
    const devices = await devicePart.render(request, from, upTo, changes);
    const text = answerText(request, pieces, devices, { upTo, isInitial: since === undefined });
    return text === undefined ? undefined : { text };
  }

  /** Of everybody in a room that the user has come into, and of those whose presence has changed. */
  async #presence(
    { userId, filter, fullState }: SyncRequest,
    range: { since: number | undefined; upTo: number; changes: Changes | undefined; rooms: UserRoom[] },
  ): Promise<readonly JsonObject[]> {
    const { since, upTo, changes, rooms } = range;
    const after = fullState ? undefined : since;
    const isNew = rooms.some(({ membership, stream }) => membership === 'join' && stream > (after ?? 0));
    if (changes && !isNew && !(changes.user & UserPart.presence)) return [];
    return this.#deps.sources.presence.events({ userId, after, upTo, filter: filter.presence });
  }

  /** The rooms that the answer may have to mention. */
  async #candidates(
    { userId, filter }: SyncRequest,
    since: number | undefined,
    changed: ReadonlyMap<string, number> | undefined,
  ): Promise<UserRoom[]> {
    const { engine, excludedRooms } = this.#deps;
    const rooms = await engine.userRooms.of(userId);
    const candidates = changed
      ? [...changed.keys()].map((roomId) => rooms.get(roomId)).filter((room) => room !== undefined)
      : [...rooms.values()];
    // Who forgets a room that they have left is told once more that they left it: they may have another device.
    const isKnown = (room: UserRoom) => !room.forgotten || (since !== undefined && room.stream > since);
    return candidates.filter(
      (room) => isKnown(room) && !excludedRooms.has(room.roomId) && filter.room.passesRoom(room.roomId),
    );
  }

  async #room(
    request: SyncRequest,
    room: UserRoom,
    range: {
      since: number | undefined;
      upTo: number;
      parts: ReadonlyMap<string, number> | undefined;
      receipts: ReadonlyMap<string, readonly ReceiptContent[]>;
    },
    { rooms, accountData }: Pieces,
  ): Promise<void> {
    const { since, upTo } = range;
    const { engine, joinedRooms, otherRooms, toldInvites } = this.#deps;
    const isNew = isNewTo(room, since);
    const head = await engine.heads.get(room.roomId);
    if (!head) return;
    const add = (section: string[], text: string) => section.push(`${JSON.stringify(room.roomId)}:${text}`);
    if (room.membership === 'join') {
      const isReturn = isNew && since !== undefined;
      const text = await joinedRooms.render(head, request, {
        after: isNew ? undefined : since,
        upTo,
        returnedAfter: isReturn ? since : undefined,
        parts: range.parts?.get(room.roomId) ?? 0,
        accountData: await this.#roomAccountData(request.userId, room, isReturn, accountData),
        receipts: range.receipts.get(room.roomId) ?? [],
        fullState: request.fullState,
      });
      if (text !== undefined) add(rooms.join, text);
    } else if (!isNew && !request.fullState) {
      return;
    } else if (room.membership === 'invite' || room.membership === 'knock') {
      if (room.membership === 'invite' && !(await toldInvites.isTold(request.userId, room))) return;
      add(rooms[room.membership], await otherRooms.prejoin(head, room));
    } else if (await this.#isLeftRoomTold(request, room, since)) {
      const range = {
        after: since,
        fullState: request.fullState,
        accountData: accountDataIn(request, room.roomId, accountData),
      };
      add(rooms.leave, await otherRooms.left(head, room, request, range));
    }
  }

  /** All receipts of those rooms that the client does not know. */
  async #receiptsOfNew(
    { userId }: SyncRequest,
    rooms: readonly UserRoom[],
    since: number | undefined,
  ): Promise<ReadonlyMap<string, readonly ReceiptContent[]>> {
    const unknown = rooms.filter((room) => room.membership === 'join' && isNewTo(room, since));
    return this.#deps.sources.receipts.contentsOfRooms(
      unknown.map(({ roomId }) => roomId),
      userId,
    );
  }

  /** A room that the user has left themself is for those who ask for such rooms, unless it is new that they left it. */
  async #isLeftRoomTold(
    { userId, filter }: SyncRequest,
    room: UserRoom,
    since: number | undefined,
  ): Promise<boolean> {
    if (filter.room.includeLeave) return true;
    return since === undefined ? this.#deps.departures.isRemoval(userId, room) : room.stream > since;
  }

  /** Of a room that the user has come into all of it, and what has changed otherwise. */
  async #roomAccountData(
    userId: string,
    { roomId }: UserRoom,
    isReturn: boolean,
    changed: readonly ClientAccountData[],
  ): Promise<readonly ClientAccountData[]> {
    const all = isReturn ? await this.#deps.sources.accountData.all(userId) : changed;
    return all.filter((entry) => entry.roomId === roomId);
  }

  /** What may have changed in each room, for a client that comes back after a time: from the database. */
  async #partsSince(rooms: readonly UserRoom[], since: number): Promise<ReadonlyMap<string, number>> {
    const { engine, sources } = this.#deps;
    const changed = await engine.events.changedRooms(
      rooms.map(({ roomNid }) => roomNid),
      since,
    );
    return new Map(
      rooms.map(({ roomId, roomNid }) => [
        roomId,
        RoomPart.receipts |
          (changed.has(roomNid) ? RoomPart.timeline : 0) |
          (sources.typing.changedSince(roomId, since) ? RoomPart.typing : 0),
      ]),
    );
  }
}

function isNothing(changes: Changes): boolean {
  return changes.rooms.size === 0 && changes.user === 0;
}

/** Whether a client that has synced up to `since` has not heard of the room as it is to the user now. */
const isNewTo = ({ stream }: UserRoom, since: number | undefined) => since === undefined || stream > since;
