import { notFound } from '../../protocol/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { PduStore } from './pdu-store.ts';

/** Numbers of events. */
export interface StateNids {
  readonly state: readonly number[];
  /** The events that authorise it, theirs too. */
  readonly authChain: readonly number[];
}

/**
 * States of rooms and what authorises events, for servers that are in them now: they are told all of it, whatever the
 * visibility of the history, for they need it to check events.
 * Source: server-server API, "Retrieving events" and "Retrieving event authorisation information".
 */
export class ServedState {
  readonly #engine: RoomReader;
  readonly #pdus: PduStore;

  constructor(engine: RoomReader, pdus: PduStore) {
    this.#engine = engine;
    this.#pdus = pdus;
  }

  /** The state before an event of the room. @throws MatrixError M_NOT_FOUND, also when that state is not known */
  async before(head: RoomHead, eventId: string): Promise<StateNids> {
    const stored = await this.#event(head, eventId);
    if (stored.event.type === 'm.room.create') return { state: [], authChain: [] };
    if (stored.stateBefore === undefined) throw notFound('The state at this event is not known');
    if (await this.#isPartial(head)) throw notFound('The state of this room is not complete yet');
    const state = [...(await this.#engine.groups.load(stored.stateBefore)).values()];
    return { state, authChain: await this.#authChain(state) };
  }

  /** What authorises an event of the room, all the way. @throws MatrixError M_NOT_FOUND */
  async authChainOf(head: RoomHead, eventId: string): Promise<readonly number[]> {
    const stored = await this.#event(head, eventId);
    const auth = await this.#engine.events.getManyById(stored.event.authEventIds);
    const nids = [...auth.values()]
      .filter(({ roomNid, rejected }) => roomNid === head.roomNid && !rejected)
      .map(({ nid }) => nid);
    const chain = await this.#authChain(nids);
    return [...new Set([...chain, ...nids])].sort((one, other) => one - other);
  }

  /** The ids of events, in the same order. */
  eventIds(nids: readonly number[]): Promise<string[]> {
    return this.#pdus.eventIds(nids);
  }

  /** The JSON of events, in the same order, piece by piece. */
  jsonOf(nids: readonly number[]): AsyncGenerator<readonly string[]> {
    return this.#pdus.read(nids);
  }

  /** An event of the room that is on disk: then what came before it is, too. */
  async #event({ roomNid }: RoomHead, eventId: string): Promise<StoredEvent> {
    const stored = await this.#engine.events.getById(eventId);
    const isTold = stored?.roomNid === roomNid && !stored.rejected;
    if (!isTold || (await this.#pdus.eventIds([stored.nid])).length === 0) {
      throw notFound('There is no such event');
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
