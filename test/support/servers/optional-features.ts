import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SamlIdp } from '../../../src/sso/test/saml-idp.ts';
import { registrations } from '../../modules/registering-module.ts';
import { ApplicationService } from '../other-servers/application-service.ts';
import { ScriptedAuthenticationService, serviceSecret } from '../other-servers/authentication-service.ts';
import type { ConfigurationOverrides } from './server.ts';

/** The option `form_secret`. */
export const formSecret = 'secret of forms';

/** Key of the module in `registrations`. */
const moduleKey = 'optional features';

/** Path of the web resource of the module. */
const resourcePath = '/_synapse/client/resource';

/** Features that are off by default and that add routes to a server. */
export interface OptionalFeatures {
  readonly config: ConfigurationOverrides;
  /** Answers searches in its network with empty lists, and all other requests with `{}`. */
  readonly bridge: ApplicationService;
  /**
   * Removes the files of the features, and stops the application service; must be called after the server has stopped.
   */
  stop(): Promise<void>;
}

/**
 * Opens all features that add routes: single sign-on, the policy of `user_consent`, OAuth 2.0, an application service,
 * a module with a web resource, delayed events, mail, phone numbers, server notices, URL previews, media without access
 * tokens and metrics. Other servers that they need cannot be reached. Delegated authentication excludes some of them
 * (`openDelegation`).
 * @param publicUrl the option `public_baseurl`
 */
export async function openOptionalFeatures(publicUrl: string): Promise<OptionalFeatures> {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-features-'));
  const policies = join(folder, 'policies');
  mkdirSync(join(policies, 'en'), { recursive: true });
  for (const name of ['1.0', 'success']) writeFileSync(join(policies, 'en', `${name}.html`), name);
  const samlMetadata = join(folder, 'saml.xml');
  writeFileSync(samlMetadata, new SamlIdp('https://saml.example').metadata);
  const bridge = await ApplicationService.start('irc', { protocols: ['irc'] });
  bridge.respond = ({ path }) =>
    /\/thirdparty\/(location|user)/.test(path) ? { status: 200, body: [] } : undefined;
  registrations.set(moduleKey, (api) =>
    api.registerWebResource(resourcePath, ({ body }) => ({ body: { bytes: body.length } })),
  );
  const module = join(import.meta.dirname, '..', '..', 'modules', 'registering-module.ts');
  return {
    config: {
      server: { public_baseurl: publicUrl },
      observability: { enable_metrics: true },
      accounts: {
        allow_guest_access: true,
        form_secret: formSecret,
        user_consent: { template_dir: policies, version: '1.0' },
        login_via_existing_session: { enabled: true },
        request_token_inhibit_3pid_errors: true,
        account_threepid_delegates: { msisdn: 'https://phones.example' },
        turn_uris: ['turn:turn.example'],
        turn_shared_secret: 'secret of calls',
      } as never,
      mail: { email: { smtp_host: '127.0.0.1', smtp_port: 1, notif_from: 'Hearth <hearth@a.test>' } },
      sso: {
        oidc_providers: [{ idp_id: 'work', issuer: 'https://oidc.example', client_id: 'hearth' }],
        cas_config: { enabled: true, server_url: 'https://cas.example' },
        saml2_config: {
          sp_config: {
            metadata: { local: [samlMetadata] },
            service: { sp: { allow_unsolicited: true } },
          },
        },
      } as never,
      directory: { allow_public_rooms_over_federation: true },
      media: { enable_authenticated_media: false },
      oauth: { oauth2: { enabled: true } },
      rooms: { max_event_delay_duration: 86_400_000 },
      urlPreviews: { url_preview_enabled: true, url_preview_ip_range_blacklist: [] },
      federation: { federation_whitelist_endpoint_enabled: true },
      appservices: { app_service_config_files: [bridge.file] },
      serverNotices: { server_notices: { system_mxid_localpart: 'notices' } },
      modules: { modules: [{ module, config: { key: moduleKey } }] },
    },
    bridge,
    async stop() {
      registrations.delete(moduleKey);
      await bridge.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Authentication by a separate service. It adds routes and replaces the routes of logins. */
export interface Delegation {
  readonly config: ConfigurationOverrides;
  /** The access token of the service for its requests to the server. */
  readonly secret: string;
  stop(): Promise<void>;
}

/**
 * Starts an authentication service, for another server than that of `openOptionalFeatures`. @param publicUrl the option
 * `public_baseurl`
 */
export async function openDelegation(publicUrl: string): Promise<Delegation> {
  const service = await ScriptedAuthenticationService.start();
  const { endpoint } = service;
  return {
    config: {
      server: { public_baseurl: publicUrl },
      accounts: { proto_authentication_service: { enabled: true, endpoint, secret: serviceSecret } },
    },
    secret: serviceSecret,
    stop: () => service.stop(),
  };
}
