import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import { notFound, serverOfUser } from '../protocol/index.ts';
import type { RoomEngine } from '../room-engine/index.ts';
import { type ActionLimit, RoomView } from '../rooms/index.ts';
import type { ReportTables } from './tables.ts';

export interface ReportsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly engine: RoomEngine;
  readonly serverName: string;
  /** Whether there is such a user on this server; supplied at composition. */
  readonly userExists: (userId: string) => Promise<boolean>;
  /** `rc_reports`. */
  readonly limit: ActionLimit;
}

/** What somebody says of what they report. */
export interface ReportDetails {
  readonly reason?: string | undefined;
  readonly score?: number | undefined;
}

/** A report as it is kept. Times in milliseconds since the epoch. */
export interface Report extends ReportDetails {
  readonly id: number;
  readonly kind: 'event' | 'room' | 'user';
  readonly receivedTs: number;
  readonly reporter: string;
  readonly roomId: string | undefined;
  readonly eventId: string | undefined;
  readonly userId: string | undefined;
}

/** Characters of a reason that are kept. */
const longestReason = 10_000;

/**
 * Takes reports of content for the administrators. Whether a room or user exists is not told: reports of what this
 * server does not know are accepted and not kept. Source: client-server API, "Reporting Content".
 */
export class Reports {
  readonly #deps: ReportsDeps;

  constructor(deps: ReportsDeps) {
    this.#deps = deps;
  }

  /** @throws MatrixError M_NOT_FOUND when the reporter is not in the room or may not see the event, M_LIMIT_EXCEEDED */
  async reportEvent(
    reporter: string,
    roomId: string,
    eventId: string,
    complaint: ReportDetails,
  ): Promise<void> {
    const { engine, limit } = this.#deps;
    limit.take(reporter);
    const head = await engine.heads.get(roomId);
    const stored = await engine.events.getById(eventId);
    const isThere = head?.membership(reporter) === 'join' && stored?.roomNid === head.roomNid;
    const visible = isThere ? await (await RoomView.open(engine, head, reporter)).filter([stored]) : [];
    if (!isThere || visible.length === 0) throw notFound('There is no such event in a room that you are in');
    await this.#keep('event', reporter, complaint, { roomId, eventId, userId: stored.event.sender });
  }

  /** @throws MatrixError M_LIMIT_EXCEEDED */
  async reportRoom(reporter: string, roomId: string, complaint: ReportDetails): Promise<void> {
    const { engine, limit } = this.#deps;
    limit.take(reporter);
    if (await engine.heads.get(roomId)) await this.#keep('room', reporter, complaint, { roomId });
  }

  /** @throws MatrixError M_LIMIT_EXCEEDED */
  async reportUser(reporter: string, userId: string, complaint: ReportDetails): Promise<void> {
    const { limit, serverName, userExists } = this.#deps;
    limit.take(reporter);
    const isKnown = serverOfUser(userId) !== serverName || (await userExists(userId));
    if (isKnown) await this.#keep('user', reporter, complaint, { userId });
  }

  /** The latest reports first. @param before only those with lower ids */
  async list({ before, limit }: { before?: number; limit: number }): Promise<Report[]> {
    const reader = this.#deps.database.reader<ReportTables>();
    let query = reader.selectFrom('reports').selectAll().orderBy('id', 'desc').limit(limit);
    if (before !== undefined) query = query.where('id', '<', before);
    return (await query.execute()).map(toReport);
  }

  async #keep(
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
      // Databases do not take U+0000, JSON does.
      reason: reason?.slice(0, longestReason).replaceAll('\0', '') ?? null,
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
