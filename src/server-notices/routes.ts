import { Type } from 'typebox';
import { type Requester, type Route, route } from '../kernel/http/index.ts';
import { badJson, type JsonObject, notFound } from '../protocol/index.ts';
import type { NoticesToAll } from './notices-to-all.ts';
import type { ServerNotices } from './server-notices.ts';

const path = '/_server/admin/v1/send_server_notice';

const toAllPath = '/_server/admin/v1/send_server_notice_to_all';

const body = Type.Object({
  user_id: Type.String(),
  type: Type.Optional(Type.String({ minLength: 1 })),
  /** Some tools send null for events that are not state. */
  state_key: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  content: Type.Unsafe<JsonObject>(Type.Object({})),
});

const noticeToAll = Type.Object(
  {
    type: Type.Optional(Type.String({ minLength: 1 })),
    content: Type.Unsafe<JsonObject>(Type.Object({})),
    state_key: Type.Optional(Type.Null({ description: 'A notice to all users is not a state event.' })),
    txn_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description:
          'A repeated request of the same device with the same transaction id is answered with the id of the first notice, and sends no second one, until a week after the notice has been sent.',
      }),
    ),
  },
  {
    description: 'The notice is sent to all active users, except guests and users of application services.',
  },
);

const response = Type.Object({ event_id: Type.String() });

type Notice = { user_id: string; type?: string; state_key?: string | null; content: JsonObject };

/** Routes where administrators send notices. A notice with a transaction id is sent once. */
export function serverNoticeRoutes(notices: ServerNotices, toAll: NoticesToAll): Route[] {
  const send = async (notice: Notice, { userId, deviceId }: Requester, txnId?: string) => {
    const { user_id: recipient, type = 'm.room.message', content } = notice;
    if (type === 'm.room.message') checkMessage(content);
    const stateKey = notice.state_key ?? undefined;
    const once = txnId !== undefined && { once: { userId, deviceId, txnId } };
    return { event_id: await notices.send(recipient, content, { type, stateKey, ...once }) };
  };
  return [
    route(
      { operationId: 'sendServerNotice', method: 'POST', path, auth: 'admin', body, response },
      ({ body: notice, requester }) => send(notice, requester),
    ),
    route(
      {
        operationId: 'sendServerNoticeOnce',
        method: 'PUT',
        path: `${path}/:txnId`,
        auth: 'admin',
        body,
        response,
      },
      (request) => send(request.body, request.requester, request.params.txnId),
    ),
    ...noticeToAllRoutes(toAll),
  ];
}

/** Routes where administrators send a notice to all users (in a job), read its progress and cancel it. */
function noticeToAllRoutes(notices: NoticesToAll): Route[] {
  return [
    route(
      {
        operationId: 'sendServerNoticeToAll',
        method: 'POST',
        path: toAllPath,
        auth: 'admin',
        body: noticeToAll,
        response: Type.Object({ notice_id: Type.String() }),
      },
      async ({ body: { type = 'm.room.message', content, txn_id: txnId }, requester }) => {
        if (type === 'm.room.message') checkMessage(content);
        const { userId, deviceId } = requester;
        const once = txnId === undefined ? undefined : { userId, deviceId, txnId };
        return { notice_id: await notices.schedule(type, content, once) };
      },
    ),
    route(
      {
        operationId: 'getServerNoticeToAll',
        method: 'GET',
        path: `${toAllPath}/:noticeId`,
        auth: 'admin',
        response: Type.Object({
          status: Type.String({ description: '`scheduled`, `active`, `complete`, `cancelled` or `failed`' }),
          total: Type.Integer(),
          sent: Type.Integer(),
          failed: Type.Integer(),
          /** Error messages of the first 100 users to whom the notice could not be sent. */
          failed_users: Type.Record(Type.String(), Type.String()),
          error: Type.Optional(Type.String()),
        }),
      },
      async ({ params: { noticeId } }) => {
        const found = noticeId.includes('\0') ? undefined : await notices.status(noticeId);
        if (found === undefined) throw notFound('Unknown notice_id');
        const { error, failedUsers, ...counts } = found;
        return { ...counts, failed_users: failedUsers, ...(error !== undefined && { error }) };
      },
    ),
    route(
      {
        operationId: 'cancelServerNoticeToAll',
        method: 'DELETE',
        path: `${toAllPath}/:noticeId`,
        auth: 'admin',
        response: Type.Object({}, { additionalProperties: false }),
      },
      async ({ params: { noticeId } }) => {
        if (noticeId.includes('\0')) throw notFound('Unknown notice_id');
        await notices.cancel(noticeId);
        return {};
      },
    ),
  ];
}

/**
 * Checks that clients can show a message: a message needs a type and a text.
 * @throws MatrixError M_BAD_JSON
 */
function checkMessage(content: JsonObject): void {
  for (const name of ['msgtype', 'body']) {
    if (typeof content[name] !== 'string') throw badJson(`content.${name} must be a string`);
  }
}
