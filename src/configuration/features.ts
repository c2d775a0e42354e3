import type { Feature } from '../kernel/config/index.ts';

/**
 * What does not happen while the options of a feature are not in force. Every option that the ledger counts as not in
 * force belongs to exactly one of them (features.test.ts): by its path, or by a path above it.
 */
export const features: readonly Feature[] = [
  {
    name: 'email',
    options: [
      'email.smtp_host',
      'email.smtp_port',
      'email.smtp_user',
      'email.smtp_pass',
      'email.force_tls',
      'email.require_transport_security',
      'email.enable_tls',
      'email.tlsname',
      'email.notif_from',
      'email.app_name',
      'email.client_base_url',
      'email.invite_client_location',
      'email.validation_token_lifetime',
      'email.subjects.password_reset',
      'email.subjects.email_validation',
      'rc_3pid_validation',
      'next_link_domain_whitelist',
      'request_token_inhibit_3pid_errors',
    ],
    consequence: 'no email is sent, so passwords cannot be reset and addresses not be validated by email',
  },
  {
    name: 'changes of email addresses and phone numbers',
    options: ['enable_3pid_changes'],
    consequence: 'users cannot add or remove addresses and phone numbers',
  },
  {
    name: 'consent at registration',
    options: ['user_consent.version', 'user_consent.require_at_registration', 'user_consent.policy_name'],
    consequence: 'users are not asked to accept terms when they register',
  },
  {
    name: 'the consent page',
    options: ['user_consent.template_dir', 'form_secret', 'form_secret_path'],
    switches: ['user_consent'],
    consequence: 'no page is served on which users accept terms after their registration',
  },
  {
    name: 'enforcement of consent',
    options: [
      'user_consent.server_notice_content',
      'user_consent.send_server_notice_to_guests',
      'user_consent.block_events_error',
    ],
    consequence: 'users who have not accepted the terms are neither reminded nor kept from sending',
  },
  {
    name: 'the limit of active users',
    options: [
      'limit_usage_by_mau',
      'max_mau_value',
      'mau_trial_days',
      'mau_appservice_trial_days',
      'mau_limit_alerting',
      'mau_stats_only',
      'mau_limit_reserved_threepids',
    ],
    switches: ['limit_usage_by_mau', 'mau_stats_only'],
    consequence: 'monthly active users are neither counted nor limited',
  },
  {
    name: 'single sign-on by OpenID Connect',
    options: ['oidc_providers'],
    consequence: 'users cannot log in with these providers',
  },
  {
    name: 'single sign-on by SAML',
    options: ['saml2_config'],
    consequence: 'users cannot log in with SAML',
  },
  {
    name: 'single sign-on by CAS',
    options: ['cas_config'],
    switches: ['cas_config.enabled'],
    consequence: 'users cannot log in with CAS',
  },
  {
    name: 'single sign-on',
    options: ['sso'],
    consequence: 'no client is exempt from the confirmation of logins, and logins do not update profiles',
  },
  {
    name: 'login with JSON web tokens',
    options: ['jwt_config'],
    switches: ['jwt_config.enabled'],
    consequence: 'users cannot log in with a JSON web token',
  },
  {
    name: 'login via an existing session',
    options: ['login_via_existing_session'],
    switches: ['login_via_existing_session.enabled'],
    consequence: 'a session cannot log in another client',
  },
  {
    name: 'signed login and guest tokens',
    options: ['macaroon_secret_key', 'macaroon_secret_key_path'],
    consequence: 'no token is signed with this key: tokens are random and stored in the database',
    isHarmless: true,
  },
  {
    name: 'tracking of puppeted users',
    options: ['track_puppeted_user_ips'],
    consequence: 'addresses of administrators who act as other users are not recorded',
  },
  {
    name: 'message retention',
    options: ['retention'],
    switches: ['retention.enabled'],
    consequence: 'old messages are not deleted',
  },
  {
    name: 'several databases',
    options: ['databases.*.data_stores'],
    consequence: 'everything is stored in the database of the data store main',
  },
  {
    name: 'workers',
    options: ['worker_replication_secret'],
    consequence: 'there are no worker processes: one process does all work',
  },
  {
    name: 'host keys of the debugging console',
    options: ['manhole_settings.ssh_priv_key_path', 'manhole_settings.ssh_pub_key_path'],
    consequence: 'the console is served by telnet without encryption and has no host key',
  },
  {
    name: 'usage statistics',
    options: ['report_stats', 'report_stats_endpoint'],
    switches: ['report_stats'],
    consequence: 'nothing is reported',
  },
  {
    name: 'error reports to Sentry',
    options: ['sentry'],
    consequence: 'errors are logged and not sent anywhere',
  },
  {
    name: 'tracing',
    options: ['opentracing'],
    switches: ['opentracing.enabled'],
    consequence: 'no traces are recorded or sent',
  },
  {
    name: 'the context of log lines',
    options: ['server_context'],
    consequence: 'log lines and reports do not name it',
  },
  {
    name: 'custom templates',
    options: ['templates'],
    consequence: 'emails do not use the templates of this directory',
  },
  {
    name: 'the TURN secret in a file',
    options: ['turn_shared_secret_path'],
    consequence: 'clients get no credentials for TURN servers from it; turn_shared_secret is in force',
  },
];
