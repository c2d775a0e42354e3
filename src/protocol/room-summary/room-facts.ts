import { historyVisibilityOf } from '../history-visibility/history-visibility.ts';
import { isRoomAlias, isRoomId } from '../identifiers/room-ids.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';

/** Returns the content of a state event; `undefined` if the room has none. */
export type StateContentLookup = (type: string, stateKey: string) => JsonObject | undefined;

/** The properties of a room that its state defines, for summaries, directories, spaces and names. */
export interface RoomFacts {
  /** Never empty. */
  readonly name: string | undefined;
  readonly canonicalAlias: string | undefined;
  readonly topic: string | undefined;
  readonly avatarUrl: string | undefined;
  /** `invite` if it is not set. */
  readonly joinRule: string;
  /** The rooms whose members may join, with the join rule `restricted` or `knock_restricted`. */
  readonly allowedRoomIds: readonly string[];
  readonly guestCanJoin: boolean;
  readonly worldReadable: boolean;
  /** For instance `m.space`. Source: client-server API, "Rooms", "Types". */
  readonly roomType: string | undefined;
  /** The algorithm; `undefined` in rooms without encryption. */
  readonly encryption: string | undefined;
  readonly roomVersion: string;
}

/** Reads the facts from the state of a room. Malformed values count as absent. Never throws. */
export function roomFactsOf(content: StateContentLookup): RoomFacts {
  const text = (type: string, property: string) => textOf(content(type, '')?.[property]);
  const alias = text('m.room.canonical_alias', 'alias');
  const joinRules = content('m.room.join_rules', '');
  return {
    name: text('m.room.name', 'name'),
    canonicalAlias: isRoomAlias(alias) ? alias : undefined,
    topic: topicOf(content('m.room.topic', '')),
    avatarUrl: text('m.room.avatar', 'url'),
    joinRule: textOf(joinRules?.['join_rule']) ?? 'invite',
    allowedRoomIds: allowedRoomIds(joinRules),
    guestCanJoin: text('m.room.guest_access', 'guest_access') === 'can_join',
    worldReadable: historyVisibilityOf(content('m.room.history_visibility', '')) === 'world_readable',
    roomType: text('m.room.create', 'type'),
    encryption: text('m.room.encryption', 'algorithm'),
    roomVersion: text('m.room.create', 'room_version') ?? '1',
  };
}

const textOf = (value: JsonValue | undefined): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/**
 * Returns the topic as plain text. If `m.topic` has representations but none in plain text, there is no
 * topic. A representation without MIME type is plain text.
 * Source: client-server API, `m.room.topic` and "PublishedRoomsChunk".
 */
function topicOf(content: JsonObject | undefined): string | undefined {
  const representations = representationsIn(content?.['m.topic']);
  return representations ? plainTextOf(representations) : textOf(content?.['topic']);
}

/**
 * Returns the texts of an `m.room.topic` event that search finds: the topics that older and newer clients
 * show.
 * Source: client-server API, "Server Side Search", `room_events`.
 */
export function topicTexts(content: JsonObject): string[] {
  const plain = plainTextOf(representationsIn(content['m.topic']) ?? []);
  return [...new Set([textOf(content['topic']), plain].filter((text) => text !== undefined))];
}

function representationsIn(block: JsonValue | undefined): readonly JsonValue[] | undefined {
  const representations = isJsonObject(block) ? block['m.text'] : undefined;
  return Array.isArray(representations) ? representations : undefined;
}

function plainTextOf(representations: readonly JsonValue[]): string | undefined {
  const plain = representations
    .filter(isJsonObject)
    .find(({ mimetype = 'text/plain' }) => mimetype === 'text/plain');
  return textOf(plain?.['body']);
}

/**
 * Returns the rooms in `allow` of the two restricted join rules. Source: client-server API,
 * `m.room.join_rules`.
 */
function allowedRoomIds(joinRules: JsonObject | undefined): string[] {
  const { join_rule: rule, allow } = joinRules ?? {};
  if ((rule !== 'restricted' && rule !== 'knock_restricted') || !Array.isArray(allow)) return [];
  const conditions = allow.filter(isJsonObject).filter(({ type }) => type === 'm.room_membership');
  return [...new Set(conditions.map(({ room_id }) => room_id).filter(isRoomId))];
}
