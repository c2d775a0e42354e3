import { Type } from 'typebox';
import { Reply, type Route, route } from '../../kernel/http/index.ts';
import { canonicalJson, type JsonObject } from '../../protocol/index.ts';
import { Notary, type NotaryDeps } from './notary.ts';

/** Maximum number of servers in one query. */
const maxServers = 1_000;

/** Maximum number of keys of one server in a query. */
const maxKeysOfServer = 100;

const timestamp = Type.Optional(Type.Integer());
const answer = Type.Object({ server_keys: Type.Array(Type.Object({})) });

/**
 * Key endpoints. Source: server-server API, "Retrieving server keys". The paths with a key id are for older
 * servers.
 */
export function keyRoutes(deps: NotaryDeps): Route[] {
  const notary = new Notary(deps);
  return [
    route(
      {
        operationId: 'getServerKey',
        method: 'GET',
        path: ['/_proto/key/v2/server', '/_proto/key/v2/server/:keyId'],
        auth: 'none',
      },
      () => canonicalReply(deps.ownKeys.publish(deps.clock.now())),
    ),
    route(
      {
        operationId: 'perspectivesKeyQuery',
        method: 'GET',
        path: ['/_proto/key/v2/query/:serverName', '/_proto/key/v2/query/:serverName/:keyId'],
        auth: 'none',
        query: Type.Object({ minimum_valid_until_ts: timestamp }),
        response: answer,
      },
      async ({ params, query: { minimum_valid_until_ts: validUntil } }) => {
        const { serverName, keyId } = params as { serverName: string; keyId?: string };
        const criteria = keyId === undefined ? { keys: [], validUntil } : { keys: [{ keyId, validUntil }] };
        return canonicalReply(await notary.answer([{ serverName, ...criteria }]));
      },
    ),
    route(
      {
        operationId: 'bulkPerspectivesKeyQuery',
        method: 'POST',
        path: '/_proto/key/v2/query',
        auth: 'none',
        body: Type.Object({
          server_keys: Type.Record(
            Type.String(),
            Type.Record(Type.String(), Type.Object({ minimum_valid_until_ts: timestamp }), {
              maxProperties: maxKeysOfServer,
            }),
            { maxProperties: maxServers },
          ),
        }),
        response: answer,
      },
      async ({ body }) => canonicalReply(await notary.answer(questionsIn(body.server_keys))),
    ),
  ];
}

type Criteria = Readonly<Record<string, Readonly<Record<string, { minimum_valid_until_ts?: number }>>>>;

function questionsIn(criteria: Criteria) {
  const servers = Object.entries(criteria);
  return servers.map(([serverName, byKey]) => {
    const keys = Object.entries(byKey).map(([keyId, { minimum_valid_until_ts: validUntil }]) => ({
      keyId,
      validUntil,
    }));
    return { serverName, keys };
  });
}

/** Servers may check the signatures against the text of the response. */
const canonicalReply = (answer: JsonObject) => new Reply(200, canonicalJson(answer, 'as written'));
