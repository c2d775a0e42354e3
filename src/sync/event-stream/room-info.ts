import { noFilter } from '../../filters/index.ts';
import { encodePosition } from '../../kernel/streams/index.ts';
import type { ClientEvent, JsonObject } from '../../protocol/index.ts';
import type { RoomHead } from '../../room-engine/index.ts';
import type { ReadingRooms, Signalled, Viewer } from '../../rooms/index.ts';
import type { AccountDataItem } from '../../sync-contract/index.ts';
import type { OtherEvents } from './other-events.ts';

/** A room as `/initialSync` returns it, to members and for room previews. */
export interface RoomInfo {
  readonly room_id: string;
  readonly membership?: string;
  readonly messages: {
    readonly start: string;
    readonly end: string;
    readonly chunk: readonly ClientEvent[];
  };
  readonly state: readonly ClientEvent[];
  readonly visibility: 'public' | 'private';
  readonly account_data: readonly JsonObject[];
  /** The presence of the joined members. */
  readonly presence: readonly JsonObject[];
  /** At most one `m.receipt` event. */
  readonly receipts: readonly JsonObject[];
}

export interface RoomInfosDeps {
  readonly rooms: Pick<ReadingRooms, 'engine' | 'historyReader' | 'stateReader' | 'published'>;
  readonly otherEvents: OtherEvents;
}

/** What `/initialSync` returns of a room, and the data of the user that are read once for all rooms. */
export interface RoomInfoRequest {
  /** Maximum number of messages. */
  readonly limit: number;
  /** The messages end at this position, and the event stream continues there. */
  readonly upTo: number;
  /** The account data of the user, of all rooms or of this room. */
  readonly accountData: readonly AccountDataItem[];
  /** The presence of users who share a room with the user, by user id; absent: it is read. */
  readonly presence?: PresenceByUser;
}

/** `m.presence` events by their senders. */
export type PresenceByUser = ReadonlyMap<string, JsonObject>;

/**
 * Returns a room with its messages, state, receipts and account data.
 * Source: client-server API, `GET /rooms/{roomId}/initialSync`.
 */
export class RoomInfos {
  readonly #rooms: RoomInfosDeps['rooms'];
  readonly #otherEvents: OtherEvents;

  constructor({ rooms, otherEvents }: RoomInfosDeps) {
    this.#rooms = rooms;
    this.#otherEvents = otherEvents;
  }

  /** Returns the presence of users who share a room with the user, by user id. */
  async presence(userId: string, upTo: number): Promise<PresenceByUser> {
    const events = await this.#otherEvents.presence(userId, upTo);
    return new Map(events.map((event) => [String(event['sender']), event]));
  }

  /**
   * Returns a room.
   * @param request when it ends, the wait for the members of a room with partial state ends, too
   * @throws MatrixError M_FORBIDDEN when the viewer may not read the room
   */
  async of(
    viewer: Viewer,
    roomId: string,
    { limit, upTo, accountData, presence }: RoomInfoRequest,
    request: Signalled,
  ): Promise<RoomInfo> {
    const { engine, historyReader, stateReader, published } = this.#rooms;
    const end = encodePosition(upTo);
    const { timeline: filter } = noFilter.room;
    const page = await historyReader.messages(viewer, roomId, {
      from: end,
      direction: 'backward',
      limit,
      filter,
    });
    const membership = (await engine.userRooms.of(viewer.userId)).get(roomId)?.membership;
    return {
      room_id: roomId,
      // The specification does not list knocks here.
      ...(membership && membership !== 'knock' && { membership }),
      messages: {
        start: page.end ?? end,
        end,
        chunk: page.chunk.toReversed(),
      },
      state: await stateReader.all(viewer, roomId, request),
      visibility: (await published.isPublished(roomId)) ? 'public' : 'private',
      account_data: accountData
        .filter((entry) => entry.roomId === roomId)
        .map(({ type, content }) => ({ type, content })),
      ...(membership === 'join' ? await this.#memberData(viewer.userId, roomId, upTo, presence) : nothing),
    };
  }

  /** Returns the data that only members of the room receive. */
  async #memberData(
    userId: string,
    roomId: string,
    upTo: number,
    known: PresenceByUser | undefined,
  ): Promise<Pick<RoomInfo, 'presence' | 'receipts'>> {
    const head = await this.#rooms.engine.heads.get(roomId);
    const presence = known ?? (await this.presence(userId, upTo));
    return {
      presence: head ? presenceIn(head, presence) : [],
      receipts: await this.#otherEvents.receipts(userId, [roomId]),
    };
  }
}

/** Returns the presence of the joined members. Loops over the members or the events, whichever are fewer. */
function presenceIn({ members }: RoomHead, presence: PresenceByUser): JsonObject[] {
  const users = members.size < presence.size ? members.keys() : presence.keys();
  return [...users].flatMap((userId) => {
    const event = members.get(userId) === 'join' ? presence.get(userId) : undefined;
    return event ? [event] : [];
  });
}

const nothing: Pick<RoomInfo, 'presence' | 'receipts'> = { presence: [], receipts: [] };
