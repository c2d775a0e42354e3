import { type Randomness, randomLetters } from '../../kernel/randomness.ts';
import {
  getRoomVersion,
  invalidParam,
  isUserId,
  type JsonObject,
  MatrixError,
  type RoomVersion,
  stateKeyOf,
} from '../../protocol/index.ts';
import type { RoomAliases } from '../aliases/room-aliases.ts';
import type { RoomEngine } from '../engine.ts';
import type { Memberships } from '../membership/memberships.ts';
import type { PublishedRooms } from '../published-rooms.ts';
import type { EventToSend } from '../timeline/append.ts';
import { initialPowerLevels, type Preset, presetFor, presetRules } from './presets.ts';

/** The body of `POST /createRoom`. */
export interface RoomRequest {
  readonly visibility?: 'public' | 'private';
  readonly room_alias_name?: string;
  readonly name?: string;
  readonly topic?: string;
  readonly invite?: readonly string[];
  readonly room_version?: string;
  readonly creation_content?: JsonObject;
  readonly initial_state?: readonly { type: string; state_key?: string; content: JsonObject }[];
  readonly preset?: Preset;
  readonly is_direct?: boolean;
  readonly power_level_content_override?: JsonObject;
}

/** Options that shape new rooms. */
export interface CreationOptions {
  readonly default_room_version: string;
  readonly encryption_enabled_by_default_for_room_type: 'all' | 'invite' | 'off';
  readonly default_power_level_content_override: Readonly<
    Partial<Record<Preset, Readonly<Record<string, unknown>> | null>>
  >;
}

export interface RoomCreationParts {
  readonly engine: RoomEngine;
  readonly memberships: Memberships;
  readonly aliases: RoomAliases;
  readonly published: PublishedRooms;
  readonly options: CreationOptions;
  readonly serverName: string;
  readonly randomness: Randomness;
}

/** Makes rooms. Source: client-server API, `POST /createRoom`. */
export class RoomCreation {
  readonly #parts: RoomCreationParts;

  constructor(parts: RoomCreationParts) {
    this.#parts = parts;
  }

  /**
   * Makes a room with all its first events, in the order that the specification gives.
   * @returns the room id
   * @throws MatrixError M_UNSUPPORTED_ROOM_VERSION, M_ROOM_IN_USE, M_INVALID_ROOM_STATE, M_INVALID_PARAM
   */
  async create(creator: string, request: RoomRequest): Promise<string> {
    const version = this.#version(request);
    const preset = request.preset ?? presetFor(request.visibility ?? 'private');
    for (const userId of request.invite ?? []) {
      if (!isUserId(userId)) throw invalidParam(`${userId} is not a user id`);
    }
    const alias = request.room_alias_name;
    const fullAlias = alias === undefined ? undefined : await this.#parts.aliases.checkNew(creator, alias);
    const roomId = await this.#makeRoom(creator, request, version, preset);
    await this.#sendFirstEvents(creator, roomId, request, { version, preset, alias: fullAlias });
    if (fullAlias !== undefined) await this.#parts.aliases.put(creator, fullAlias, roomId);
    if (request.visibility === 'public') await this.#parts.published.publishNew(creator, roomId);
    await this.#invite(creator, roomId, request);
    return roomId;
  }

  #version(request: RoomRequest): RoomVersion {
    const id = request.room_version ?? this.#parts.options.default_room_version;
    const version = getRoomVersion(id);
    if (!version)
      throw new MatrixError(400, 'M_UNSUPPORTED_ROOM_VERSION', `Room version ${id} is not known here`);
    return version;
  }

  async #makeRoom(
    creator: string,
    request: RoomRequest,
    version: RoomVersion,
    preset: Preset,
  ): Promise<string> {
    const { engine, randomness, serverName } = this.#parts;
    const { room_version: _version, creator: _creator, ...given } = request.creation_content ?? {};
    const content: JsonObject = {
      ...given,
      ...additionalCreators(given, request, version, preset),
      ...(version.creator === 'content' ? { creator } : undefined),
      room_version: version.id,
    };
    const roomId =
      version.roomId === 'origin' ? `!${randomLetters(randomness, 18)}:${serverName}` : undefined;
    const draft = { type: 'm.room.create', stateKey: '', sender: creator, content };
    return (await engine.timeline.create(version, roomId, draft)).event.roomId;
  }

  async #sendFirstEvents(
    creator: string,
    roomId: string,
    request: RoomRequest,
    facts: { version: RoomVersion; preset: Preset; alias: string | undefined },
  ): Promise<void> {
    const { engine, memberships } = this.#parts;
    const join = { membership: 'join', ...(await memberships.profileContent(creator)) };
    const state = this.#presetState(request, facts);
    const first: EventToSend[] = [
      { type: 'm.room.member', stateKey: creator, sender: creator, content: join },
      stateEvent(creator, 'm.room.power_levels', this.#powerLevels(creator, request, facts)),
      ...(facts.alias === undefined
        ? []
        : [stateEvent(creator, 'm.room.canonical_alias', { alias: facts.alias })]),
      ...[...state.values()].map((event) => ({ ...event, sender: creator })),
    ];
    try {
      await engine.timeline.appendAll(roomId, first);
    } catch (error) {
      if (error instanceof MatrixError && error.errcode === 'M_FORBIDDEN') {
        throw new MatrixError(400, 'M_INVALID_ROOM_STATE', `The room can not be set up so: ${error.message}`);
      }
      throw error;
    }
  }

  #powerLevels(
    creator: string,
    request: RoomRequest,
    { version, preset }: { version: RoomVersion; preset: Preset },
  ): JsonObject {
    const rules = presetRules[preset];
    const trusted = rules.inviteesAreTrusted ? (request.invite ?? []) : [];
    const { default_power_level_content_override: byPreset } = this.#parts.options;
    const operators = byPreset[preset] as JsonObject | null | undefined;
    const users = { creator, trusted };
    return initialPowerLevels(version, rules, users, [
      operators ?? undefined,
      request.power_level_content_override,
    ]);
  }

  /** What preset, `initial_state`, name and topic set: later ones replace earlier ones, in their place. */
  #presetState(
    request: RoomRequest,
    { preset }: { preset: Preset },
  ): Map<string, { type: string; stateKey: string; content: JsonObject }> {
    const rules = presetRules[preset];
    const state = new Map<string, { type: string; stateKey: string; content: JsonObject }>();
    const set = (type: string, content: JsonObject, stateKey = '') => {
      const key = stateKeyOf(type, stateKey);
      state.delete(key);
      state.set(key, { type, stateKey, content });
    };
    set('m.room.join_rules', { join_rule: rules.joinRule });
    set('m.room.history_visibility', { history_visibility: 'shared' });
    set('m.room.guest_access', { guest_access: rules.guestAccess });
    if (this.#isEncrypted(preset)) set('m.room.encryption', { algorithm: 'm.megolm.v1.aes-sha2' });
    for (const { type, state_key, content } of request.initial_state ?? []) set(type, content, state_key);
    if (request.name !== undefined) set('m.room.name', { name: request.name });
    if (request.topic !== undefined) set('m.room.topic', topicContent(request.topic));
    return state;
  }

  #isEncrypted(preset: Preset): boolean {
    const rule = this.#parts.options.encryption_enabled_by_default_for_room_type;
    return rule === 'all' || (rule === 'invite' && preset !== 'public_chat');
  }

  async #invite(creator: string, roomId: string, request: RoomRequest): Promise<void> {
    const isDirect = request.is_direct === true;
    for (const userId of request.invite ?? []) {
      await this.#parts.memberships.invite(creator, roomId, userId, { isDirect });
    }
  }
}

function stateEvent(sender: string, type: string, content: JsonObject): EventToSend {
  return { type, stateKey: '', sender, content };
}

/** The topic as text and, for clients that know it, as `m.topic`. Source: client-server API, `m.room.topic`. */
function topicContent(topic: string): JsonObject {
  return { topic, 'm.topic': { 'm.text': [{ mimetype: 'text/plain', body: topic }] } };
}

function additionalCreators(
  given: JsonObject,
  request: RoomRequest,
  version: RoomVersion,
  preset: Preset,
): JsonObject | undefined {
  if (!version.privilegedCreators || !presetRules[preset].inviteesAreTrusted) return undefined;
  const listed = Array.isArray(given['additional_creators']) ? given['additional_creators'] : [];
  const creators = [...new Set([...listed, ...(request.invite ?? [])])];
  return creators.length === 0 ? undefined : { additional_creators: creators };
}
