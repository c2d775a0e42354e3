import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import { notFound, serverOfUser } from '../protocol/index.ts';
import type { RoomReader } from '../room-engine/index.ts';
import { type ActionLimit, RoomView } from '../rooms/index.ts';
import type { ReportTables } from './tables.ts';

export interface ReportsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly engine: RoomReader;
  readonly serverName: string;
  /** Whether the user exists on this server; supplied at composition. */
  readonly userExists: (userId: string) => Promise<boolean>;
  /** The limiter of `rc_reports`. */
  readonly limit: ActionLimit;
}

/** The details that a reporter sends. */
export interface ReportDetails {
  readonly reason?: string | undefined;
  readonly score?: number | undefined;
}

/** A stored report. Times are in milliseconds since the epoch. */
export interface Report extends ReportDetails {
  readonly id: number;
  readonly kind: 'event' | 'room' | 'user';
  readonly receivedTs: number;
  readonly reporter: string;
  readonly roomId: string | undefined;
  readonly eventId: string | undefined;
  readonly userId: string | undefined;
}

/** Maximum characters of a reason that are stored. */
const maxReasonLength = 10_000;

/**
 * Stores reports for the administrators. Reports of local users who do not exist are accepted but not stored, so that
 * the existence of accounts is not revealed. Reports of unknown rooms are refused: responses to joins, too, reveal
 * whether this server knows a room. Source: client-server API, "Reporting Content".
 */
export class Reports {
  readonly #deps: ReportsDeps;

  constructor(deps: ReportsDeps) {
    this.#deps = deps;
  }

  /** Throws MatrixError M_LIMIT_EXCEEDED when the reporter may not report at this time. */
  checkRate(reporter: string): void {
    this.#deps.limit.check(reporter);
  }

  /**
   * Stores a report of an event that the reporter can see.
   * @throws MatrixError M_NOT_FOUND when the reporter is not in the room or cannot see the event,
   * M_LIMIT_EXCEEDED
   */
  async reportEvent(
    reporter: string,
    roomId: string,
    eventId: string,
    details: ReportDetails,
  ): Promise<void> {
    const { engine, limit } = this.#deps;
    limit.take(reporter);
    const head = await engine.heads.get(roomId);
    const stored = await engine.events.getById(eventId);
    const isInRoom = head?.membership(reporter) === 'join' && stored?.roomNid === head.roomNid;
    const visible = isInRoom ? await (await RoomView.open(engine, head, reporter)).visible([stored]) : [];
    if (!isInRoom || visible.length === 0) throw notFound('No such event in the rooms that you have joined');
    await this.#store('event', reporter, details, { roomId, eventId, userId: stored.event.sender });
  }

  /** Stores a report of a room. @throws MatrixError M_NOT_FOUND for an unknown room, M_LIMIT_EXCEEDED */
  async reportRoom(reporter: string, roomId: string, details: ReportDetails): Promise<void> {
    const { engine, limit } = this.#deps;
    limit.take(reporter);
    if (!(await engine.heads.get(roomId))) throw notFound('Unknown room');
    await this.#store('room', reporter, details, { roomId });
  }

  /** Stores a report of a user, except of a local user who does not exist. @throws MatrixError M_LIMIT_EXCEEDED */
  async reportUser(reporter: string, userId: string, details: ReportDetails): Promise<void> {
    const { limit, serverName, userExists } = this.#deps;
    limit.take(reporter);
    const mayExist = serverOfUser(userId) !== serverName || (await userExists(userId));
    if (mayExist) await this.#store('user', reporter, details, { userId });
  }

  /** Returns reports, latest first. @param before returns only reports with lower ids */
  async list({ before, limit }: { before?: number; limit: number }): Promise<Report[]> {
    const reader = this.#deps.database.reader<ReportTables>();
    let query = reader.selectFrom('reports').selectAll().orderBy('id', 'desc').limit(limit);
    if (before !== undefined) query = query.where('id', '<', before);
    return (await query.execute()).map(toReport);
  }

  /** Deletes a report. @returns whether there was one of this kind */
  async remove(kind: Report['kind'], id: number): Promise<boolean> {
    return this.#deps.database.transaction<ReportTables, boolean>(async (writer) => {
      const { numDeletedRows } = await writer
        .deleteFrom('reports')
        .where('id', '=', id)
        .where('kind', '=', kind)
        .executeTakeFirst();
      return numDeletedRows > 0n;
    });
  }

  async #store(
    kind: Report['kind'],
    reporter: string,
    { reason, score }: ReportDetails,
    { roomId, eventId, userId }: { roomId?: string; eventId?: string; userId?: string },
  ): Promise<void> {
    const row = {
      kind,
      received_ts: this.#deps.clock.now(),
      reporter,
      room_id: roomId ?? null,
      event_id: eventId ?? null,
      user_id: userId ?? null,
      // JSON may contain U+0000, but databases do not store it.
      reason: reason?.slice(0, maxReasonLength).replaceAll('\0', '') ?? null,
      score: score ?? null,
    };
    await this.#deps.database.transaction<ReportTables, void>(async (writer) => {
      await writer
        .insertInto('reports')
        .values(row as ReportTables['reports'])
        .execute();
    });
  }
}

const toReport = (row: ReportTables['reports']): Report => ({
  id: row.id,
  kind: row.kind as Report['kind'],
  receivedTs: row.received_ts,
  reporter: row.reporter,
  roomId: row.room_id ?? undefined,
  eventId: row.event_id ?? undefined,
  userId: row.user_id ?? undefined,
  reason: row.reason ?? undefined,
  score: row.score ?? undefined,
});
