import { type Database, writerFor } from '../kernel/database/index.ts';
import { KeyedMutex } from '../kernel/keyed-mutex.ts';
import type { JsonObject } from '../protocol/index.ts';
import type { RoomHead } from '../room-engine/index.ts';
import type { Rooms } from '../rooms/index.ts';
import { closeRoom } from './close-room.ts';
import type { NoticeOptions } from './config.ts';
import type { NoticesUser } from './notices-user.ts';
import { noticePowerLevels, roomTraits } from './room-design.ts';
import { readNoticeRoom, writeNoticeRoom } from './store.ts';
import type { ServerNoticeTables } from './tables.ts';

/** Tags that users give to rooms; implemented by account data. */
export interface RoomTags {
  list(userId: string, roomId: string): Promise<JsonObject>;
  set(userId: string, roomId: string, tag: string, info: JsonObject): Promise<void>;
}

export interface NoticeRoomsDeps {
  readonly database: Database;
  readonly rooms: Pick<Rooms, 'engine' | 'creation' | 'memberships'>;
  readonly tags: RoomTags;
  readonly user: NoticesUser;
  readonly options: NoticeOptions;
  /** `default_room_version` */
  readonly roomVersion: string;
}

/** Marks the room for clients. Source: client-server API, "Server Notices". */
const noticeTag = 'm.server_notice';

/**
 * The rooms for the notices of the server, one per user. They do not federate (`m.federate`), and are never encrypted,
 * since the server has no encryption keys.
 */
export class NoticeRooms {
  readonly #deps: NoticeRoomsDeps;
  /** Prepares the room of a user for one notice at a time, by user id. */
  readonly #mutex = new KeyedMutex();

  constructor(deps: NoticeRoomsDeps) {
    this.#deps = deps;
  }

  /** Returns the id of a user's notice room, if one was made. */
  of(userId: string): Promise<string | undefined> {
    return readNoticeRoom(this.#deps.database.reader<ServerNoticeTables>(), userId);
  }

  /**
   * Prepares a user's room for a notice: makes one if there is none that can be used (`#isOpen`), updates its name,
   * topic and avatar, and invites the user.
   * @param userId an active local user
   * @returns the room id
   */
  prepare(userId: string): Promise<string> {
    return this.#mutex.run(userId, async () => {
      const known = await this.of(userId);
      const head = known === undefined ? undefined : await this.#deps.rooms.engine.heads.get(known);
      if (head && this.#isOpen(head, userId)) {
        await this.#renew(head);
        await this.#tagAndInvite(userId, head.roomId);
        return head.roomId;
      }
      if (head) await closeRoom(this.#deps.rooms, head.roomId);
      const roomId = await this.#create(userId);
      await this.#tagAndInvite(userId, roomId);
      return roomId;
    });
  }

  /**
   * Whether the room can be used for further notices: the notices user is joined, and the recipient is joined, invited,
   * or not yet invited because of a crash.
   */
  #isOpen(head: RoomHead, userId: string): boolean {
    const membership = head.membership(userId);
    const canReadNotices = membership === undefined || membership === 'invite' || membership === 'join';
    return canReadNotices && head.membership(this.#deps.user.userId) === 'join';
  }

  async #create(userId: string): Promise<string> {
    const { rooms, user, options, roomVersion, database } = this.#deps;
    const traits = roomTraits(options).filter(({ removes }) => !removes);
    const request = {
      preset: 'private_chat',
      room_version: roomVersion,
      creation_content: { 'm.federate': false },
      power_level_content_override: noticePowerLevels(user.userId, roomVersion),
      initial_state: traits.map(({ type, content }) => ({ type, content })),
    } as const;
    const roomId = await rooms.creation.create(user.userId, request, undefined, { unencrypted: true });
    await database.transaction(async (writer) =>
      writeNoticeRoom(writerFor<ServerNoticeTables>(writer), userId, roomId),
    );
    return roomId;
  }

  /** Updates the state of an existing room to the configuration. Unchanged state is not sent again. */
  async #renew(head: RoomHead): Promise<void> {
    const { rooms, user, options } = this.#deps;
    const { timeline } = rooms.engine;
    const sender = user.userId;
    const member = { ...(await rooms.memberships.profileContent(sender)), membership: 'join' };
    await timeline.append(head.roomId, { type: 'm.room.member', stateKey: sender, sender, content: member });
    for (const { type, content, removes } of roomTraits(options)) {
      if (removes && !head.entry(type, '')) continue;
      await timeline.append(head.roomId, { type, stateKey: '', sender, content });
    }
  }

  /**
   * Tags the room, and invites the user, even with `block_non_admin_invites`, and even when the user blocks invites.
   * With `auto_join` the user also joins.
   */
  async #tagAndInvite(userId: string, roomId: string): Promise<void> {
    const { rooms, tags, user, options } = this.#deps;
    const { engine, memberships } = rooms;
    if (!Object.hasOwn(await tags.list(userId, roomId), noticeTag)) {
      await tags.set(userId, roomId, noticeTag, {});
    }
    const membership = (await engine.heads.get(roomId))?.membership(userId);
    if (membership === 'join') return;
    if (membership !== 'invite') {
      await engine.timeline.append(roomId, await memberships.invitation(user.userId, userId));
    }
    if (options.auto_join) await memberships.join(userId, roomId);
  }
}
