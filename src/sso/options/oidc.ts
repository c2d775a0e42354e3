import type { Static } from 'typebox';
import {
  boolean,
  freeObject,
  list,
  mapOf,
  nullable,
  object,
  oneOf,
  openObject,
  option,
  string,
} from '../../kernel/config/index.ts';
import { oidcMappingProvider } from './oidc-mapping.ts';
import { attributeRequirements, descriptionOptions } from './provider.ts';

const text = () => string({ minLength: 1 });
const endpoint = (description: string) => option(nullable(text()), { description, default: null });

const jwtKey = object({
  key: option(nullable(text()), {
    description: 'The private key in PEM form. Give this or `key_file`.',
    default: null,
    secret: true,
  }),
  key_file: option(nullable(text()), { description: 'A file with the private key.', default: null }),
  jwt_header: option(
    openObject({
      alg: option(text(), {
        description: 'The signature algorithm of the token, for instance `ES256`.',
        required: true,
      }),
    }),
    { description: 'The header of the token.', required: true },
  ),
  jwt_payload: option(freeObject(), {
    description: 'The claims of the token, normally with `iss`.',
    default: {},
  }),
});

const provider = object({
  idp_id: option(
    string({ pattern: '^[A-Za-z0-9._~-]{1,250}$', allowed: 'one word of letters, digits and . _ ~ -' }),
    {
      description:
        'A freely chosen id. The server stores the users of the provider under this id, and does not recognise them when it is changed. The id of a provider from `oidc_config` is `oidc`.',
      required: true,
    },
  ),
  ...descriptionOptions,
  discover: option(boolean(), {
    description: 'Reads the endpoints from the discovery document of the provider.',
    default: true,
  }),
  issuer: option(text(), { description: 'The issuer identifier of the provider.', required: true }),
  client_id: option(text(), {
    description: 'The id of this server at the provider.',
    required: true,
  }),
  client_secret: option(nullable(text()), {
    description:
      'The secret that goes with `client_id`. It is not needed with `client_secret_jwt_key` or `client_auth_method: none`.',
    default: null,
    secret: true,
  }),
  client_secret_path: option(nullable(text()), {
    description: 'A file with the value of `client_secret`.',
    default: null,
    since: '1.91.0',
    fileFor: 'client_secret',
  }),
  client_secret_jwt_key: option(nullable(jwtKey), {
    description: 'A key that signs a token for each request, instead of a secret.',
    default: null,
  }),
  client_auth_method: option(oneOf('client_secret_basic', 'client_secret_post', 'none'), {
    description: 'How this server authenticates when it exchanges the code for a token.',
    default: 'client_secret_basic',
  }),
  pkce_method: option(oneOf('auto', 'always', 'never'), {
    description: 'Whether to use PKCE. `auto` uses it when the provider supports it.',
    default: 'auto',
  }),
  id_token_signing_alg_values_supported: option(nullable(list(text())), {
    description:
      'The algorithms that the provider may use to sign id tokens. By default, these are the algorithms in the provider metadata, or `RS256` if it names none.',
    default: null,
  }),
  scopes: option(nullable(list(text())), {
    description: 'The scopes to request.',
    default: ['openid'],
  }),
  authorization_endpoint: endpoint('The URL where users log in. Required without discovery.'),
  token_endpoint: endpoint(
    'The URL where this server exchanges codes for tokens. Required without discovery.',
  ),
  userinfo_endpoint: endpoint(
    'The URL where this server fetches claims about a user. Required without discovery when `openid` is not among the scopes.',
  ),
  jwks_uri: endpoint(
    'The URL of the keys of the provider. Required without discovery when `openid` is among the scopes.',
  ),
  skip_verification: option(boolean(), {
    description:
      'Does not verify the provider metadata, and accepts endpoints without TLS, for providers that violate the OpenID Connect specification.',
    default: false,
  }),
  user_profile_method: option(oneOf('auto', 'userinfo_endpoint'), {
    description:
      'The source of claims. `auto` uses the id token, and the userinfo endpoint when `openid` is not among the scopes.',
    default: 'auto',
  }),
  redirect_uri: endpoint(
    'The provider redirects users to this URL instead of this server. The program at this URL must then call `/_server/client/oidc/callback` itself.',
  ),
  additional_authorization_parameters: option(mapOf(string()), {
    description: 'Further parameters of the URL where users log in.',
    default: {},
  }),
  passthrough_authorization_parameters: option(list(text()), {
    description:
      'Query parameters of the request that begins a login. They are passed on to the URL where users log in.',
    default: [],
  }),
  allow_existing_users: option(boolean(), {
    description: 'Lets a user log in to an existing account of the same name.',
    default: false,
  }),
  enable_registration: option(boolean(), {
    description: 'Creates accounts for users who log in for the first time.',
    default: true,
  }),
  user_mapping_provider: oidcMappingProvider,
  attribute_requirements: attributeRequirements,
  backchannel_logout_enabled: option(boolean(), {
    description: 'Logs users out when the provider requests it at `/_server/client/oidc/backchannel_logout`.',
    default: false,
  }),
  backchannel_logout_ignore_sub: option(boolean(), {
    description: 'Does not check that a logout request has the same `sub` as the login.',
    default: false,
  }),
});

/** One entry of `oidc_providers`. */
export type OidcProviderConfig = Static<typeof provider>;

export const oidcProvidersOption = option(list(provider), {
  description: 'Providers for logging in with OpenID Connect.',
  default: [],
  deprecatedNames: ['oidc_config'],
});
