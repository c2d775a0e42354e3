import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { invalidParam, isUserId, notFound } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { UserRedaction } from '../../rooms/index.ts';
import { text } from '../response-fields.ts';
import type { LocalUsers } from './local-user.ts';

/** Number of events that are redacted in each room when the request sets no limit. */
const defaultLimit = 1_000;

/** Maximum number of events that are redacted in each room. */
const maxLimit = 1_000_000;

const time = Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }));

export interface RedactionRoutesDeps {
  readonly redaction: UserRedaction;
  readonly engine: Pick<RoomReader, 'userRooms'>;
  readonly users: LocalUsers;
}

/** Schedules redactions of the events of a user, and shows their status. */
export function redactionRoutes({ redaction, engine, users }: RedactionRoutesDeps): Route[] {
  return [
    route(
      {
        operationId: 'redactUserEvents',
        method: 'POST',
        path: '/_server/admin/v1/user/:userId/redact',
        auth: 'admin',
        needsBody: true,
        body: Type.Object({
          rooms: Type.Array(Type.String(), { maxItems: 10_000 }),
          reason: Type.Optional(Type.String()),
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: maxLimit })),
          use_admin: Type.Optional(Type.Boolean()),
          after_ts: time,
          before_ts: time,
        }),
        response: Type.Object({ redact_id: Type.String() }),
      },
      async ({ params: { userId }, body, requester }) => {
        if (!isUserId(userId) || userId.includes('\0')) throw invalidParam('The user id is not valid');
        const redactsAsUser = users.isLocal(userId) && body.use_admin !== true;
        if (redactsAsUser) await users.get(userId);
        const redactionRequest = {
          userId,
          redactor: redactsAsUser ? userId : requester.userId,
          roomIds: body.rooms.length > 0 ? [...new Set(body.rooms)] : await roomsOf(engine, userId),
          reason: body.reason ?? null,
          limit: body.limit ?? defaultLimit,
          sentFrom: body.after_ts ?? null,
          sentUntil: body.before_ts ?? null,
        };
        return { redact_id: await redaction.schedule(redactionRequest) };
      },
    ),
    route(
      {
        operationId: 'getUserRedaction',
        method: 'GET',
        path: '/_server/admin/v1/user/redact_status/:redactId',
        auth: 'admin',
        response: Type.Object({
          status: text,
          failed_redactions: Type.Record(text, text),
          error: Type.Optional(text),
        }),
      },
      async ({ params: { redactId } }) => {
        const found = redactId.includes('\0') ? undefined : await redaction.status(redactId);
        if (found === undefined) throw notFound('Unknown redact_id');
        return {
          status: found.status,
          failed_redactions: found.failed,
          ...(found.error !== undefined && { error: found.error }),
        };
      },
    ),
  ];
}

/** Returns the rooms that a user is in or banned from. */
async function roomsOf(engine: Pick<RoomReader, 'userRooms'>, userId: string): Promise<string[]> {
  return [...(await engine.userRooms.of(userId)).values()]
    .filter(({ membership }) => membership === 'join' || membership === 'ban')
    .map(({ roomId }) => roomId);
}
