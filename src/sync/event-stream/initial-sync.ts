import { encodePosition, type StreamReader } from '../../kernel/streams/index.ts';
import type { ClientEvent, JsonObject } from '../../protocol/index.ts';
import type { RoomReader, UserRoom } from '../../room-engine/index.ts';
import type { ClientEvents, Signalled, Viewer } from '../../rooms/index.ts';
import type { ShownInvites } from '../shown-invites.ts';
import { accountDataSetByClients } from '../sources/account-data-set-by-clients.ts';
import type { SourceList } from '../sources/source-list.ts';
import type { OtherEvents } from './other-events.ts';
import type { RoomInfo, RoomInfos } from './room-info.ts';

export interface InitialSyncDeps {
  readonly engine: RoomReader;
  readonly streams: StreamReader;
  readonly clientEvents: ClientEvents;
  readonly roomInfos: RoomInfos;
  readonly sources: Pick<SourceList, 'accountData'>;
  readonly otherEvents: OtherEvents;
  readonly shownInvites: ShownInvites;
  /** Rooms that are left out of every sync. */
  readonly excludedRooms: ReadonlySet<string>;
}

/**
 * Number of rooms that are read before other requests are processed. Without a pause, reading rooms may block other
 * requests, because everything about the rooms may be in memory.
 */
const roomsPerTurn = 8;

/** A room that the user is invited to. */
interface InvitedRoom {
  readonly room_id: string;
  readonly membership: 'invite';
  readonly invite: ClientEvent | undefined;
}

/** The response of `GET /initialSync`. */
export interface InitialState {
  readonly end: string;
  readonly rooms: readonly (RoomInfo | InvitedRoom)[];
  readonly presence: readonly JsonObject[];
  /** One `m.receipt` event for each room, as homeservers commonly return them. */
  readonly receipts: readonly JsonObject[];
  readonly account_data: readonly JsonObject[];
}

/**
 * Returns the whole state of a user at once, for clients that are older than `/sync`. Source: client-server
 * API, `GET /initialSync`.
 */
export class InitialSync {
  readonly #deps: InitialSyncDeps;

  constructor(deps: InitialSyncDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the state of the user.
   * @param archived whether to include rooms that the user has left
   * @param request when it ends, the wait for the members of rooms with partial state ends, too
   */
  async all(
    viewer: Viewer,
    { limit, archived }: { limit: number; archived: boolean },
    request: Signalled,
  ): Promise<InitialState> {
    const { engine, streams, sources, otherEvents, roomInfos, excludedRooms } = this.#deps;
    const { userId } = viewer;
    const upTo = streams.current;
    const accountData = await accountDataSetByClients(sources, userId);
    const accountDataByRoom = Map.groupBy(accountData, ({ roomId }) => roomId);
    const presence = await roomInfos.presence(userId, upTo);
    const rooms: (RoomInfo | InvitedRoom)[] = [];
    for (const [index, room] of [...(await engine.userRooms.of(userId)).values()].entries()) {
      if (index % roomsPerTurn === roomsPerTurn - 1) await new Promise(setImmediate);
      if (!(await this.#isIncluded(userId, room, archived))) continue;
      const { roomId, membership } = room;
      const ofRoom = { limit, upTo, presence, accountData: accountDataByRoom.get(roomId) ?? [] };
      rooms.push(
        membership === 'invite'
          ? await this.#invited(viewer, room)
          : await roomInfos.of(viewer, roomId, ofRoom, request),
      );
    }
    const joined = await engine.userRooms.withMembership(userId, 'join');
    return {
      end: encodePosition(upTo),
      rooms,
      presence: [...presence.values()],
      receipts: await otherEvents.receipts(
        userId,
        joined.filter((roomId) => !excludedRooms.has(roomId)),
      ),
      account_data: (accountDataByRoom.get(undefined) ?? []).map(({ type, content }) => ({ type, content })),
    };
  }

  async #isIncluded(userId: string, room: UserRoom, archived: boolean): Promise<boolean> {
    const { engine, excludedRooms, shownInvites } = this.#deps;
    if (excludedRooms.has(room.roomId) || room.forgotten) return false;
    if (room.membership === 'join') return true;
    if (room.membership === 'invite') return shownInvites.isShown(userId, room);
    if (room.membership === 'knock' || !archived) return false;
    // Rooms that the user was only invited to are left out.
    const stored = await engine.events.get(room.eventNid);
    const before = stored?.replaces === undefined ? undefined : await engine.events.get(stored.replaces);
    return before?.event.content['membership'] === 'join';
  }

  async #invited(viewer: Viewer, { roomId, eventNid }: UserRoom): Promise<InvitedRoom> {
    const { engine, clientEvents } = this.#deps;
    const stored = await engine.events.get(eventNid);
    const [invite] = stored ? await clientEvents.render([{ stored, membership: 'invite' }], viewer) : [];
    return { room_id: roomId, membership: 'invite', invite };
  }
}
