import type { JsonObject } from '../protocol/index.ts';
import { clientPaths, type Endpoints, pagePaths } from './endpoints.ts';

/** The grant of RFC 8628, for clients without a browser. */
export const deviceCodeGrant = 'urn:ietf:params:oauth:grant-type:device_code';

/** Grant types that the token endpoint accepts. */
export const grantTypes: readonly string[] = ['authorization_code', 'refresh_token', deviceCodeGrant];

/** What users can do on the account page. Source: client-server API, "Account management URL actions". */
export const accountActions: readonly string[] = [
  'org.matrix.profile',
  'org.matrix.devices_list',
  'org.matrix.device_view',
  'org.matrix.device_delete',
  'org.matrix.cross_signing_reset',
  'org.matrix.account_deactivate',
];

/**
 * Returns the metadata of the authorization server.
 * Source: client-server API, `GET /auth_metadata`; RFC 8414; RFC 9207 for `iss` in responses.
 * @param canRegister whether users can create an account on a page
 */
export function authMetadata(endpoints: Endpoints, canRegister: boolean): JsonObject {
  return {
    issuer: endpoints.issuer,
    authorization_endpoint: endpoints.url(pagePaths.authorization),
    token_endpoint: endpoints.url(clientPaths.token),
    revocation_endpoint: endpoints.url(clientPaths.revocation),
    registration_endpoint: endpoints.url(clientPaths.registration),
    device_authorization_endpoint: endpoints.url(clientPaths.deviceAuthorization),
    response_types_supported: ['code'],
    response_modes_supported: ['query', 'fragment'],
    grant_types_supported: [...grantTypes],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    scopes_supported: ['openid', 'urn:matrix:client:api:*', 'urn:matrix:client:device:*'],
    authorization_response_iss_parameter_supported: true,
    ...(canRegister && { prompt_values_supported: ['create'] }),
    account_management_uri: endpoints.url(pagePaths.account),
    account_management_actions_supported: [...accountActions],
  };
}
