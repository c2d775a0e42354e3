import { Type } from 'typebox';
import type { Accounts } from '../../accounts/index.ts';
import { Reply, type Route, route } from '../../kernel/http/index.ts';
import type { AuthorizationCodes } from '../authorization/authorization-codes.ts';
import { type Client, type Clients, requireGrantType } from '../clients/clients.ts';
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

/** Absent parameters count as empty, so that the answer is an error of OAuth 2.0 and not of the Matrix API. */
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

/**
 * The endpoints where clients obtain and revoke tokens. Source: RFC 6749, section 5; RFC 7009; RFC 8628, section 3.4.
 */
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

/** The grant types, with the parameter that each of them requires. */
const requiredParameter: Readonly<Record<string, keyof TokenParameters>> = {
  authorization_code: 'code',
  refresh_token: 'refresh_token',
  [deviceCodeGrant]: 'device_code',
};

/**
 * Exchanges a code or refresh token for tokens.
 * @throws OAuthError; MatrixError M_LIMIT_EXCEEDED when a client refreshes too often
 */
async function exchange(deps: TokenRoutesDeps, body: TokenParameters, ip: string): Promise<GrantedTokens> {
  const { clients, sessions } = deps;
  const client = await clients.get(body.client_id);
  const { grant_type: type } = body;
  const required = Object.hasOwn(requiredParameter, type) ? requiredParameter[type] : undefined;
  if (required === undefined) {
    throw new OAuthError('unsupported_grant_type', 'This server does not support the grant_type');
  }
  if (type !== 'refresh_token') requireGrantType(client, type);
  if (body[required] === '') throw new OAuthError('invalid_request', `${required} is missing`);
  if (type === 'refresh_token') return sessions.refresh(client, body.refresh_token, ip);
  const { redeem, ...granted } = await checkCode(deps, client, body);
  await requireActive(deps, granted.userId);
  return sessions.open(client, granted, ip, redeem);
}

/** Returns the login that a code was issued for. @throws OAuthError */
function checkCode({ codes, deviceGrants }: TokenRoutesDeps, { clientId }: Client, body: TokenParameters) {
  if (body.grant_type === deviceCodeGrant) return deviceGrants.check(body.device_code, clientId);
  const { code, redirect_uri: redirectUri, code_verifier: codeVerifier } = body;
  return codes.check({ code, clientId, redirectUri, codeVerifier });
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
