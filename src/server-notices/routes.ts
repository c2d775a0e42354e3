import { Type } from 'typebox';
import { type Requester, type Route, route } from '../kernel/http/index.ts';
import type { JsonObject } from '../protocol/index.ts';
import type { ServerNotices } from './server-notices.ts';

const path = '/_server/admin/v1/send_server_notice';

const body = Type.Object({
  user_id: Type.String(),
  type: Type.Optional(Type.String({ minLength: 1 })),
  /** Some tools send null for events that are not state. */
  state_key: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  content: Type.Unsafe<JsonObject>(Type.Object({})),
});

const response = Type.Object({ event_id: Type.String() });

type Notice = { user_id: string; type?: string; state_key?: string | null; content: JsonObject };

/** Routes by which administrators send notices. A notice with a transaction id is sent once. */
export function serverNoticeRoutes(notices: ServerNotices): Route[] {
  const send = async (notice: Notice, { userId, deviceId }: Requester, txnId?: string) => ({
    event_id: await notices.send(notice.user_id, notice.content, {
      ...(notice.type !== undefined && { type: notice.type }),
      stateKey: notice.state_key ?? undefined,
      ...(txnId !== undefined && { once: { userId, deviceId, txnId } }),
    }),
  });
  return [
    route(
      { operationId: 'sendServerNotice', method: 'POST', path, auth: 'admin', body, response: response },
      ({ body: notice, requester }) => send(notice, requester),
    ),
    route(
      {
        operationId: 'sendServerNoticeOnce',
        method: 'PUT',
        path: `${path}/:txnId`,
        auth: 'admin',
        body,
        response: response,
      },
      (request) => send(request.body, request.requester, request.params.txnId),
    ),
  ];
}
