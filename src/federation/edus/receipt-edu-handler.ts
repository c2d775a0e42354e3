import type { Clock } from '../../kernel/clock.ts';
import {
  isEventId,
  isJsonObject,
  isRoomId,
  type JsonObject,
  type JsonValue,
  MAIN_TIMELINE,
} from '../../protocol/index.ts';
import type { Receipts } from '../../receipts/index.ts';
import type { RoomHead, RoomReader, ServerAcls } from '../../room-engine/index.ts';
import type { EduHandler } from './edu-handlers.ts';
import type { EduRates } from './edu-rates.ts';
import { isEduUserOf, mayBeJoined } from './edu-users.ts';

export interface ReceiptEduDeps {
  readonly engine: Pick<RoomReader, 'heads' | 'events'>;
  readonly serverAcls: Pick<ServerAcls, 'allows'>;
  readonly receipts: Pick<Receipts, 'recordRemote'>;
  readonly clock: Clock;
  readonly rates: EduRates;
}

/** Maximum number of rooms in one EDU; further rooms are ignored. */
const maxRooms = 100;

/** Maximum number of users per room; further users are ignored. */
const maxUsers = 500;

/** Maximum number of events per receipt; further events are ignored. */
const maxEvents = 10;

/** Handles `m.receipt` of remote users. Source: server-server API, "Receipts". */
export function receiptHandler(deps: ReceiptEduDeps): EduHandler {
  return async (origin, content) => {
    for (const [roomId, types] of Object.entries(content).slice(0, maxRooms)) {
      const read = isJsonObject(types) ? types['m.read'] : undefined;
      if (!isRoomId(roomId) || !isJsonObject(read) || !deps.rates.allow(origin)) continue;
      const head = await deps.engine.heads.get(roomId);
      if (!head?.servers.has(origin) || !(await deps.serverAcls.allows(head, origin))) continue;
      for (const [userId, receipt] of Object.entries(read).slice(0, maxUsers)) {
        if (!isEduUserOf(origin, userId)) continue;
        if (!mayBeJoined(head, userId) || !isJsonObject(receipt) || !deps.rates.allow(origin)) continue;
        await record(deps, head, userId, receipt);
      }
    }
  };
}

/**
 * Records the newest of the receipt's events that this server has, or the last event id of the receipt if this server
 * has none of them. Ignores a receipt with an event of another room.
 */
async function record(
  { engine, receipts, clock }: ReceiptEduDeps,
  head: RoomHead,
  userId: string,
  { event_ids: ids, data }: JsonObject,
): Promise<void> {
  const { ts, thread_id: threadId } = isJsonObject(data) ? data : ({} as JsonObject);
  if (!Array.isArray(ids) || !isValidThreadId(threadId)) return;
  const eventIds = (ids as readonly JsonValue[]).slice(0, maxEvents).filter(isEventId);
  const known = await engine.events.getManyById(eventIds);
  const isOfOtherRoom = [...known.values()].some(({ roomNid }) => roomNid !== head.roomNid);
  const newest = [...known.values()].sort((one, other) => (other.stream ?? 0) - (one.stream ?? 0))[0];
  const eventId = newest?.event.eventId ?? eventIds.at(-1);
  if (eventId === undefined || isOfOtherRoom) return;
  const now = clock.now();
  await receipts.recordRemote({
    userId,
    roomId: head.roomId,
    type: 'm.read',
    threadId,
    eventId,
    stream: newest?.stream,
    ts: Number.isSafeInteger(ts) ? Math.max(0, Math.min(Number(ts), now)) : now,
  });
}

/** Whether a receipt is for the whole room, for the main timeline, or for the thread of an event. */
const isValidThreadId = (threadId: JsonValue | undefined): threadId is string | undefined =>
  threadId === undefined || threadId === MAIN_TIMELINE || isEventId(threadId);
