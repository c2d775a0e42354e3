import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { FactBuffer, Follower, type StreamReader } from '../../kernel/streams/index.ts';
import { isJsonObject, MatrixError, membershipOf, serverOfUser } from '../../protocol/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';

export interface SettingsTransferDeps {
  readonly database: Database;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly log: Logger;
  readonly engine: RoomReader;
  readonly serverName: string;
  /**
   * Copies a user's settings from one room to another. May be called more than once for the same rooms.
   * @throws MatrixError when the settings cannot be copied in a later attempt either
   */
  readonly transfer: (userId: string, fromRoomId: string, toRoomId: string) => Promise<void>;
  /** Moves the local aliases and the directory entry of a room to another room. May be called more than once. */
  readonly moveListing: (fromRoomId: string, toRoomId: string) => Promise<void>;
}

/** Maximum number of events per query when the follower catches up. */
const eventsAtOnce = 500;

/**
 * Copies a local user's settings from the old room when the user joins a room that replaces it. Also moves the local
 * aliases and the directory entry of the old room: if a remote user has upgraded it, they have not been moved yet. The
 * tombstone of a local user has the same effect as a join, because the user who upgrades a room joins the new room
 * before the tombstone is sent.
 * Source: client-server API, "Room Upgrades", last sentence of "Server behaviour".
 */
export class SettingsTransfer {
  readonly #deps: SettingsTransferDeps;
  readonly #follower: Follower;
  /** Joins and tombstones to handle. */
  readonly #buffer: FactBuffer<{ readonly stored: StoredEvent; readonly position: number }>;

  constructor(deps: SettingsTransferDeps) {
    this.#deps = deps;
    this.#buffer = new FactBuffer(deps.streams);
    deps.engine.stream.subscribe(({ stored, onTimeline }, position) => {
      if (onTimeline && this.#isRelevant(stored)) this.#buffer.add({ stored, position });
    });
    this.#follower = new Follower(deps, {
      name: 'rooms/settings-transfer',
      follow: (after, upTo) => this.#follow(after, upTo),
    });
  }

  /** Follows the stream of rooms, from the last stored position on. */
  start(): Promise<void> {
    return this.#follower.start();
  }

  /** Stops following; the next start continues. */
  stop(): Promise<void> {
    return this.#follower.stop();
  }

  async #follow(after: number, upTo: number): Promise<void> {
    const buffered = this.#buffer.take(after, upTo);
    if (buffered === undefined) return this.#followStored(after, upTo);
    for (const { stored } of buffered) await this.#handle(stored);
  }

  /** Handles the events at the stream positions in `(after, upTo]`, which are read from the database. */
  async #followStored(after: number, upTo: number): Promise<void> {
    for (let from = after; from < upTo; ) {
      const candidates = await this.#deps.engine.events.between(from, upTo, eventsAtOnce);
      for (const stored of candidates) if (this.#isRelevant(stored)) await this.#handle(stored);
      from = candidates.length < eventsAtOnce ? upTo : (candidates.at(-1)?.stream ?? upTo);
    }
  }

  #isRelevant({ event, rejected, softFailed }: StoredEvent): boolean {
    const { type, stateKey, sender, content } = event;
    if (stateKey === undefined || rejected || softFailed) return false;
    const isLocal = (userId: string) => serverOfUser(userId) === this.#deps.serverName;
    if (type === 'm.room.tombstone') return stateKey === '' && isLocal(sender);
    return type === 'm.room.member' && membershipOf(content) === 'join' && isLocal(stateKey);
  }

  async #handle({ event, replaces }: StoredEvent): Promise<void> {
    const { engine } = this.#deps;
    const { type, roomId, sender, stateKey = '', content } = event;
    if (type === 'm.room.tombstone') {
      const newRoomId = content['replacement_room'];
      const head = typeof newRoomId === 'string' ? await engine.heads.get(newRoomId) : undefined;
      if (head?.membership(sender) === 'join') await this.#transferIfReplacement(sender, head.roomId);
      return;
    }
    const before = replaces === undefined ? undefined : await engine.events.get(replaces);
    if (membershipOf(before?.event.content) !== 'join') await this.#transferIfReplacement(stateKey, roomId);
  }

  /** Transfers the settings of a joined user if the room replaces another room. */
  async #transferIfReplacement(userId: string, roomId: string): Promise<void> {
    const { engine, transfer, moveListing } = this.#deps;
    const head = await engine.heads.get(roomId);
    const predecessor = head && (await this.#stateField(head, 'm.room.create', 'predecessor'));
    const oldRoomId = isJsonObject(predecessor) ? predecessor['room_id'] : undefined;
    const oldHead = typeof oldRoomId === 'string' ? await engine.heads.get(oldRoomId) : undefined;
    if (oldHead?.membership(userId) === undefined) return;
    // Any user can create a room that claims a predecessor: the tombstone of the old room must confirm it.
    const replacement = await this.#stateField(oldHead, 'm.room.tombstone', 'replacement_room');
    if (replacement !== roomId) return;
    const rooms = { room: roomId, predecessor: oldHead.roomId };
    await this.#logRefusal({ ...rooms, user: userId }, () => transfer(userId, oldHead.roomId, roomId));
    await this.#logRefusal(rooms, () => moveListing(oldHead.roomId, roomId));
  }

  /**
   * Does the work. Logs a MatrixError, which each retry would repeat, so that it does not delay other users' settings.
   */
  async #logRefusal(rooms: object, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof MatrixError)) throw error;
      this.#deps.log.warn(
        { ...rooms, err: error },
        'Some settings or aliases of a replaced room could not be moved',
      );
    }
  }

  /** Returns a field of the content of a current state event. */
  async #stateField(head: RoomHead, type: string, field: string) {
    const entry = head.entry(type, '');
    return entry && (await this.#deps.engine.events.get(entry.nid))?.event.content[field];
  }
}
