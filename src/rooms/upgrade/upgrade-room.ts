import type { Clock } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { mapConcurrently } from '../../kernel/map-concurrently.ts';
import { opaqueIdLength, type Randomness, randomLetters } from '../../kernel/randomness.ts';
import {
  type BuiltEvent,
  type EventSigner,
  forbidden,
  getRoomVersion,
  invalidParam,
  isUserId,
  type JsonObject,
  MatrixError,
  notFound,
  PowerLevels,
  type RoomVersion,
  stateMapKey,
} from '../../protocol/index.ts';
import type { EventToSend, RoomHead, RoomWriter } from '../../room-engine/index.ts';
import { type StoredEvent, visibleContent } from '../../room-engine/index.ts';
import { buildFromTemplate, graphReferences } from '../../room-federation/index.ts';
import type { RoomAliases } from '../aliases/room-aliases.ts';
import type { RequestingUser, Throttle } from '../limits.ts';
import type { Memberships } from '../membership/memberships.ts';
import type { PublishedRooms } from '../published-rooms.ts';
import { carriedLevels, type OldLevels, restrictedLevels, temporaryLevels } from './carried-levels.ts';
import { carriedCreation, carriedState, mayBeCarried, splitCanonicalAlias } from './carried-state.ts';

export interface RoomUpgradeDeps {
  readonly engine: RoomWriter;
  readonly memberships: Memberships;
  readonly aliases: RoomAliases;
  readonly published: PublishedRooms;
  readonly throttle: Throttle;
  readonly serverName: string;
  readonly randomness: Randomness;
  readonly signer: EventSigner;
  readonly clock: Clock;
}

/** The body of `POST /rooms/{roomId}/upgrade`. */
export interface UpgradeRequest {
  readonly new_version: string;
  readonly additional_creators?: readonly string[];
}

/** The room to replace. */
interface OldRoom extends OldLevels {
  readonly head: RoomHead;
  /** The part of the state that an upgrade needs (`mayBeCarried`), by `stateMapKey`. */
  readonly state: ReadonlyMap<string, StoredEvent>;
  /** Local aliases of the room. */
  readonly aliases: ReadonlySet<string>;
}

const createKey = stateMapKey('m.room.create', '');
const levelsKey = stateMapKey('m.room.power_levels', '');
const canonicalAliasKey = stateMapKey('m.room.canonical_alias', '');

/**
 * Maximum number of copied state events among the first events of the new room, because first events are made without a
 * pause. Further bans and space children are sent after them.
 */
const maxFirstEvents = 100;

/** Number of further events that are sent at the same time. */
const sentAtOnce = 20;

/** Upgrades rooms. Source: client-server API, "Room Upgrades". */
export class RoomUpgrade {
  readonly #deps: RoomUpgradeDeps;
  readonly #running = new LoadOnce<string, string>();

  constructor(deps: RoomUpgradeDeps) {
    this.#deps = deps;
  }

  /**
   * Creates the new room and restricts the old room. The same request during an upgrade (for instance after a double
   * click) is answered with the same room.
   * @returns the id of the new room
   * @throws MatrixError M_UNSUPPORTED_ROOM_VERSION, M_INVALID_PARAM, M_NOT_FOUND for an unknown room, M_FORBIDDEN for
   * users who are not in the room or may not send tombstones, M_LIMIT_EXCEEDED
   */
  upgrade(requester: RequestingUser, roomId: string, request: UpgradeRequest): Promise<string> {
    const key = JSON.stringify([requester.userId, roomId, request]);
    return this.#running.run(key, () => this.#upgrade(requester, roomId, request));
  }

  async #upgrade(requester: RequestingUser, roomId: string, request: UpgradeRequest): Promise<string> {
    const { userId } = requester;
    const version = versionOf(request);
    const creators = version.privilegedCreators ? additionalCreators(userId, request) : [];
    const oldRoom = await this.#oldRoom(userId, roomId);
    if (requester.isShadowBanned) return this.#unusedRoomId();
    this.#deps.throttle.creation(requester, 0);
    const newRoomId = await this.#replace(userId, oldRoom, version, creators);
    await this.#moveAliases(userId, oldRoom, newRoomId);
    await this.#restrict(userId, oldRoom);
    return newRoomId;
  }

  /** Returns a room id that no room has, for shadow-banned users. */
  #unusedRoomId(): string {
    return `!${randomLetters(this.#deps.randomness, opaqueIdLength)}:${this.#deps.serverName}`;
  }

  async #oldRoom(userId: string, roomId: string): Promise<OldRoom> {
    const { engine, aliases } = this.#deps;
    const head = await engine.heads.get(roomId);
    if (!head) throw notFound('Unknown room');
    if (head.membership(userId) !== 'join') throw forbidden('You are not in this room');
    const entries = [...head.state].filter(([key, entry]) => mayBeCarried(key, entry));
    const events = await engine.events.getMany(entries.map(([, { nid }]) => nid));
    const state = new Map<string, StoredEvent>();
    for (const [key, { nid }] of entries) {
      const stored = events.get(nid);
      if (stored) state.set(key, stored);
    }
    const create = state.get(createKey)?.event;
    if (!create) throw new Error(`room ${roomId} has no create event`);
    const levels = state.get(levelsKey)?.event;
    if (!new PowerLevels(create, levels).canSend(userId, 'm.room.tombstone', true)) {
      throw forbidden('You do not have the power level to upgrade this room');
    }
    return { head, state, create, levels, aliases: new Set(await aliases.of(roomId)) };
  }

  /**
   * Creates the new room, then sends the tombstone. In room versions whose room id does not depend on the create
   * event, the create event refers to the tombstone. The tombstone is then built before the new room, but placed after
   * it, so that no room is closed without a replacement.
   */
  async #replace(
    userId: string,
    oldRoom: OldRoom,
    version: RoomVersion,
    creators: readonly string[],
  ): Promise<string> {
    const { engine, randomness, serverName } = this.#deps;
    const { roomId } = oldRoom.head;
    if (version.roomId !== 'origin') {
      const newRoomId = await this.#createRoom(userId, oldRoom, version, { creators });
      await this.#send(roomId, userId, 'm.room.tombstone', tombstoneContent(newRoomId));
      return newRoomId;
    }
    const newRoomId = `!${randomLetters(randomness, opaqueIdLength)}:${serverName}`;
    const tombstone = await this.#buildTombstone(userId, oldRoom.head, newRoomId);
    await this.#createRoom(userId, oldRoom, version, {
      creators,
      newRoomId,
      tombstoneId: tombstone.event.eventId,
    });
    await engine.placement.place(roomId, tombstone, { refuse: true });
    return newRoomId;
  }

  async #buildTombstone(userId: string, head: RoomHead, newRoomId: string): Promise<BuiltEvent> {
    const { engine } = this.#deps;
    const { roomId, version } = head;
    const requested = {
      type: 'm.room.tombstone',
      stateKey: '',
      sender: userId,
      content: tombstoneContent(newRoomId),
    };
    const template = await engine.placement.eventTemplate(roomId, requested);
    const checked = engine.checks.isEmpty ? requested : await engine.checks.pass(requested, { roomId });
    const draft = { ...requested, content: checked.content };
    const references = graphReferences(template.event, version);
    const built = buildFromTemplate(references, { ...draft, roomId }, version, this.#deps, {
      hasOrigin: false,
    });
    return engine.policies.sign(head, built);
  }

  /**
   * Creates the new room with its first events; if one of them is refused, nothing is created. Sends further bans and
   * space children afterwards, and leaves out those that are refused.
   */
  async #createRoom(
    userId: string,
    oldRoom: OldRoom,
    version: RoomVersion,
    {
      creators,
      newRoomId,
      tombstoneId,
    }: {
      readonly creators: readonly string[];
      readonly newRoomId?: string;
      readonly tombstoneId?: string;
    },
  ): Promise<string> {
    const { engine, memberships } = this.#deps;
    const state = (type: string, content: JsonObject): EventToSend => ({
      type,
      stateKey: '',
      sender: userId,
      content,
    });
    const createContent = carriedCreation(oldRoom.create.content, {
      version,
      creator: userId,
      oldRoomId: oldRoom.head.roomId,
      tombstoneId,
      additionalCreators: creators,
    });
    const levels = carriedLevels(oldRoom, version, [userId, ...creators]);
    const temporaryPowerLevels = temporaryLevels(levels, userId, version);
    const join = { ...(await memberships.profileContent(userId)), membership: 'join' };
    const { moved } = this.#canonicalAlias(oldRoom);
    const oldLevels = new PowerLevels(oldRoom.create, oldRoom.levels);
    const carried = carriedState(oldRoom.state, version, userId, oldLevels);
    const others = carried.slice(maxFirstEvents);
    const createdId = await engine.timeline.create(version, newRoomId, [
      state('m.room.create', createContent),
      { type: 'm.room.member', stateKey: userId, sender: userId, content: join },
      state('m.room.power_levels', temporaryPowerLevels ?? levels),
      ...carried.slice(0, maxFirstEvents),
      ...(moved ? [state('m.room.canonical_alias', moved)] : []),
      ...(temporaryPowerLevels && others.length === 0 ? [state('m.room.power_levels', levels)] : []),
    ]);
    await mapConcurrently(others, sentAtOnce, (draft) =>
      engine.timeline.append(createdId, draft).catch(ignoreMatrixError),
    );
    if (temporaryPowerLevels && others.length > 0)
      await this.#send(createdId, userId, 'm.room.power_levels', levels);
    return createdId;
  }

  /** Moves local aliases and the directory entry to the new room. */
  async #moveAliases(userId: string, oldRoom: OldRoom, newRoomId: string): Promise<void> {
    const { roomId } = oldRoom.head;
    await this.moveListing(roomId, newRoomId);
    const { moved, remaining } = this.#canonicalAlias(oldRoom);
    if (moved) await this.#send(roomId, userId, 'm.room.canonical_alias', remaining).catch(ignoreForbidden);
  }

  /**
   * Moves the local aliases and the directory entry of a room to its replacement, also when a remote user has
   * upgraded it.
   */
  async moveListing(roomId: string, newRoomId: string): Promise<void> {
    const { aliases, published } = this.#deps;
    await aliases.moveAll(roomId, newRoomId);
    await published.move(roomId, newRoomId);
  }

  #canonicalAlias({ state, aliases }: OldRoom) {
    const stored = state.get(canonicalAliasKey);
    return splitCanonicalAlias(stored ? visibleContent(stored) : {}, (alias) => aliases.has(alias));
  }

  /** Restricts sending and inviting in the old room to moderators, if the user has the power to do so. */
  async #restrict(userId: string, oldRoom: OldRoom): Promise<void> {
    const content = restrictedLevels(oldRoom);
    if (!content) return;
    await this.#send(oldRoom.head.roomId, userId, 'm.room.power_levels', content).catch(ignoreForbidden);
  }

  async #send(roomId: string, sender: string, type: string, content: JsonObject): Promise<void> {
    await this.#deps.engine.timeline.append(roomId, { type, stateKey: '', sender, content });
  }
}

const tombstoneContent = (newRoomId: string): JsonObject => ({
  body: 'This room has been replaced',
  replacement_room: newRoomId,
});

function versionOf({ new_version: id }: UpgradeRequest): RoomVersion {
  const version = getRoomVersion(id);
  if (!version)
    throw new MatrixError(400, 'M_UNSUPPORTED_ROOM_VERSION', `Room version ${id} is not supported`);
  return version;
}

function additionalCreators(
  userId: string,
  { additional_creators: creators = [] }: UpgradeRequest,
): string[] {
  for (const creator of creators) {
    if (!isUserId(creator)) throw invalidParam(`additional_creators: ${creator} is not a valid user ID`);
  }
  return [...new Set(creators)].filter((creator) => creator !== userId);
}

function ignoreForbidden(error: unknown): void {
  if (!(error instanceof MatrixError && error.errcode === 'M_FORBIDDEN')) throw error;
}

/** Ignores the refusal of one of many events. */
function ignoreMatrixError(error: unknown): void {
  if (!(error instanceof MatrixError)) throw error;
}
