import { notFound } from '../../protocol/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { PduStore } from './pdu-store.ts';

/** A state, as the nids of its events. */
export interface StateNids {
  readonly state: readonly number[];
  /** The auth chain of the state. */
  readonly authChain: readonly number[];
}

/**
 * Returns states and auth chains to servers in a room, regardless of the history visibility, because the servers need
 * them to check events.
 * Source: server-server API, "Retrieving events" and "Retrieving event authorisation information".
 */
export class ServedState {
  readonly #engine: RoomReader;
  readonly #pdus: PduStore;

  constructor(engine: RoomReader, pdus: PduStore) {
    this.#engine = engine;
    this.#pdus = pdus;
  }

  /**
   * Returns the state before an event of the room, and its auth chain.
   * @throws MatrixError M_NOT_FOUND for an unknown event, or an unknown or partial state
   */
  async before(head: RoomHead, eventId: string): Promise<StateNids> {
    const stored = await this.#event(head, eventId);
    if (stored.event.type === 'm.room.create') return { state: [], authChain: [] };
    if (stored.stateBefore === undefined || stored.stateGroup === undefined)
      throw notFound('The state at this event is unknown');
    // While the state of the room is partial, the state before an event lacks members.
    if (await this.#isPartial(head)) throw notFound('The state of this room is still partial');
    const state = [...(await this.#engine.groups.load(stored.stateBefore)).values()];
    return { state, authChain: await this.#authChain(state) };
  }

  /** Returns the auth chain of an event of the room, as ascending nids. @throws MatrixError M_NOT_FOUND */
  async authChainOf(head: RoomHead, eventId: string): Promise<readonly number[]> {
    const stored = await this.#event(head, eventId);
    const auth = await this.#engine.events.getManyById(stored.event.authEventIds);
    const nids = [...auth.values()]
      .filter(({ roomNid, rejected }) => roomNid === head.roomNid && !rejected)
      .map(({ nid }) => nid);
    const chain = await this.#authChain(nids);
    return [...new Set([...chain, ...nids])].sort((a, b) => a - b);
  }

  /** Returns the ids of events, in the order of `nids`. */
  eventIds(nids: readonly number[]): Promise<string[]> {
    return this.#pdus.eventIds(nids);
  }

  /** Returns the JSON of events, in the order of `nids`, in chunks. */
  jsonOf(nids: readonly number[]): AsyncGenerator<readonly string[]> {
    return this.#pdus.read(nids);
  }

  /**
   * Returns an event of the room if it is on disk, so that the events before it are on disk, too.
   * @throws MatrixError M_NOT_FOUND
   */
  async #event({ roomNid }: RoomHead, eventId: string): Promise<StoredEvent> {
    const stored = await this.#engine.events.getById(eventId);
    const isServed = stored?.roomNid === roomNid && !stored.rejected;
    if (!isServed || (await this.#pdus.eventIds([stored.nid])).length === 0) {
      throw notFound('Event not found');
    }
    return stored;
  }

  async #isPartial({ roomId }: RoomHead): Promise<boolean> {
    const rooms = await this.#engine.partialRooms();
    return rooms.some((room) => room.roomId === roomId);
  }

  #authChain(nids: readonly number[]): Promise<number[]> {
    return this.#engine.authChain(nids);
  }
}
