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
import { attributeRequirements, providerFace } from './provider.ts';

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
      alg: option(text(), { description: 'How the token is signed, such as `ES256`.', required: true }),
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
        'A word of your choice by which the server remembers the provider. When it is changed, nobody is recognised. For what was in `oidc_config`, it is `oidc`.',
      required: true,
    },
  ),
  ...providerFace,
  discover: option(boolean(), { description: 'Asks the provider for its endpoints.', default: true }),
  issuer: option(text(), { description: 'The issuer, as the provider names itself.', required: true }),
  client_id: option(text(), {
    description: 'The id that the provider knows this server by.',
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
    description: 'A key with which a token is made each time, in place of a secret.',
    default: null,
  }),
  client_auth_method: option(oneOf('client_secret_basic', 'client_secret_post', 'none'), {
    description: 'How this server proves itself when it exchanges the code for a token.',
    default: 'client_secret_basic',
  }),
  pkce_method: option(oneOf('auto', 'always', 'never'), {
    description: 'Whether to use PKCE. `auto` does so when the provider says that it can.',
    default: 'auto',
  }),
  id_token_signing_alg_values_supported: option(nullable(list(text())), {
    description: 'How the provider signs id tokens. When neither this nor the provider says, it is `RS256`.',
    default: null,
  }),
  scopes: option(nullable(list(text())), {
    description: 'What to ask the provider for.',
    default: ['openid'],
  }),
  authorization_endpoint: endpoint('Where users log in. It must be given without discovery.'),
  token_endpoint: endpoint('Where codes are exchanged for tokens. It must be given without discovery.'),
  userinfo_endpoint: endpoint(
    'Where claims about a user are fetched. It must be given without discovery when `openid` is not among the scopes.',
  ),
  jwks_uri: endpoint(
    'Where the keys of the provider are. It must be given without discovery when `openid` is among the scopes.',
  ),
  skip_verification: option(boolean(), {
    description:
      'Does not check what the provider says about itself, for providers that do not follow the rules.',
    default: false,
  }),
  user_profile_method: option(oneOf('auto', 'userinfo_endpoint'), {
    description:
      'Where claims come from. `auto` takes the id token, and the userinfo endpoint when `openid` is not among the scopes.',
    default: 'auto',
  }),
  redirect_uri: endpoint(
    'Where the provider sends users back to, in place of this server. The client there must then call `/_server/client/oidc/callback` itself.',
  ),
  additional_authorization_parameters: option(mapOf(string()), {
    description: 'Further parameters of the URL at which users log in.',
    default: {},
  }),
  passthrough_authorization_parameters: option(list(text()), {
    description: 'Parameters of the redirect request to hand on to that URL.',
    default: [],
  }),
  allow_existing_users: option(boolean(), {
    description: 'Lets a user log in to an account of that name which exists already.',
    default: false,
  }),
  enable_registration: option(boolean(), {
    description: 'Makes accounts for users who log in for the first time.',
    default: true,
  }),
  user_mapping_provider: oidcMappingProvider,
  attribute_requirements: attributeRequirements,
  backchannel_logout_enabled: option(boolean(), {
    description: 'Logs users out when the provider says so at `/_server/client/oidc/backchannel_logout`.',
    default: false,
  }),
  backchannel_logout_ignore_sub: option(boolean(), {
    description: 'Does not check that the `sub` of such a message is the one of the login.',
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
