import { Type } from 'typebox';
import type { Accounts } from '../../accounts/index.ts';
import { Reply, type Route, route } from '../../kernel/http/index.ts';
import type { AuthorizationCodes } from '../authorization/authorization-codes.ts';
import type { Clients } from '../clients/clients.ts';
import type { DeviceGrants } from '../device-grant/device-grants.ts';
import { clientPaths } from '../endpoints.ts';
import { deviceCodeGrant } from '../metadata.ts';
import { answerClient, notCached, OAuthError } from '../oauth-error.ts';
import type { GrantedTokens, OAuthSessions } from './oauth-sessions.ts';

export interface TokenRoutesDeps {
  readonly clients: Clients;
  readonly codes: AuthorizationCodes;
  readonly deviceGrants: DeviceGrants;
  readonly sessions: OAuthSessions;
  readonly accounts: Pick<Accounts, 'getUser'>;
}

/** Absent parameters are empty, so that the answer is an error of OAuth 2.0. */
const text = Type.String({ default: '', maxLength: 2_000 });

const tokenParameters = {
  grant_type: text,
  client_id: text,
  code: text,
  redirect_uri: text,
  code_verifier: text,
  refresh_token: text,
  device_code: text,
};

type TokenParameters = Readonly<Record<keyof typeof tokenParameters, string>>;

/** The endpoints at which clients get and revoke tokens. Source: RFC 6749, section 5; RFC 7009; RFC 8628, section 3.4. */
export function tokenRoutes(deps: TokenRoutesDeps): Route[] {
  const contract = { method: 'POST', auth: 'none', bodyMode: 'form' } as const;
  return [
    route({ ...contract, path: clientPaths.token, body: Type.Object(tokenParameters) }, ({ body, ip }) =>
      answerClient(async () => tokenResponse(await exchange(deps, body as TokenParameters, ip))),
    ),
    route(
      {
        ...contract,
        path: clientPaths.revocation,
        body: Type.Object({ token: text, token_type_hint: text, client_id: text }),
      },
      ({ body }) =>
        answerClient(async () => {
          if (body.token === '') throw new OAuthError('invalid_request', 'token is missing');
          await deps.sessions.revoke(body.token);
          return new Reply(200, {}, notCached);
        }),
    ),
  ];
}

async function exchange(deps: TokenRoutesDeps, body: TokenParameters, ip: string): Promise<GrantedTokens> {
  const { clients, codes, deviceGrants, sessions } = deps;
  const client = await clients.get(body.client_id);
  switch (body.grant_type) {
    case 'authorization_code': {
      const { code, redirect_uri: redirectUri, code_verifier: codeVerifier } = body;
      const { redeem, ...granted } = await codes.check({
        code,
        clientId: client.clientId,
        redirectUri,
        codeVerifier,
      });
      await requireActive(deps, granted.userId);
      return sessions.open(client, granted, redeem);
    }
    case 'refresh_token':
      return sessions.refresh(client, body.refresh_token, ip);
    case deviceCodeGrant: {
      const { redeem, ...granted } = await deviceGrants.check(body.device_code, client.clientId);
      await requireActive(deps, granted.userId);
      return sessions.open(client, granted, redeem);
    }
    default:
      throw new OAuthError('unsupported_grant_type', 'This server does not support the grant_type');
  }
}

/** Refuses grants of accounts that were locked or deactivated in the meantime. @throws OAuthError invalid_grant */
async function requireActive({ accounts }: TokenRoutesDeps, userId: string): Promise<void> {
  const user = await accounts.getUser(userId);
  if (user === undefined || user.isDeactivated || user.isLocked) {
    throw new OAuthError('invalid_grant', 'The account is locked or deactivated');
  }
}

function tokenResponse({ accessToken, refreshToken, expiresInMs, scope }: GrantedTokens): Reply {
  return new Reply(
    200,
    {
      access_token: accessToken,
      token_type: 'Bearer',
      ...(expiresInMs !== undefined && { expires_in: Math.floor(expiresInMs / 1_000) }),
      refresh_token: refreshToken,
      scope,
    },
    notCached,
  );
}
