import { Type } from 'typebox';
import { type Requester, type Route, route } from '../../kernel/http/index.ts';
import type { RateLimit, RateLimiter } from '../../kernel/rate-limits/index.ts';
import type { Networks } from './networks.ts';

/** Returns a path below `v3`, `r0` and `unstable`, below which the SDKs of Element Classic request it. */
const paths = <Path extends string>(path: Path) =>
  [
    `/_proto/client/v3/thirdparty/${path}`,
    `/_proto/client/r0/thirdparty/${path}`,
    `/_proto/client/unstable/thirdparty/${path}`,
  ] as const;

const searchResults = Type.Array(Type.Object({ protocol: Type.String(), fields: Type.Object({}) }));

/** Query parameters of this server, which are not fields of a network. */
const ownParameters = ['access_token', 'user_id', 'device_id', 'org.matrix.msc3202.device_id'];

/** Rate limit of one user's searches. They are limited because each search causes requests to services. */
export const searchRate: RateLimit = { per_second: 2, burst_count: 20 };

/**
 * The routes of third-party networks. Source: client-server API, "Third-party networks".
 * @param limit bounds the searches of each user, except users without rate limits
 */
export function thirdPartyNetworkRoutes(networks: Networks, limit: RateLimiter): Route[] {
  const limitSearches = ({ userId, isUnlimited }: Requester) => {
    if (!isUnlimited) limit.take(userId);
  };
  return [
    route(
      {
        operationId: 'getProtocols',
        method: 'GET',
        path: paths('protocols'),
        auth: 'user',
        response: Type.Record(Type.String(), Type.Object({})),
      },
      () => networks.protocols(),
    ),
    route(
      {
        operationId: 'getProtocolMetadata',
        method: 'GET',
        path: paths('protocol/:protocol'),
        auth: 'user',
        response: Type.Object({}),
      },
      ({ params }) => networks.protocol(params.protocol),
    ),
    route(
      {
        operationId: 'queryLocationByProtocol',
        method: 'GET',
        path: paths('location/:protocol'),
        auth: 'user',
        response: searchResults,
      },
      ({ params, url, requester }) => {
        limitSearches(requester);
        return networks.search('location', params.protocol, fieldsIn(url));
      },
    ),
    route(
      {
        operationId: 'queryUserByProtocol',
        method: 'GET',
        path: paths('user/:protocol'),
        auth: 'user',
        response: searchResults,
      },
      ({ params, url, requester }) => {
        limitSearches(requester);
        return networks.search('user', params.protocol, fieldsIn(url));
      },
    ),
    route(
      {
        operationId: 'queryLocationByAlias',
        method: 'GET',
        path: paths('location'),
        auth: 'user',
        query: Type.Object({ alias: Type.String() }),
        response: searchResults,
      },
      ({ query, requester }) => {
        limitSearches(requester);
        return networks.reverse('location', query.alias);
      },
    ),
    route(
      {
        operationId: 'queryUserByID',
        method: 'GET',
        path: paths('user'),
        auth: 'user',
        query: Type.Object({ userid: Type.String() }),
        response: searchResults,
      },
      ({ query, requester }) => {
        limitSearches(requester);
        return networks.reverse('user', query.userid);
      },
    ),
  ];
}

/**
 * Returns the query without the parameters of this server. The other parameters are fields of the network, and only the
 * service knows these.
 */
function fieldsIn(url: string): string {
  const fields = new URLSearchParams(url.split('?', 2)[1] ?? '');
  for (const name of ownParameters) fields.delete(name);
  return fields.toString();
}
