import type { HearthConfiguration } from '../configuration.ts';
import type { Rule } from '../kernel/config/index.ts';

const consentResource: Rule<HearthConfiguration> = ({ http, accounts }, view) => {
  const path = resourcePath(http.listeners, 'consent');
  if (path === undefined) return;
  const consent = accounts.user_consent;
  for (const name of ['template_dir', 'version'] as const) {
    if ((consent?.[name] ?? null) === null)
      view.error(path, `the consent resource needs user_consent.${name}`);
  }
  if (accounts.form_secret === null)
    view.error(path, 'the consent resource needs form_secret (or form_secret_path)');
};

const consentNotices: Rule<HearthConfiguration> = ({ accounts, http, serverNotices }, view) => {
  for (const name of ['server_notice_content', 'block_events_error'] as const) {
    if ((accounts.user_consent?.[name] ?? null) === null) continue;
    const path = `user_consent.${name}`;
    if (accounts.user_consent?.version === null) view.error(path, 'needs user_consent.version');
    if (accounts.form_secret === null) view.error(path, 'needs form_secret (or form_secret_path)');
    if ((accounts.user_consent?.template_dir ?? null) === null)
      view.warn(
        path,
        'asks users to agree on a page that this server does not have without user_consent.template_dir',
      );
    else if (resourcePath(http.listeners, 'consent') === undefined)
      view.warn(
        path,
        'asks users to agree on a page that no listener serves: one needs the resource consent',
      );
  }
  if (accounts.user_consent?.server_notice_content && serverNotices.server_notices === null) {
    view.error('user_consent.server_notice_content', 'needs server_notices');
  }
};

const identityServer: Rule<HearthConfiguration> = ({ accounts, server }, view) => {
  if (accounts.default_identity_server !== null && server.public_baseurl === null) {
    view.warn('default_identity_server', 'has no effect without public_baseurl');
  }
};

const requiredAddresses: Rule<HearthConfiguration> = ({ accounts, mail }, view) => {
  if (!accounts.enable_registration) return;
  const { registrations_require_3pid: required, account_threepid_delegates: delegates } = accounts;
  const missing = [
    required.includes('email') && mail.email === null && 'email',
    required.includes('msisdn') &&
      !accounts.disable_msisdn_registration &&
      delegates.msisdn === null &&
      'account_threepid_delegates.msisdn',
  ].filter((name) => name !== false);
  if (missing.length === 0) return;
  view.warn('registrations_require_3pid', `closes registration: it needs ${missing.join(' and ')}`);
};

const avatars: Rule<HearthConfiguration> = ({ profiles, media }, view) => {
  if (media.enable_media_repo) return;
  for (const name of ['max_avatar_size', 'allowed_avatar_mimetypes'] as const) {
    if (profiles[name] === null) continue;
    view.warn(
      name,
      'prevents all changes of avatars unless this server has a media repository (enable_media_repo)',
    );
  }
};

const proxiedPreviews: Rule<HearthConfiguration> = ({ outbound, urlPreviews }, view) => {
  const proxied = (outbound.http_proxy ?? outbound.https_proxy) !== null;
  if (proxied && urlPreviews.url_preview_enabled) {
    view.warn('url_preview_ip_range_blacklist', 'has no effect on requests through a proxy');
  }
};

const metricsListener: Rule<HearthConfiguration> = ({ http, observability }, view) => {
  const path = resourcePath(http.listeners, 'metrics');
  const listener = http.listeners.findIndex(({ type }) => type === 'metrics');
  if (observability.enable_metrics || (path === undefined && listener === -1)) return;
  view.warn(path ?? `listeners[${listener}].type`, 'serves nothing unless enable_metrics is on');
};

const oneAuthorizationServer: Rule<HearthConfiguration> = ({ accounts, oauth }, view) => {
  if (oauth.oauth2.enabled && accounts.proto_authentication_service.enabled) {
    view.error(
      'oauth2.enabled',
      'cannot be combined with proto_authentication_service.enabled: clients use only one authorization server',
    );
  }
};

/**
 * Reports options that leave work of the main process to workers: Hearth has no workers, so the work would not be done.
 */
const workOfWorkers: Rule<HearthConfiguration> = ({ http, media }, view) => {
  if (!media.enable_media_repo) {
    view.notice(
      'enable_media_repo',
      'is off, and there are no workers that could serve media: this server stores and serves none. For media, delete the line',
    );
  }
  const path = resourcePath(http.listeners, 'replication');
  if (path !== undefined)
    view.notice(path, 'replication serves nothing, because there are no workers: delete it');
};

/** Rules between options of different sections. */
export const configurationRules: readonly Rule<HearthConfiguration>[] = [
  consentResource,
  consentNotices,
  identityServer,
  requiredAddresses,
  avatars,
  proxiedPreviews,
  workOfWorkers,
  metricsListener,
  oneAuthorizationServer,
];

function resourcePath(listeners: HearthConfiguration['http']['listeners'], name: string): string | undefined {
  for (const [index, { resources }] of listeners.entries()) {
    const resource = resources.findIndex(({ names }) => names.some((other) => other === name));
    if (resource !== -1) return `listeners[${index}].resources[${resource}].names`;
  }
  return undefined;
}
