import { mapConcurrently } from '../../kernel/map-concurrently.ts';
import { opaqueIdLength, type Randomness, randomLetters } from '../../kernel/randomness.ts';
import {
  getRoomVersion,
  invalidParam,
  type JsonObject,
  MatrixError,
  type RoomVersion,
  serverOfUser,
  stateMapKey,
} from '../../protocol/index.ts';
import {
  type EventToSend,
  type RoomWriter,
  type SentTransaction,
  UnauthorizedEvent,
} from '../../room-engine/index.ts';
import type { RoomAliases } from '../aliases/room-aliases.ts';
import type { RequestingUser, Throttle } from '../limits.ts';
import type { Memberships } from '../membership/memberships.ts';
import type { PublishedRooms } from '../published-rooms.ts';
import { checkInitialState, type InitialState, invalidRoomState } from './initial-state.ts';
import { initialPowerLevels, type Preset, presetOfVisibility, presetRules } from './presets.ts';

/** The body of `POST /createRoom`. */
export interface RoomRequest {
  readonly visibility?: 'public' | 'private';
  readonly room_alias_name?: string;
  readonly name?: string;
  readonly topic?: string;
  readonly invite?: readonly string[];
  readonly room_version?: string;
  readonly creation_content?: JsonObject;
  readonly initial_state?: readonly InitialState[];
  readonly preset?: Preset;
  readonly is_direct?: boolean;
  readonly power_level_content_override?: JsonObject;
}

/** Options of new rooms. */
export interface CreationOptions {
  readonly default_room_version: string;
  readonly encryption_enabled_by_default_for_room_type: 'all' | 'invite' | 'off';
  readonly default_power_level_content_override: Readonly<
    Partial<Record<Preset, Readonly<Record<string, unknown>> | null>>
  >;
}

export interface RoomCreationDeps {
  readonly engine: RoomWriter;
  readonly memberships: Memberships;
  readonly aliases: RoomAliases;
  readonly published: PublishedRooms;
  readonly throttle: Throttle;
  readonly options: CreationOptions;
  readonly serverName: string;
  readonly randomness: Randomness;
}

/** Properties of a new room that no client can request. */
export interface RoomOverrides {
  /** The room is not encrypted, for any value of `encryption_enabled_by_default_for_room_type`. */
  readonly unencrypted?: boolean;
  /**
   * The transaction that creates the room. It is stored with the create event, so that `TransactionIds` finds the room
   * when the transaction is repeated.
   */
  readonly transaction?: SentTransaction | undefined;
}

/** A validated request to create a room. */
interface RoomPlan extends RoomOverrides {
  readonly version: RoomVersion;
  readonly preset: Preset;
  readonly alias: string | undefined;
  readonly invitees: readonly string[];
}

/** Maximum number of invites among the first events of a room, which are written together. */
const maxFirstInvites = 100;

/** Maximum number of invites that are sent, and of profiles that are read, at the same time. */
const maxConcurrentInvites = 10;

const levelsKey = stateMapKey('m.room.power_levels', '');

/** Creates rooms. Source: client-server API, `POST /createRoom`. */
export class RoomCreation {
  readonly #deps: RoomCreationDeps;

  constructor(deps: RoomCreationDeps) {
    this.#deps = deps;
  }

  /**
   * Creates a room with its first events, in the order that the specification defines; if one of them is refused, no
   * room is created.
   * @param requester absent when the server acts by itself
   * @returns the room id
   * @throws MatrixError M_UNSUPPORTED_ROOM_VERSION, M_INVALID_ROOM_STATE, M_INVALID_PARAM, M_LIMIT_EXCEEDED, the errors
   * of `RoomAliases.checkNew` for the alias, of `EventAppender.create` for the first events, and of
   * `Memberships.checkInvitee` for the invited users
   */
  async create(
    creator: string,
    request: RoomRequest,
    requester?: RequestingUser,
    overrides: RoomOverrides = {},
  ): Promise<string> {
    const { aliases, published, throttle, memberships } = this.#deps;
    const version = this.#version(request);
    const preset = request.preset ?? presetOfVisibility(request.visibility ?? 'private');
    const invitees = [...new Set(request.invite)];
    if (invitees.includes(creator)) throw invalidParam('You cannot invite yourself');
    throttle.creation(requester, invitees.length);
    for (const userId of invitees) await memberships.checkInvitee(creator, userId);
    const name = request.room_alias_name;
    const aliasRequester = { userId: creator, appservice: requester?.appservice };
    const alias = name === undefined ? undefined : await aliases.checkNew(aliasRequester, name);
    checkInitialState(request.initial_state ?? [], alias, this.#deps.serverName);
    const roomId = await this.#createRoom(creator, request, {
      ...overrides,
      version,
      preset,
      alias,
      invitees,
    });
    if (alias !== undefined) await aliases.put(creator, alias, roomId);
    if (request.visibility === 'public') await published.publishNew(creator, roomId);
    const firstInvitees = this.#firstInvitees(invitees);
    const otherInvitees = invitees.filter((userId) => !firstInvitees.includes(userId));
    await this.#inviteOthers(creator, roomId, otherInvitees, inviteContent(request));
    return roomId;
  }

  /** Checks whether the user may create a room at this time. @throws MatrixError M_LIMIT_EXCEEDED */
  checkRate(requester: RequestingUser): void {
    this.#deps.throttle.checkCreation(requester);
  }

  /** Returns the users whose invites are among the first events of the room. */
  #firstInvitees(invitees: readonly string[]): readonly string[] {
    const isLocal = (userId: string) => serverOfUser(userId) === this.#deps.serverName;
    return invitees.filter(isLocal).slice(0, maxFirstInvites);
  }

  /**
   * Invites the users whose invites are not among the first events: users of other servers, because their server must
   * sign the invite, and local users beyond the first `maxFirstInvites`. A refused invite does not fail the creation.
   */
  async #inviteOthers(
    creator: string,
    roomId: string,
    invitees: readonly string[],
    extraContent: JsonObject,
  ): Promise<void> {
    const invite = (userId: string) =>
      this.#deps.memberships.invite(creator, roomId, userId, { extraContent }).catch((error: unknown) => {
        if (!(error instanceof MatrixError)) throw error;
      });
    await mapConcurrently(invitees, maxConcurrentInvites, invite);
  }

  #version(request: RoomRequest): RoomVersion {
    const id = request.room_version ?? this.#deps.options.default_room_version;
    const version = getRoomVersion(id);
    if (!version)
      throw new MatrixError(400, 'M_UNSUPPORTED_ROOM_VERSION', `Room version ${id} is not supported`);
    return version;
  }

  async #createRoom(creator: string, request: RoomRequest, plan: RoomPlan): Promise<string> {
    const { engine, randomness, serverName } = this.#deps;
    const { version, transaction } = plan;
    const roomId =
      version.roomId === 'origin' ? `!${randomLetters(randomness, opaqueIdLength)}:${serverName}` : undefined;
    const createEvent = stateEvent(creator, 'm.room.create', creationContent(creator, request, plan));
    const laterEvents = await this.#firstEvents(creator, request, plan);
    try {
      return await engine.timeline.create(version, roomId, [createEvent, ...laterEvents], { transaction });
    } catch (error) {
      if (error instanceof UnauthorizedEvent) throw invalidRoomState(error.message);
      throw error;
    }
  }

  /** Returns the events after `m.room.create`. */
  async #firstEvents(creator: string, request: RoomRequest, plan: RoomPlan): Promise<EventToSend[]> {
    const { memberships } = this.#deps;
    const join = { ...(await memberships.profileContent(creator)), membership: 'join' };
    const state = this.#presetState(request, plan);
    const levels = state.get(levelsKey)?.content ?? this.#powerLevels(creator, request, plan);
    state.delete(levelsKey);
    const invitees = this.#firstInvitees(plan.invitees);
    const invitations = await mapConcurrently(invitees, maxConcurrentInvites, (userId) =>
      memberships.invitation(creator, userId, inviteContent(request)),
    );
    return [
      { type: 'm.room.member', stateKey: creator, sender: creator, content: join },
      stateEvent(creator, 'm.room.power_levels', levels),
      ...(plan.alias === undefined
        ? []
        : [stateEvent(creator, 'm.room.canonical_alias', { alias: plan.alias })]),
      ...[...state.values()].map((event) => ({ ...event, sender: creator })),
      ...invitations,
    ];
  }

  #powerLevels(creator: string, request: RoomRequest, { version, preset, invitees }: RoomPlan): JsonObject {
    const rules = presetRules[preset];
    const trusted = rules.inviteesAreTrusted ? invitees : [];
    const { default_power_level_content_override: levelsByPreset } = this.#deps.options;
    const configuredLevels = levelsByPreset[preset] as JsonObject | null | undefined;
    const users = { creator, trusted };
    return initialPowerLevels(version, rules, users, [
      configuredLevels ?? undefined,
      request.power_level_content_override,
    ]);
  }

  /**
   * Returns the state events of the preset, `initial_state`, name and topic, in this order; an event with the same
   * type and state key as an earlier event replaces it.
   */
  #presetState(
    request: RoomRequest,
    { preset, unencrypted }: RoomPlan,
  ): Map<string, { type: string; stateKey: string; content: JsonObject }> {
    const rules = presetRules[preset];
    const state = new Map<string, { type: string; stateKey: string; content: JsonObject }>();
    const set = (type: string, content: JsonObject, stateKey = '') => {
      const key = stateMapKey(type, stateKey);
      state.delete(key);
      state.set(key, { type, stateKey, content });
    };
    set('m.room.join_rules', { join_rule: rules.joinRule });
    set('m.room.history_visibility', { history_visibility: 'shared' });
    // Guests cannot join rooms without this event.
    if (rules.guestAccess === 'can_join') set('m.room.guest_access', { guest_access: rules.guestAccess });
    if (!unencrypted && this.#isEncrypted(preset))
      set('m.room.encryption', { algorithm: 'm.megolm.v1.aes-sha2' });
    for (const { type, state_key, content } of request.initial_state ?? []) set(type, content, state_key);
    if (request.name !== undefined) set('m.room.name', { name: request.name });
    if (request.topic !== undefined) set('m.room.topic', topicContent(request.topic));
    return state;
  }

  /** Whether new rooms with the preset are encrypted from the start. */
  #isEncrypted(preset: Preset): boolean {
    const rule = this.#deps.options.encryption_enabled_by_default_for_room_type;
    return rule === 'all' || (rule === 'invite' && preset !== 'public_chat');
  }
}

function stateEvent(sender: string, type: string, content: JsonObject): EventToSend {
  return { type, stateKey: '', sender, content };
}

const inviteContent = ({ is_direct: isDirect }: RoomRequest): JsonObject =>
  isDirect === true ? { is_direct: true } : {};

/** Returns a content with the topic as text and as `m.topic`. Source: client-server API, `m.room.topic`. */
function topicContent(topic: string): JsonObject {
  return { topic, 'm.topic': { 'm.text': [{ mimetype: 'text/plain', body: topic }] } };
}

function creationContent(creator: string, request: RoomRequest, plan: RoomPlan): JsonObject {
  const { version } = plan;
  const { room_version: _version, creator: _creator, ...requestedContent } = request.creation_content ?? {};
  return {
    ...requestedContent,
    ...additionalCreators(requestedContent, plan),
    ...(version.creator === 'content' ? { creator } : undefined),
    room_version: version.id,
  };
}

function additionalCreators(
  requestedContent: JsonObject,
  { version, preset, invitees }: RoomPlan,
): JsonObject | undefined {
  const { additional_creators: listed = [] } = requestedContent;
  if (!version.privilegedCreators || !presetRules[preset].inviteesAreTrusted || !Array.isArray(listed)) {
    return undefined;
  }
  const creators = [...new Set([...listed, ...invitees])];
  return creators.length === 0 ? undefined : { additional_creators: creators };
}
