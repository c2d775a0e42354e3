import { Type } from 'typebox';
import type { Reauthenticator } from '../../accounts/index.ts';
import { canonicalAddress, readAccessToken } from '../../identity-servers/index.ts';
import { type Requester, type Route, route } from '../../kernel/http/index.ts';
import { invalidParam, isServerName, MatrixError, missingParam } from '../../protocol/index.ts';
import type { AccountAddresses } from '../addresses/account-addresses.ts';
import type { PublishedAddresses } from '../publication/published-addresses.ts';
import type { ValidatedSessions } from '../validation/validated-sessions.ts';
import type { SessionCredentials } from '../validation/validation-sessions.ts';
import { changesDisabled } from './request-token-routes.ts';

export interface AddressRoutesDeps {
  readonly addresses: AccountAddresses;
  readonly published: PublishedAddresses;
  readonly validated: ValidatedSessions;
  readonly reauthenticator: Reauthenticator;
  /** `enable_3pid_changes`. */
  readonly canChange: boolean;
}

/** Returns a path in each version of the API. The SDKs of Element Classic request the paths below `unstable`. */
const paths = (end: string) =>
  ['v3', 'r0', 'unstable'].map((version) => `/_proto/client/${version}/account/3pid${end}`);

const auth = Type.Optional(Type.Unknown());
const sid = Type.String({ maxLength: 255 });
const client_secret = Type.String({ maxLength: 255 });
const credentials = Type.Object({ sid, client_secret });

const removal = Type.Object({
  medium: Type.Union([Type.Literal('email'), Type.Literal('msisdn')]),
  address: Type.String({ maxLength: 500 }),
  id_server: Type.Optional(Type.String({ maxLength: 255 })),
});
const unbindResult = Type.Object({ id_server_unbind_result: Type.String() });

/**
 * Returns the routes that list, add, publish and remove the addresses of users.
 * Source: client-server API, "Adding account administrative contact information".
 */
export function addressRoutes(deps: AddressRoutesDeps): Route[] {
  return [listRoute(deps), ...additionRoutes(deps), publicationRoute(deps), ...removalRoutes(deps)];
}

function listRoute({ addresses }: AddressRoutesDeps): Route {
  return route(
    {
      operationId: 'getAccount3PIDs',
      method: 'GET',
      path: paths(''),
      auth: 'user',
      response: Type.Object({ threepids: Type.Array(Type.Object({})) }),
    },
    async ({ requester }) => {
      const rows = await addresses.list(requester.userId);
      const threepids = rows.map(({ medium, address, validated_at, added_at }) => {
        return { medium, address, validated_at, added_at };
      });
      return { threepids };
    },
  );
}

/** Both ways to add an address ask the user to authenticate, because the owner of an address can reset the password. */
function additionRoutes(deps: AddressRoutesDeps): Route[] {
  return [
    route(
      {
        operationId: 'add3PID',
        method: 'POST',
        path: paths('/add'),
        auth: 'user',
        body: Type.Object({ sid, client_secret, auth }),
        response: Type.Object({}),
      },
      ({ requester, body, ip }) =>
        add(
          deps,
          { requester, body, ip, operation: 'POST /account/3pid/add', refusal: 400 },
          {
            sid: body.sid,
            clientSecret: body.client_secret,
          },
        ),
    ),
    route(
      {
        operationId: 'post3PIDs',
        method: 'POST',
        path: paths(''),
        auth: 'user',
        body: Type.Object({
          three_pid_creds: Type.Optional(credentials),
          threePidCreds: Type.Optional(credentials),
          auth,
        }),
        response: Type.Object({}),
      },
      ({ requester, body, ip }) => {
        const credentials = body.three_pid_creds ?? body.threePidCreds;
        if (credentials === undefined) throw missingParam("'three_pid_creds' is missing");
        return add(
          deps,
          { requester, body, ip, operation: 'POST /account/3pid', refusal: 403 },
          {
            sid: credentials.sid,
            clientSecret: credentials.client_secret,
          },
        );
      },
    ),
  ];
}

interface Addition {
  readonly requester: Requester;
  readonly body: object;
  readonly ip: string;
  readonly operation: string;
  /** Status when the address has not been validated. */
  readonly refusal: 400 | 403;
}

function add(
  { addresses, validated, reauthenticator, canChange }: AddressRoutesDeps,
  { refusal, ...request }: Addition,
  given: SessionCredentials,
): Promise<object> {
  if (!canChange) throw changesDisabled();
  return reauthenticator.confirm({ ...request, always: true }, async () => {
    for (const medium of ['email', 'msisdn'] as const) {
      const session = await validated.find(medium, given).catch((error: unknown) => {
        if (error instanceof MatrixError && error.errcode === 'M_THREEPID_AUTH_FAILED') return undefined;
        throw error;
      });
      if (session?.purpose !== 'add_threepid') continue;
      await addresses.add(request.requester.userId, session);
      return {};
    }
    throw new MatrixError(
      refusal,
      'M_THREEPID_AUTH_FAILED',
      'The address has not been validated for an account',
    );
  });
}

function publicationRoute({ published }: AddressRoutesDeps): Route {
  return route(
    {
      operationId: 'bind3PID',
      method: 'POST',
      path: paths('/bind'),
      auth: 'user',
      body: Type.Object({
        sid,
        client_secret,
        id_server: Type.String({ maxLength: 255 }),
        id_access_token: Type.String({ maxLength: 2_048 }),
      }),
      response: Type.Object({}),
    },
    async ({ requester, body }) => {
      const server = readIdentityServer(body.id_server);
      const accessToken = readAccessToken(body.id_access_token);
      const session = { server, accessToken, sid: body.sid, clientSecret: body.client_secret };
      await published.publish(requester.userId, session);
      return {};
    },
  );
}

function removalRoutes({ addresses, published, canChange }: AddressRoutesDeps): Route[] {
  const contract = { method: 'POST', auth: 'user', body: removal, response: unbindResult } as const;
  const unpublish = async (requester: Requester, body: RemovalBody) => {
    const address = canonicalAddress(body.medium, body.address);
    if (address === undefined) throw invalidParam('The address is not valid');
    const server = body.id_server === undefined ? undefined : readIdentityServer(body.id_server);
    const isDone = await published.unpublish(requester.userId, body.medium, address, server);
    return { address, result: { id_server_unbind_result: isDone ? 'success' : 'no-support' } };
  };
  return [
    route(
      { ...contract, operationId: 'unbind3pidFromAccount', path: paths('/unbind') },
      async ({ requester, body }) => (await unpublish(requester, body)).result,
    ),
    route(
      { ...contract, operationId: 'delete3pidFromAccount', path: paths('/delete') },
      async ({ requester, body }) => {
        if (!canChange) throw changesDisabled();
        const { address, result } = await unpublish(requester, body);
        await addresses.remove(requester.userId, body.medium, address);
        return result;
      },
    ),
  ];
}

type RemovalBody = { medium: 'email' | 'msisdn'; address: string; id_server?: string };

function readIdentityServer(given: string): string {
  if (!isServerName(given)) throw invalidParam('id_server is not a server name');
  return given;
}
