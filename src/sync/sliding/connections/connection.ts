import { SentDetails } from './sent-details.ts';
import { isSame, type SentRoom } from './sent-room.ts';

/** Whose connection it is. A device may have several, by name. */
export interface ConnectionAddress {
  readonly userId: string;
  readonly deviceId: string;
  readonly name: string;
}

/** What an answer changes of what is known to be sent: by room; `undefined` when it begins anew. */
export type SentChanges = ReadonlyMap<number, SentRoom | undefined>;

/** Rows on disk that nobody needs any more: those of the rooms below a generation. */
export interface Outdated {
  readonly below: number;
  readonly roomNids: readonly number[];
}

/**
 * What was sent on a connection: up to the position that the client has shown to have, and in the answer after that,
 * of which it is not known yet whether it has arrived. Source: MSC4186, "Connections".
 */
export class Connection {
  readonly id: number;
  readonly address: ConnectionAddress;
  /** In memory only: telling it again does no harm. */
  readonly sentDetails = new SentDetails();
  readonly #rooms: Map<number, SentRoom>;
  #generation: number;
  #newest: number;
  #unsure: SentChanges | undefined;
  /** Rooms of which the disk holds something newer that did not arrive. */
  #stray: Set<number>;
  #outdated: Outdated[] = [];
  /** What was asked last, as a digest, and what was said of its lists: the same again is the same if nothing happens. */
  lastAnswer: { readonly request: string; readonly lists: string } | undefined;
  #turn = 0;
  #endTurn: () => void = () => {};

  constructor(
    id: number,
    address: ConnectionAddress,
    known: { generation: number; newest: number; rooms: Map<number, SentRoom>; stray: Set<number> },
  ) {
    this.id = id;
    this.address = address;
    this.#generation = known.generation;
    this.#newest = known.newest;
    this.#rooms = known.rooms;
    this.#stray = known.stray;
  }

  /** The generation that the client is at. */
  get generation(): number {
    return this.#generation;
  }

  /** What the client has been sent, by the number of the room. */
  get rooms(): ReadonlyMap<number, SentRoom> {
    return this.#rooms;
  }

  /** Only the newest request of a connection counts. @returns a signal that aborts when there is a newer one. */
  beginRequest(): { readonly superseded: AbortSignal; readonly isCurrent: () => boolean } {
    this.#endTurn();
    const abort = new AbortController();
    const turn = ++this.#turn;
    this.#endTurn = () => abort.abort();
    return { superseded: abort.signal, isCurrent: () => turn === this.#turn };
  }

  /**
   * The client comes with the position of that generation.
   * @returns whether the connection knows it
   */
  accept(generation: number): boolean {
    if (this.#unsure && generation === this.#newest) {
      this.#settle(this.#unsure, generation);
      return true;
    }
    if (generation !== this.#generation) return false;
    if (this.#unsure) this.#disown(this.#unsure);
    return true;
  }

  /**
   * Begins the next generation with what an answer sends.
   * @returns what has to be on disk before the answer is given
   */
  next(changes: SentChanges): { readonly generation: number; readonly toWrite: SentChanges } {
    const toWrite = new Map(changes);
    for (const roomNid of this.#stray) {
      if (!toWrite.has(roomNid)) toWrite.set(roomNid, this.#rooms.get(roomNid));
    }
    for (const [roomNid, sent] of changes) {
      if (!this.#stray.has(roomNid) && isSame(sent, this.#rooms.get(roomNid))) toWrite.delete(roomNid);
    }
    this.#stray = new Set();
    this.#unsure = toWrite;
    this.#newest++;
    return { generation: this.#newest, toWrite };
  }

  /** What may be deleted from the disk now. */
  takeOutdated(): Outdated[] {
    const outdated = this.#outdated;
    this.#outdated = [];
    return outdated;
  }

  /** The last answer did not arrive, or the client does not want it. */
  #disown(changes: SentChanges): void {
    for (const roomNid of changes.keys()) this.#stray.add(roomNid);
    this.#unsure = undefined;
    this.lastAnswer = undefined;
    this.sentDetails.clear();
  }

  #settle(changes: SentChanges, generation: number): void {
    this.#generation = generation;
    this.#unsure = undefined;
    const [kept, gone]: [number[], number[]] = [[], []];
    for (const [roomNid, sent] of changes) {
      (sent ? kept : gone).push(roomNid);
      if (sent) this.#rooms.set(roomNid, sent);
      else this.#rooms.delete(roomNid);
    }
    if (kept.length > 0) this.#outdated.push({ below: generation, roomNids: kept });
    if (gone.length > 0) this.#outdated.push({ below: generation + 1, roomNids: gone });
  }
}
