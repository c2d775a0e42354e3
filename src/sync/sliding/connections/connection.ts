import { SentDetails } from './sent-details.ts';
import { isSame, type SentRoom } from './sent-room.ts';

/** Identifies a connection. A device may have several, by name. */
export interface ConnectionAddress {
  readonly userId: string;
  readonly deviceId: string;
  readonly name: string;
}

/** The changes that an answer makes to the sent state, by room nid; `undefined` removes a room. */
export type SentChanges = ReadonlyMap<number, SentRoom | undefined>;

type SentRooms = Map<number, SentRoom | undefined>;

/** Rows on disk that can be deleted: the rows of these rooms below a generation. */
export interface OutdatedRows {
  /** Rows of generations below this number can be deleted. */
  readonly below: number;
  readonly roomNids: readonly number[];
}

/**
 * The sent state of a connection: the data that the client has received up to the position that it has confirmed, and
 * the data of the answer after that position, which the client may not have received. A generation is the number of an
 * answer that has changed the sent state. Source: MSC4186, "Connections".
 */
export class Connection {
  readonly id: number;
  readonly address: ConnectionAddress;
  /** The details of rooms that were sent; in memory only, so that details are sent again after a restart. */
  readonly sentDetails = new SentDetails();
  readonly #rooms: Map<number, SentRoom>;
  #generation: number;
  /** The generation of the last answer, which the client may not have received. */
  #newest: number;
  #unconfirmed: SentChanges | undefined;
  /** Rooms whose newest row on disk belongs to an answer that the client has not received. */
  #unreceived: Set<number>;
  #outdated: OutdatedRows[] = [];
  /**
   * Digest of the last request and the lists of its answer: when the request is repeated and only presence has changed,
   * it is answered with the same lists.
   */
  lastAnswer: { readonly request: string; readonly lists: string } | undefined;

  constructor(
    id: number,
    address: ConnectionAddress,
    stored: { generation: number; newest: number; rooms: Map<number, SentRoom>; unreceived: Set<number> },
  ) {
    this.id = id;
    this.address = address;
    this.#generation = stored.generation;
    this.#newest = stored.newest;
    this.#rooms = stored.rooms;
    this.#unreceived = stored.unreceived;
  }

  /** The generation of the client's position. */
  get generation(): number {
    return this.#generation;
  }

  /** The sent state that the client has confirmed, by room nid. */
  get rooms(): ReadonlyMap<number, SentRoom> {
    return this.#rooms;
  }

  /** Upper bound of the number of rooms in the sent state after the client confirms the last answer. */
  get maxRooms(): number {
    return this.#rooms.size + (this.#unconfirmed?.size ?? 0);
  }

  /**
   * Confirms the generation of the position that the client has sent. If the client still has the position before the
   * last answer, discards that answer.
   * @returns whether the connection knows the generation
   */
  accept(generation: number): boolean {
    if (this.#unconfirmed && generation === this.#newest) {
      this.#confirm(this.#unconfirmed, generation);
      return true;
    }
    if (generation !== this.#generation) return false;
    if (this.#unconfirmed) this.#discard(this.#unconfirmed);
    return true;
  }

  /**
   * Begins the next generation, with the changes that an answer makes to the sent state.
   * @returns the changes that must be on disk before the answer is sent
   */
  next(changes: SentChanges): { readonly generation: number; readonly toWrite: SentRooms } {
    const toWrite = new Map(changes);
    for (const roomNid of this.#unreceived) {
      if (!toWrite.has(roomNid)) toWrite.set(roomNid, this.#rooms.get(roomNid));
    }
    for (const [roomNid, sent] of changes) {
      if (!this.#unreceived.has(roomNid) && isSame(sent, this.#rooms.get(roomNid))) toWrite.delete(roomNid);
    }
    this.#unreceived = new Set();
    this.#unconfirmed = toWrite;
    this.#newest++;
    return { generation: this.#newest, toWrite };
  }

  /** Returns the rows that may be deleted from the disk; the next call does not return them again. */
  takeOutdated(): OutdatedRows[] {
    const outdated = this.#outdated;
    this.#outdated = [];
    return outdated;
  }

  /** Discards the last answer: the client has not received it, or does not want it. */
  #discard(changes: SentChanges): void {
    for (const roomNid of changes.keys()) this.#unreceived.add(roomNid);
    this.#unconfirmed = undefined;
    this.lastAnswer = undefined;
    this.sentDetails.clear();
  }

  #confirm(changes: SentChanges, generation: number): void {
    this.#generation = generation;
    this.#unconfirmed = undefined;
    const kept: number[] = [];
    const removed: number[] = [];
    for (const [roomNid, sent] of changes) {
      (sent ? kept : removed).push(roomNid);
      if (sent) this.#rooms.set(roomNid, sent);
      else this.#rooms.delete(roomNid);
    }
    if (kept.length > 0) this.#outdated.push({ below: generation, roomNids: kept });
    if (removed.length > 0) this.#outdated.push({ below: generation + 1, roomNids: removed });
  }
}
