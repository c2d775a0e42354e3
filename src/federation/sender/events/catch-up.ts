import type { Database } from '../../../kernel/database/index.ts';
import type { StreamReader } from '../../../kernel/streams/index.ts';
import { serverOfUser } from '../../../protocol/index.ts';
import type { RoomHead, RoomReader, RoomTables, StoredEvent } from '../../../room-engine/index.ts';
import { type MissedRoom, readMissedRooms, readRoomId } from '../store.ts';
import type { SenderTables } from '../tables.ts';
import { type OutgoingPdu, outgoingPdu } from '../transactions/outgoing-pdu.ts';
import type { CaughtUp } from '../transactions/transaction.ts';
import type { DeliveryProgress } from './delivery-progress.ts';

export interface CatchUpDeps {
  readonly serverName: string;
  readonly database: Database;
  readonly streams: Pick<StreamReader, 'current'>;
  readonly engine: Pick<RoomReader, 'events' | 'heads' | 'retention'>;
  readonly progress: DeliveryProgress;
}

/** Maximum number of forward extremities from other servers that are sent besides local ones; the newest are chosen. */
const maxByOthers = 10;

/** An event with a position on the stream of rooms. */
type Placed = StoredEvent & { readonly stream: number };

/**
 * Finds the events to send to a server that has missed events: the newest events of each room. The server can fetch the
 * earlier events itself.
 */
export class CatchUp {
  readonly #deps: CatchUpDeps;

  constructor(deps: CatchUpDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the events for the next transaction to a server that is behind; `undefined` when no missed event
   * is recorded. The list may be empty, when the rooms were deleted.
   */
  async next(
    destination: string,
    limit: number,
  ): Promise<{ readonly pdus: OutgoingPdu[]; readonly caughtUp: CaughtUp } | undefined> {
    const { progress, database, engine } = this.#deps;
    await progress.flush();
    const rows = await readMissedRooms(database.reader<SenderTables>(), destination, limit);
    if (rows.length === 0) return undefined;
    const events = await engine.events.getMany(rows.map((row) => row.event_nid));
    const pdus: OutgoingPdu[] = [];
    const caughtUp = new Map<number, number>();
    for (const row of rows) {
      const stored = events.get(row.event_nid);
      const roomId = stored?.event.roomId ?? (await readRoomId(database.reader<RoomTables>(), row.room_nid));
      const room = roomId === undefined ? undefined : { roomId, missed: stored };
      const newest = room ? await this.#eventsOfRoom(destination, room, row, limit) : undefined;
      if (newest && pdus.length > 0 && pdus.length + newest.events.length > limit) break;
      caughtUp.set(row.room_nid, newest?.upTo ?? row.stream);
      // Messages may have expired while the destination was down.
      const head = roomId === undefined ? undefined : await engine.heads.get(roomId);
      const expiredBefore = head && (await engine.retention.expiredBefore(head));
      for (const event of newest?.events ?? []) pdus.push(outgoingPdu(event, expiredBefore));
    }
    return { pdus: pdus.sort((one, other) => one.stream - other.stream), caughtUp };
  }

  /**
   * Returns at most `limit` events of a room that the destination lacks, oldest first. A destination with these events
   * lacks no event of the room up to the stream position `upTo`. When further events remain, the room stays recorded as
   * missed.
   *
   * A destination in the room receives the forward extremities. If this server was out of the room for some time, the
   * destination also receives the extremities that the room had when the last local user left it. A destination that
   * has left the room receives only events that concern it and that it cannot request: the last missed event, and the
   * events that end invites of its users.
   * @param room `missed`: the last missed event, absent when it was purged
   */
  async #eventsOfRoom(
    destination: string,
    { roomId, missed }: { readonly roomId: string; readonly missed: StoredEvent | undefined },
    { stream: missedAt, arrived_stream: arrivedAt }: MissedRoom,
    limit: number,
  ): Promise<{ readonly events: readonly Placed[]; readonly upTo: number }> {
    const { engine, streams, progress } = this.#deps;
    const upTo = streams.current;
    const head = await engine.heads.get(roomId);
    const lastMissed = missed && isPlaced(missed) ? [missed] : [];
    if (!head?.servers.has(destination)) {
      const endedInvites = head
        ? await this.#endedInvites(destination, head, { after: arrivedAt, upTo: missedAt })
        : [];
      const missedEvents = [...endedInvites.filter(({ nid }) => nid !== missed?.nid), ...lastMissed].sort(
        byStream,
      );
      const events = missedEvents.slice(0, limit);
      return { events, upTo: missedEvents.length > limit ? (events.at(-1)?.stream ?? missedAt) : missedAt };
    }
    const nids = [...head.formerExtremities, ...head.extremities.map(({ nid }) => nid)];
    // Extremities that are not on disk yet are fanned out later. Until then, the last missed event stands for them.
    const onDisk = [...(await engine.events.getMany(nids)).values()]
      .filter(isPlaced)
      .filter(({ stream }) => stream <= upTo);
    const extremities = onDisk.length === nids.length ? onDisk : [...new Set([...onDisk, ...lastMissed])];
    const byOthers = extremities
      .filter((stored) => !this.#isSentByUs(stored))
      .sort(byStream)
      .slice(-maxByOthers);
    const missing = [...extremities.filter((stored) => this.#isSentByUs(stored)), ...byOthers]
      .filter(({ stream }) => stream > arrivedAt)
      .sort(byStream);
    const events = missing.slice(0, limit);
    const lastSent = events.at(-1);
    const newest = missing.at(-1);
    if (!lastSent || !newest) return { events: lastMissed, upTo: missedAt };
    if (lastSent === newest) return { events, upTo: Math.max(upTo, missedAt) };
    progress.missed(destination, newest);
    return { events, upTo: lastSent.stream };
  }

  /**
   * Returns this server's events that have ended invites and knocks of the destination's users. Only events in the
   * given part of the stream that are still current state are returned.
   */
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
    const memberEvents = [...(await events.getMany(nids)).values()].filter(isPlaced);
    const before = await events.getMany(memberEvents.flatMap(({ replaces }) => replaces ?? []));
    return memberEvents
      .filter((stored) => this.#isSentByUs(stored))
      .filter(({ replaces = 0 }) =>
        outOfBandMemberships.has(String(before.get(replaces)?.event.content['membership'])),
      );
  }

  #isSentByUs({ event, distribute, acceptedElsewhere }: StoredEvent): boolean {
    return distribute || (!acceptedElsewhere && serverOfUser(event.sender) === this.#deps.serverName);
  }
}

/** Memberships that the user's server knows of without being in the room. */
const outOfBandMemberships = new Set(['invite', 'knock']);

const byStream = (one: Placed, other: Placed) => one.stream - other.stream;

const isPlaced = (stored: StoredEvent): stored is Placed => stored.stream !== undefined;
