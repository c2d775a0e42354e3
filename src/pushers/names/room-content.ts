import { type JsonObject, type Membership, roomFactsOf, selectHeroes } from '../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../room-engine/index.ts';

/** The types of state events that determine how a room is shown. */
const descriptiveTypes = [
  'm.room.name',
  'm.room.canonical_alias',
  'm.room.avatar',
  'm.room.create',
  'm.room.encryption',
] as const;

/** How a room is shown to one user. */
export interface ShownRoom {
  /** The name or the canonical alias; `undefined` in rooms that have neither. */
  readonly name: string | undefined;
  /** Like `name`, or else the names of the room's members, for instance "Anna and Ben". */
  readonly title: string;
  /** The number of other users who are joined or invited; 1 (the inviter) when this server is not in the room. */
  readonly otherMemberCount: number;
  readonly avatarUrl: string | undefined;
  readonly isSpace: boolean;
  readonly isEncrypted: boolean;
  /** The user's membership; `undefined` when the server does not know the room. */
  readonly membership: Membership | undefined;
  /** The sender of the user's invite. */
  readonly inviter: string | undefined;
}

/** How a member is shown in a room. */
export interface ShownMember {
  /** The display name in the room, or else the user id. */
  readonly name: string;
  readonly avatarUrl: string | undefined;
}

/** Reads how rooms and their members are shown in notifications. */
export class RoomContent {
  readonly #engine: RoomReader;

  constructor(engine: RoomReader) {
    this.#engine = engine;
  }

  /** Returns how a room is shown to a user; `undefined` when the server does not know the room. */
  async room(roomId: string, userId: string): Promise<ShownRoom | undefined> {
    const { heads, userRooms } = this.#engine;
    const [head, rooms] = await Promise.all([heads.get(roomId), userRooms.of(userId)]);
    const room = rooms.get(roomId);
    const strippedEvents = room && (await this.#engine.strippedState(userId, room));
    if (!head && !strippedEvents) return undefined;
    const contents = new Map<string, JsonObject>();
    for (const type of descriptiveTypes) {
      const content = strippedEvents
        ? strippedEvents.find((event) => event.type === type && event.state_key === '')?.content
        : await this.#content(head, type, '');
      if (content) contents.set(type, content as JsonObject);
    }
    const description = roomFactsOf((type, stateKey) => (stateKey === '' ? contents.get(type) : undefined));
    const name = description.name ?? description.canonicalAlias;
    const invite =
      room?.membership === 'invite' ? (await this.#engine.events.get(room.eventNid))?.event : undefined;
    const otherMemberCount = head ? head.memberCount('join') + head.memberCount('invite') - 1 : 1;
    return {
      name,
      title: name ?? (await this.#namesOfMembers(roomId, head, userId, invite?.sender)),
      otherMemberCount: Math.max(0, otherMemberCount),
      avatarUrl: description.avatarUrl,
      isSpace: description.roomType === 'm.space',
      isEncrypted: description.encryption !== undefined,
      membership: room?.membership,
      inviter: invite?.sender,
    };
  }

  /**
   * Returns how a room shows a member.
   * @param viewer the user who sees the member. When the server is not in the room, the member is read from the
   * stripped state of this user's invite
   */
  async member(roomId: string, userId: string, viewer: string): Promise<ShownMember> {
    const head = await this.#engine.heads.get(roomId);
    const content =
      (await this.#content(head, 'm.room.member', userId)) ??
      (await this.#strippedMember(roomId, userId, viewer));
    const { displayname, avatar_url: avatarUrl } = content ?? {};
    return {
      name: typeof displayname === 'string' && displayname !== '' ? displayname : userId,
      avatarUrl: typeof avatarUrl === 'string' && avatarUrl !== '' ? avatarUrl : undefined,
    };
  }

  async #strippedMember(roomId: string, userId: string, viewer: string): Promise<JsonObject | undefined> {
    const room = (await this.#engine.userRooms.of(viewer)).get(roomId);
    const strippedEvents = room && (await this.#engine.strippedState(viewer, room));
    const memberEvent = strippedEvents?.find(
      (event) => event.type === 'm.room.member' && event.state_key === userId,
    );
    return memberEvent?.content as JsonObject | undefined;
  }

  async #namesOfMembers(
    roomId: string,
    head: RoomHead | undefined,
    userId: string,
    inviter: string | undefined,
  ): Promise<string> {
    const heroes = selectHeroes(head?.members ?? [], userId);
    if (heroes.length === 0 && inviter !== undefined) heroes.push(inviter);
    const names = await Promise.all(
      heroes.map(async (hero) => (await this.member(roomId, hero, userId)).name),
    );
    return names.length === 0 ? 'Empty room' : joinNames(names);
  }

  async #content(
    head: RoomHead | undefined,
    type: string,
    stateKey: string,
  ): Promise<JsonObject | undefined> {
    const entry = head?.entry(type, stateKey);
    const stored = entry && (await this.#engine.events.get(entry.nid));
    return stored?.redactedBy === undefined ? stored?.event.content : undefined;
  }
}

/** Joins names as the reference server does: "Anna", "Anna and Ben", "Anna and 3 others". */
export function joinNames(names: readonly string[]): string {
  const [first = '', second = ''] = names;
  if (names.length <= 1) return first;
  return names.length === 2 ? `${first} and ${second}` : `${first} and ${names.length - 1} others`;
}
