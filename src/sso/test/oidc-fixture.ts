import type { OpenDatabase } from '../../../test/support/databases/databases.ts';
import { OidcServer } from './oidc-server.ts';
import { publicUrl, SsoServer, ssoOptions } from './sso-server.ts';

/** The URL that providers redirect browsers to after a login. */
export const oidcCallback = `${publicUrl}/_synapse/client/oidc/callback`;

const client = {
  client_id: 'hearth',
  client_secret: 'a secret',
  redirect_uris: [oidcCallback],
  backchannel_logout_uri: `${publicUrl}/_synapse/client/oidc/backchannel_logout`,
};

/** A homeserver with two OpenID Connect providers. One of them is configured several times, with different options. */
export interface OidcFixture {
  readonly idp: OidcServer;
  readonly other: OidcServer;
  readonly hearth: SsoServer;
  /** Resets the providers: they respond as usual, have no logged-in user and have recorded no requests. */
  reset(): void;
  stop(): Promise<void>;
}

/** Starts the providers and the homeserver. */
export async function startOidcFixture(kind: OpenDatabase['kind']): Promise<OidcFixture> {
  const idp = await OidcServer.start(() => [client]);
  const other = await OidcServer.start(() => [client]);
  const hearth = await SsoServer.start(kind, {
    sso: ssoOptions({
      sso: { client_whitelist: ['https://app.client.example/'], update_profile_information: true },
      oidc_providers: providersOf(idp, other),
    }),
  });
  return {
    idp,
    other,
    hearth,
    reset() {
      for (const server of [idp, other]) {
        server.replace = () => undefined;
        server.user = undefined;
        server.authorizations.length = 0;
        server.tokenRequests.length = 0;
      }
    },
    async stop() {
      await hearth.stop();
      await idp.stop();
      await other.stop();
    },
  };
}

/** The options of the providers: one of `other`, and several of `idp` with different settings. */
function providersOf(idp: OidcServer, other: OidcServer): object[] {
  return [
    provider('main', idp, {
      idp_icon: 'mxc://test/icon',
      idp_brand: 'github',
      scopes: ['openid', 'profile', 'email'],
      backchannel_logout_enabled: true,
      passthrough_authorization_parameters: ['login_hint'],
      additional_authorization_parameters: { acr_values: 'phr' },
      user_mapping_provider: {
        config: {
          localpart_template: '{{ user.preferred_username }}',
          display_name_template: '{{ user.name }}',
          email_template: '{{ user.email }}',
          extra_attributes: { locale: '{{ user.locale or "en" }}' },
        },
      },
    }),
    provider('other', other),
    provider('existing', idp, { allow_existing_users: true }),
    provider('closed', idp, { enable_registration: false }),
    provider('strict', idp, { skip_verification: false }),
    ...providersWithMapping(idp),
    ...providersWithRequests(idp),
  ];
}

/** Providers with different options of the user mapping. */
const providersWithMapping = (idp: OidcServer): object[] => [
  provider(
    'choose',
    idp,
    mapping({ display_name_template: '{{ user.name }}', email_template: '{{ user.email }}' }),
  ),
  provider(
    'confirm',
    idp,
    mapping({ localpart_template: '{{ user.preferred_username }}', confirm_localpart: true }),
  ),
  provider(
    'pictures',
    idp,
    mapping({
      localpart_template: '{{ user.preferred_username }}',
      picture_template: '{{ user.picture }}',
    }),
  ),
];

/** Providers with options for the requests that they receive, and for the users who may log in. */
const providersWithRequests = (idp: OidcServer): object[] => [
  provider('groups', idp, {
    scopes: ['openid', 'profile'],
    attribute_requirements: [
      { attribute: 'groups', one_of: ['staff', 'admins'] },
      { attribute: 'preferred_username' },
      { attribute: 'locale', value: 'de' },
    ],
  }),
  provider('userinfo', idp, {
    user_profile_method: 'userinfo_endpoint',
    client_auth_method: 'client_secret_post',
    pkce_method: 'never',
    scopes: ['openid', 'profile'],
  }),
  provider('plain', idp, {
    discover: false,
    scopes: ['read_user'],
    pkce_method: 'always',
    authorization_endpoint: `${idp.issuer}/auth`,
    token_endpoint: `${idp.issuer}/token`,
    userinfo_endpoint: `${idp.issuer}/me`,
    ...mapping({ subject_claim: 'sub', localpart_template: '{{ user.email | localpart_from_email }}' }),
  }),
];

/** The options of a provider. @param more options that are added or replaced */
const provider = (idp_id: string, { issuer }: OidcServer, more: object = {}) => ({
  idp_id,
  idp_name: `Provider ${idp_id}`,
  issuer,
  client_id: 'hearth',
  client_secret: 'a secret',
  skip_verification: true,
  ...mapping({ localpart_template: '{{ user.preferred_username }}' }),
  ...more,
});

/** The option `user_mapping_provider` with a configuration. */
const mapping = (config: object) => ({ user_mapping_provider: { config } });
