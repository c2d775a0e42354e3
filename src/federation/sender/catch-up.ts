import type { Database } from '../../kernel/database/index.ts';
import type { Streams } from '../../kernel/streams/index.ts';
import type { RoomEngine, StoredEvent } from '../../rooms/index.ts';
import type { DeliveryNotes } from './delivery-notes.ts';
import { type OutgoingPdu, outgoingPdu } from './outgoing-pdu.ts';
import { readMissedRooms } from './store.ts';
import type { SenderTables } from './tables.ts';
import type { CaughtUp } from './transaction.ts';

export interface CatchUpDeps {
  readonly database: Database;
  readonly streams: Pick<Streams, 'current'>;
  readonly engine: Pick<RoomEngine, 'events' | 'heads'>;
  readonly notes: DeliveryNotes;
}

/** Forward extremities of a room that are sent. */
const mostExtremities = 10;

type Placed = StoredEvent & { readonly stream: number };

/** Finds what to send to a server that has missed events: of each room the newest ones, which lead to the others. */
export class CatchUp {
  readonly #deps: CatchUpDeps;

  constructor(deps: CatchUpDeps) {
    this.#deps = deps;
  }

  /**
   * The events for the next transaction to a server that is behind; `undefined` when there is nothing noted that it
   * lacks. There may be none, when the rooms are gone.
   */
  async next(
    destination: string,
    most: number,
  ): Promise<{ readonly pdus: OutgoingPdu[]; readonly caughtUp: CaughtUp } | undefined> {
    const { notes, database, engine } = this.#deps;
    await notes.flush();
    const rows = await readMissedRooms(database.reader<SenderTables>(), destination, most);
    if (rows.length === 0) return undefined;
    const events = await engine.events.getMany(rows.map((row) => row.event_nid));
    const pdus: OutgoingPdu[] = [];
    const caughtUp = new Map<number, number>();
    for (const row of rows) {
      const stored = events.get(row.event_nid);
      const newest = stored ? await this.#newest(destination, stored, row.stream) : undefined;
      if (newest && pdus.length > 0 && pdus.length + newest.events.length > most) break;
      caughtUp.set(row.room_nid, newest?.upTo ?? row.stream);
      for (const event of newest?.events ?? []) pdus.push(outgoingPdu(event));
    }
    return { pdus: pdus.slice(0, most).sort((one, other) => one.stream - other.stream), caughtUp };
  }

  /**
   * What leads to all that the server lacks of a room, and up to where on the stream that is: the room's forward
   * extremities. A server that is not in the room any more is told of no more than was for it.
   */
  async #newest(
    destination: string,
    missed: StoredEvent,
    missedAt: number,
  ): Promise<{ readonly events: readonly Placed[]; readonly upTo: number }> {
    const { engine, streams } = this.#deps;
    const upTo = streams.current;
    const head = await engine.heads.get(missed.event.roomId);
    const onlyThis = { events: isPlaced(missed) ? [missed] : [], upTo: missedAt };
    if (!head?.servers.has(destination)) return onlyThis;
    const nids = head.extremities.map(({ nid }) => nid);
    if (nids.length === 1 && nids[0] === missed.nid) return onlyThis;
    const extremities = [...(await engine.events.getMany(nids)).values()].filter(isPlaced);
    // What is not on disk yet will be handed out when it is.
    const isComplete =
      extremities.length === nids.length && extremities.every(({ stream }) => stream <= streams.current);
    if (!isComplete) return onlyThis;
    const events = extremities.sort((one, other) => other.stream - one.stream).slice(0, mostExtremities);
    return { events, upTo: Math.max(upTo, missedAt) };
  }
}

const isPlaced = (stored: StoredEvent): stored is Placed => stored.stream !== undefined;
