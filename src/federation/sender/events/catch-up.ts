import type { Database } from '../../../kernel/database/index.ts';
import type { StreamReader } from '../../../kernel/streams/index.ts';
import { serverOfUser } from '../../../protocol/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../../room-engine/index.ts';
import { type MissedRoom, readMissedRooms } from '../store.ts';
import type { SenderTables } from '../tables.ts';
import type { CaughtUp } from '../transactions/transaction.ts';
import type { DeliveryProgress } from './delivery-progress.ts';
import { type OutgoingPdu, outgoingPdu } from './outgoing-pdu.ts';

export interface CatchUpDeps {
  readonly serverName: string;
  readonly database: Database;
  readonly streams: Pick<StreamReader, 'current'>;
  readonly engine: Pick<RoomReader, 'events' | 'heads'>;
  readonly progress: DeliveryProgress;
}

/** Ends of a room's history that are of other servers, and are sent as well: the newest ones. */
const maxOfOthers = 10;

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
    const { progress: notes, database, engine } = this.#deps;
    await notes.flush();
    const rows = await readMissedRooms(database.reader<SenderTables>(), destination, most);
    if (rows.length === 0) return undefined;
    const events = await engine.events.getMany(rows.map((row) => row.event_nid));
    const pdus: OutgoingPdu[] = [];
    const caughtUp = new Map<number, number>();
    for (const row of rows) {
      const stored = events.get(row.event_nid);
      const newest = stored ? await this.#newest(destination, stored, row, most) : undefined;
      if (newest && pdus.length > 0 && pdus.length + newest.events.length > most) break;
      caughtUp.set(row.room_nid, newest?.upTo ?? row.stream);
      for (const event of newest?.events ?? []) pdus.push(outgoingPdu(event));
    }
    return { pdus: pdus.sort((one, other) => one.stream - other.stream), caughtUp };
  }

  /**
   * What leads to all that the server lacks of a room, and up to where on the stream that is: the room's forward
   * extremities, and those that were forward extremities when this server was removed from the room for some time; all of those that are of this server, from the oldest on, so many at a time. The note of the room
   * stays until the last one has arrived. A server that is not in the room any more is told of no more than was for it:
   * the last of that, and who of its users is not invited any more, since it can not ask.
   */
  async #newest(
    destination: string,
    missed: StoredEvent,
    { stream: missedAt, arrived_stream: arrivedAt }: MissedRoom,
    most: number,
  ): Promise<{ readonly events: readonly Placed[]; readonly upTo: number }> {
    const { engine, streams, progress: notes } = this.#deps;
    const upTo = streams.current;
    const head = await engine.heads.get(missed.event.roomId);
    const last = isPlaced(missed) ? [missed] : [];
    if (!head?.servers.has(destination)) {
      const ended = head
        ? await this.#endedInvites(destination, head, { after: arrivedAt, upTo: missedAt })
        : [];
      const all = [...ended.filter(({ nid }) => nid !== missed.nid), ...last].sort(byAge);
      const events = all.slice(0, most);
      return { events, upTo: all.length > most ? (events.at(-1)?.stream ?? missedAt) : missedAt };
    }
    const nids = [...head.formerExtremities, ...head.extremities.map(({ nid }) => nid)];
    // What is not on disk yet will be handed out when it is; what it has taken the place of, it leads to.
    const onDisk = [...(await engine.events.getMany(nids)).values()]
      .filter(isPlaced)
      .filter(({ stream }) => stream <= upTo);
    const ends = onDisk.length === nids.length ? onDisk : [...new Set([...onDisk, ...last])];
    const others = ends
      .filter((stored) => !this.#isSentByUs(stored))
      .sort(byAge)
      .slice(-maxOfOthers);
    const left = [...ends.filter((stored) => this.#isSentByUs(stored)), ...others]
      .filter(({ stream }) => stream > arrivedAt)
      .sort(byAge);
    const events = left.slice(0, most);
    const [end, final] = [events.at(-1), left.at(-1)];
    if (!end || !final) return { events: last, upTo: missedAt };
    if (end === final) return { events, upTo: Math.max(upTo, missedAt) };
    notes.missed(destination, final);
    return { events, upTo: end.stream };
  }

  /** The events in a part of the stream that have ended invites and knocks of a server's users, and still count. */
  async #endedInvites(
    destination: string,
    head: RoomHead,
    { after, upTo }: { readonly after: number; readonly upTo: number },
  ): Promise<Placed[]> {
    const { events } = this.#deps.engine;
    const nids: number[] = [];
    for (const [userId, membership] of head.members) {
      if ((membership !== 'leave' && membership !== 'ban') || serverOfUser(userId) !== destination) continue;
      const entry = head.entry('m.room.member', userId);
      if (entry && entry.stream > after && entry.stream <= upTo) nids.push(entry.nid);
    }
    const ends = [...(await events.getMany(nids)).values()].filter(isPlaced);
    const before = await events.getMany(ends.flatMap(({ replaces }) => replaces ?? []));
    return ends
      .filter((stored) => this.#isSentByUs(stored))
      .filter(({ replaces = 0 }) =>
        wasOutside.has(String(before.get(replaces)?.event.content['membership'])),
      );
  }

  #isSentByUs({ event, distribute }: StoredEvent): boolean {
    return distribute || serverOfUser(event.sender) === this.#deps.serverName;
  }
}

/** Memberships of which a server knows that is not in the room. */
const wasOutside = new Set(['invite', 'knock']);

const byAge = (one: Placed, other: Placed) => one.stream - other.stream;

const isPlaced = (stored: StoredEvent): stored is Placed => stored.stream !== undefined;
