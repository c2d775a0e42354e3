import { Type } from 'typebox';
import { Reply, type Route, type RouteRequest, route } from '../../kernel/http/index.ts';
import { canonicalJson, type JsonObject } from '../../protocol/index.ts';
import { streamedLists } from '../streamed-lists.ts';
import { type KeyCriteria, Notary, type NotaryDeps } from './notary.ts';
import { QueryLimits } from './query-limits.ts';

/** Maximum number of servers in one query. */
const maxServers = 1_000;

/** Maximum number of keys of one server in a query. */
const maxKeysOfServer = 100;

const timestamp = Type.Optional(Type.Integer());
const answer = Type.Object({ server_keys: Type.Array(Type.Object({})) });

/**
 * Key endpoints. Source: server-server API, "Retrieving server keys". The paths with a key id are for older servers.
 */
export function keyRoutes(deps: NotaryDeps): Route[] {
  const notary = new Notary(deps);
  const limits = new QueryLimits(deps.clock);
  const answerTo = async (criteria: readonly KeyCriteria[], request: RequestBounds): Promise<Reply> => {
    const { ip, signal, wasSent } = request;
    limits.admit(ip, criteria.length);
    await notary.refresh(criteria, signal, () => limits.mayRequest(ip));
    limits.beginAnswer(ip, wasSent);
    const { status, body, headers } = streamedLists({ server_keys: notary.responses(criteria) });
    return new Reply(status, body, { ...headers, 'cache-control': 'no-store' });
  };
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
      (request) => {
        const { minimum_valid_until_ts: validUntil } = request.query;
        const { serverName, keyId } = request.params as { serverName: string; keyId?: string };
        const criteria = keyId === undefined ? { keys: [], validUntil } : { keys: [{ keyId, validUntil }] };
        return answerTo([{ serverName, ...criteria }], request);
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
      (request) => answerTo(criteriaIn(request.body.server_keys), request),
    ),
  ];
}

/** The parts of a request that `answerTo` needs to bound its work. */
type RequestBounds = Pick<RouteRequest, 'ip' | 'signal' | 'wasSent'>;

type Criteria = Readonly<Record<string, Readonly<Record<string, { minimum_valid_until_ts?: number }>>>>;

function criteriaIn(criteria: Criteria): KeyCriteria[] {
  const servers = Object.entries(criteria);
  return servers.map(([serverName, byKey]) => {
    const keys = Object.entries(byKey).map(([keyId, { minimum_valid_until_ts: validUntil }]) => ({
      keyId,
      validUntil,
    }));
    return { serverName, keys };
  });
}

/** Returns a reply in canonical JSON, because servers may check the signatures against the text of the response. */
const canonicalReply = (answer: JsonObject) => new Reply(200, canonicalJson(answer, 'as written'));
