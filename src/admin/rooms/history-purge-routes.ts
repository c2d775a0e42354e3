import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { notFound } from '../../protocol/index.ts';
import type { HistoryPurge } from '../../rooms/index.ts';
import { checkRoomId, type KnownRooms } from './known-rooms.ts';

const path = '/_server/admin/v1/purge_history/:roomId';
const response = Type.Object({ purge_id: Type.String() });
const options = { delete_local_events: Type.Optional(Type.Boolean()) };

/** Schedules purges of old messages, and shows their status. */
export function historyPurgeRoutes(purge: HistoryPurge, rooms: KnownRooms): Route[] {
  const schedule = async (
    roomId: string,
    bound: { readonly eventId?: string | undefined; readonly ts?: number | undefined },
    deleteLocalEvents = false,
  ) => {
    checkRoomId(roomId);
    return { purge_id: await purge.schedule(await rooms.get(roomId), { ...bound, deleteLocalEvents }) };
  };
  return [
    route(
      {
        operationId: 'purgeHistoryBeforeEvent',
        method: 'POST',
        path: `${path}/:eventId`,
        auth: 'admin',
        body: Type.Object(options),
        response,
      },
      ({ params: { roomId, eventId }, body }) => schedule(roomId, { eventId }, body.delete_local_events),
    ),
    route(
      {
        operationId: 'purgeHistory',
        method: 'POST',
        path,
        auth: 'admin',
        body: Type.Object({
          ...options,
          purge_up_to_event_id: Type.Optional(Type.String()),
          purge_up_to_ts: Type.Optional(
            Type.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }),
          ),
        }),
        response,
      },
      ({ params: { roomId }, body }) =>
        schedule(
          roomId,
          { eventId: body.purge_up_to_event_id, ts: body.purge_up_to_ts },
          body.delete_local_events,
        ),
    ),
    route(
      {
        operationId: 'getHistoryPurge',
        method: 'GET',
        path: '/_server/admin/v1/purge_history_status/:purgeId',
        auth: 'admin',
        response: Type.Object({
          status: Type.String(),
          error: Type.Optional(Type.String()),
          progress: Type.Object({
            done: Type.Integer(),
            total: Type.Union([Type.Integer(), Type.Null()]),
          }),
        }),
      },
      async ({ params: { purgeId } }) => {
        const found = purgeId.includes('\0') ? undefined : await purge.status(purgeId);
        if (found === undefined) throw notFound(`purge id '${purgeId}' not found`);
        const { status, error, progress } = found;
        return { status, progress: { ...progress }, ...(error !== undefined && { error }) };
      },
    ),
  ];
}
